import { fixedWindow, systemClock, systemTimers } from '@sluice/core'
import type { RedisServer } from '@sluice/testing/servers'
import { startRedis } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { ProcessPoolOptions } from './process-pool.ts'
import { ProcessPool } from './process-pool.ts'
import type { RedisSubject } from './race-process.ts'

const AT_MICROS = 1_767_225_600_000_000
const WINDOW_MICROS = 10_000_000

let server: RedisServer
let subjects = 0

beforeAll(async () => {
  server = await startRedis()
})

afterAll(() => server.close())

function createPool(options: Partial<ProcessPoolOptions> = {}): ProcessPool {
  const pool = new ProcessPool({
    processes: 2,
    stopwatch: systemClock,
    timers: systemTimers,
    deadlineMs: 50_000,
    ...options,
  })
  onTestFinished(() => pool.close())
  return pool
}

/** A rule with counters of its own. */
function createSubject(limit: number, { url } = server): RedisSubject {
  return { rule: fixedWindow({ limit, window: '10s' }), url, prefix: `pool-${++subjects}` }
}

describe('ProcessPool', () => {
  it('makes every request of a burst, shared out among processes that share the limit', async () => {
    const pool = createPool({ processes: 3 })
    await pool.attach(createSubject(70))
    const { approvedPerNode } = await pool.burst({ nodes: ['a', 'b'], requestsPerNode: 100 }, AT_MICROS)
    expect(approvedPerNode).toEqual([70, 70])
    expect((await pool.burst({ nodes: ['c'], requestsPerNode: 41 }, AT_MICROS)).approvedPerNode).toEqual([41])
  })

  it('decides at the instant that comes with the burst', async () => {
    const pool = createPool()
    await pool.attach(createSubject(5))
    const approvedAt = async (atMicros: number): Promise<readonly number[]> =>
      (await pool.burst({ nodes: ['a'], requestsPerNode: 20 }, atMicros)).approvedPerNode
    expect(await approvedAt(AT_MICROS)).toEqual([5])
    expect(await approvedAt(AT_MICROS + WINDOW_MICROS - 1000)).toEqual([0])
    expect(await approvedAt(AT_MICROS + WINDOW_MICROS)).toEqual([5])
  })

  it('reuses its processes for rule after rule', async () => {
    const pool = createPool()
    for (const limit of [1, 50]) {
      await pool.attach(createSubject(limit))
      expect((await pool.burst({ nodes: ['a'], requestsPerNode: 100 }, AT_MICROS)).approvedPerNode).toEqual([limit])
      await pool.detach()
    }
  })

  it('rejects when a process fails', async () => {
    const pool = createPool()
    await expect(pool.attach({ ...createSubject(1), prefix: 'with space' })).rejects.toMatchObject({
      code: 'SLUICE_HARNESS_CALLER_FAILED',
      received: expect.stringContaining('SLUICE_INVALID_OPTION'),
    })
  })

  it('rejects when Redis does not decide, instead of counting a denial', async () => {
    const lost = await startRedis()
    onTestFinished(() => lost.close())
    const pool = createPool()
    await pool.attach(createSubject(5, lost))
    await lost.kill()
    await expect(pool.burst({ nodes: ['a'], requestsPerNode: 20 }, AT_MICROS)).rejects.toMatchObject({
      code: 'SLUICE_HARNESS_CALLER_FAILED',
      received: expect.stringMatching(/^A decision was made without Redis \((unreachable|breaker)\)/),
    })
  })

  it('rejects when a process has ended, and when it ends meanwhile', async () => {
    const pool = createPool()
    const ended = { code: 'SLUICE_HARNESS_CALLER_FAILED', received: expect.stringContaining('(SIGKILL)') }
    const attached = expect(pool.attach(createSubject(1))).rejects.toMatchObject(ended)
    await pool.close()
    await attached
    await expect(pool.detach()).rejects.toMatchObject(ended)
  })

  it('rejects when the processes do not answer in time', async () => {
    const atOnce = {
      schedule: (_delayMs: number, run: () => void) => {
        run()
        return () => undefined
      },
    }
    const pool = createPool({ timers: atOnce, deadlineMs: 1234 })
    await expect(pool.attach(createSubject(1))).rejects.toMatchObject({
      code: 'SLUICE_HARNESS_CALLERS_STUCK',
      received: expect.stringContaining('2 processes'),
      expected: 'all answers within 1234 ms',
    })
  })
})
