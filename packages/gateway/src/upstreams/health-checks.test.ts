import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { systemTurnEnd } from '@sluice/runtime'
import { FakeClock, FakeTimers, seededRandom } from '@sluice/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { HealthChecker } from './health-checker.ts'
import { fakeUpstream, noInstanceOf } from './upstreams.test.support.ts'

/** A checker whose results a test decides. */
function fakeChecks(result: () => Promise<number>) {
  const timers = new FakeTimers(new FakeClock())
  const changes: [boolean, string | undefined][] = []
  const state = { checks: 0 }
  const checker = new HealthChecker({
    intervalMs: 1000,
    timeoutMs: 500,
    healthyAfter: 2,
    unhealthyAfter: 3,
    timers,
    random: seededRandom(7),
    check: (signal) => {
      state.checks++
      const aborted = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      return Promise.race([aborted, result()])
    },
    onChange: (isHealthy, problem) => void changes.push([isHealthy, problem]),
  })
  return { checker, timers, changes, state }
}

describe('active checks', () => {
  it('decide at once at first, then by results in a row', async () => {
    let status = 200
    const { checker, timers, changes, state } = fakeChecks(async () => status)
    await checker.start()
    expect(changes).toEqual([[true, undefined]])
    const checkTimes = async (count: number): Promise<void> => {
      for (const target = state.checks + count; state.checks < target; ) await timers.advance(10)
    }
    status = 500
    await checkTimes(2)
    expect(changes).toHaveLength(1)
    status = 204
    await checkTimes(1)
    status = 302
    await checkTimes(2)
    expect(changes).toHaveLength(1)
    await checkTimes(1)
    expect(changes.at(-1)).toEqual([false, 'status 302'])
    status = 200
    await checkTimes(1)
    expect(changes).toHaveLength(2)
    await checkTimes(1)
    expect(changes.at(-1)).toEqual([true, undefined])
    checker.close()
    expect(timers.pending).toBe(0)
  })

  it('come at the interval, give or take a tenth, and end with close', async () => {
    const { checker, timers, state } = fakeChecks(async () => 200)
    await checker.start()
    await timers.advance(100_000)
    expect(state.checks).toBeGreaterThanOrEqual(1 + 90)
    expect(state.checks).toBeLessThanOrEqual(1 + 112)
    checker.close()
    const { checks } = state
    await timers.advance(10_000)
    expect(state.checks).toBe(checks)
  })

  it('fail without an answer in time', async () => {
    const { checker, timers, changes } = fakeChecks(() => new Promise(() => undefined))
    const started = checker.start()
    await timers.advance(500)
    await started
    expect(changes).toEqual([[false, 'no answer within 500 ms']])
    checker.close()
    expect(timers.pending).toBe(0)
  })
})

describe('the health of an upstream', () => {
  it('follows checks of its path, over connections of their own', async () => {
    let isWell = false
    const asked: string[] = []
    const server = createServer((request, response) => {
      asked.push(`${request.method} ${request.url} ${request.headers['user-agent']}`)
      response.writeHead(isWell ? 200 : 503).end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const url = `http://127.0.0.1:${port}`
    const active = { path: '/health', interval: '7s', healthyAfter: 1, unhealthyAfter: 1 }
    const { upstream, timers, lines } = fakeUpstream({ instances: [{ url }], health: { active }, connections: 1 })
    onTestFinished(async () => {
      await upstream.close()
      await new Promise((done) => server.close(done))
      expect(timers.pending).toBe(0)
    })
    expect(upstream.isAvailable).toBe(false)
    await upstream.start()
    expect(upstream.isAvailable).toBe(false)
    expect(noInstanceOf(upstream)).toEqual({ reason: 'no-healthy-instance', retryAfterSeconds: 7 })
    expect(asked).toEqual(['GET /health sluice-health'])
    const nextCheck = async (): Promise<void> => {
      const seen = lines.length
      while (lines.length === seen) {
        await timers.advance(100)
        await new Promise<void>((resolve) => systemTurnEnd(resolve))
      }
    }
    isWell = true
    await nextCheck()
    expect(upstream.isAvailable).toBe(true)
    isWell = false
    await nextCheck()
    expect(upstream.stats().instances[0]!.health).toBe('unhealthy')
    expect(lines.map(({ level, fields }) => [level, fields['problem']])).toEqual([
      ['warn', 'status 503'],
      ['info', undefined],
      ['warn', 'status 503'],
    ])
  })
})
