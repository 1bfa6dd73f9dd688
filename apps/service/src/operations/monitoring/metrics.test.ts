import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { connect } from 'node:net'
import type { TopAnswer } from '@sluice/contract'
import { SluiceError } from '@sluice/core'
import type { RuleSet } from '@sluice/core/policy'
import { systemSleep } from '@sluice/runtime'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { KnownApiKey } from '../../auth/authenticator.ts'
import { sendStream } from '../../listeners/http/stream-answer.ts'
import { MINUTE_MS } from '../../observability/history/rollup-recorder.ts'
import {
  createScene,
  createSceneNode,
  IDLE_PROCESS,
  MemoryRollups,
  parseMetricsPage,
} from '../../observability/observability.test.support.ts'
import type { RawCall } from '../decoded-calls.test.support.ts'
import { DecodedCalls } from '../decoded-calls.test.support.ts'
import type { Answer, StreamAnswer } from '../handler.ts'
import type { ObservabilityOperation } from './metrics.ts'
import { observabilityHandlers } from './metrics.ts'

const RULES: RuleSet = {
  rules: [
    { resource: '/data', dimension: 'user', limit: 2, window: '1h' },
    { resource: '*', dimension: 'ip', limit: 100, window: '1h' },
  ],
}

const PRINCIPAL = { id: 'slk_abc', name: 'viewer', role: 'viewer' } as const

function handlersScene() {
  const scene = createScene({ ruleSet: RULES })
  const { clock, sleep, log } = scene
  const startedAt = clock.nowMicros() / 1000
  const process = { ...IDLE_PROCESS, startedAt, cpuMicros: () => 1_000_000, residentBytes: () => 1024 }
  const { threads } = createSceneNode(scene, { process })
  const rollups = new MemoryRollups()
  let key: Partial<KnownApiKey> | undefined = { id: PRINCIPAL.id }
  const handlers = observabilityHandlers(
    { clock, sleep, log: log.logger, threads },
    { rollups, alertBounds: {}, keys: { find: (id) => (id === key?.id ? (key as KnownApiKey) : undefined) } },
  )
  const calls = new DecodedCalls(handlers)
  const call = (id: ObservabilityOperation, raw?: RawCall) => calls.call(id, raw)
  const setKey = (next: Partial<KnownApiKey> | undefined): void => {
    key = next
  }
  return { ...scene, rollups, call, setKey }
}

describe('GET /metrics', () => {
  it('is a page that an independent parser reads, with exact numbers', async () => {
    const { engine, call } = handlersScene()
    for (let number = 0; number < 3; number++) engine.check({ resource: '/data', user: 'ann', ip: '192.0.2.1' })
    const answer = (await call('metrics')) as Answer
    expect(answer.status).toBe(200)
    expect(answer.headers['Content-Type']).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(answer.headers['Content-Length']).toBe(String(Buffer.byteLength(answer.body)))
    const samples = parseMetricsPage(answer.body)
    const find = (name: string, labels: Readonly<Record<string, string>> = {}): number | undefined =>
      samples.find((one) => one.name === name && JSON.stringify(one.labels) === JSON.stringify(labels))?.value
    expect(find('ratelimit_checks_total', { dimension: 'user', resource: '/data', result: 'allowed' })).toBe(2)
    expect(find('ratelimit_checks_total', { dimension: 'user', resource: '/data', result: 'denied' })).toBe(1)
    expect(find('ratelimit_denials_total', { dimension: 'user', resource: '/data' })).toBe(1)
    expect(find('ratelimit_check_duration_ms_count')).toBe(3)
    expect(find('ratelimit_check_duration_seconds_count')).toBe(3)
    expect(find('ratelimit_check_duration_ms_sum')).toBe(3)
    expect(find('ratelimit_check_duration_seconds_sum')).toBe(0.003)
    expect(find('ratelimit_check_duration_ms_bucket', { le: '0.5' })).toBe(0)
    expect(find('ratelimit_check_duration_ms_bucket', { le: '1' })).toBe(3)
    expect(find('ratelimit_check_duration_seconds_bucket', { le: '0.001' })).toBe(3)
    expect(find('ratelimit_redis_errors_total')).toBe(0)
    expect(find('ratelimit_config_refreshes_total')).toBe(0)
    expect(find('process_cpu_seconds_total')).toBe(1)
    // Every sample once, and of every metric a type.
    expect(new Set(samples.map(({ name, labels }) => JSON.stringify([name, labels]))).size).toBe(samples.length)
    const types = new Set([...answer.body.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name))
    const bases = samples.map(({ name }) => (types.has(name) ? name : name.replace(/_(?:bucket|sum|count)$/, '')))
    expect(bases.filter((name) => !types.has(name))).toEqual([])
  })

  it('is OpenMetrics for those who ask for it', async () => {
    const { call } = handlersScene()
    const accept = 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5'
    const answer = (await call('metrics', { headers: { accept } })) as Answer
    expect(answer.headers['Content-Type']).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8')
    expect(answer.body.endsWith('\n# EOF\n')).toBe(true)
    expect(answer.body).toContain('# TYPE ratelimit_checks counter\n')
  })
})

describe('GET /admin/top', () => {
  it('lists the most denied callers, of all dimensions or of one', async () => {
    const { engine, call, clock } = handlersScene()
    for (let number = 0; number < 6; number++) engine.check({ resource: '/data', user: 'ann' })
    for (let number = 0; number < 4; number++) engine.check({ resource: '/data', user: 'bob' })
    for (let number = 0; number < 101; number++) engine.check({ resource: '/elsewhere', ip: '192.0.2.1' })
    clock.advance(60_000)
    const ask = async (query: string): Promise<TopAnswer> => {
      const answer = (await call('top', { query })) as Answer
      expect(answer.headers['Cache-Control']).toBe('no-store')
      return JSON.parse(answer.body) as TopAnswer
    }
    expect(await ask('')).toEqual({
      // Two generations of five minutes, of which this is the first minute of the second.
      spanMs: 6 * 60_000,
      nodes: 1,
      dimensions: [
        { dimension: 'ip', entries: [{ entity: '192.0.2.1', denials: 1, error: 0 }] },
        {
          dimension: 'user',
          entries: [
            { entity: 'ann', denials: 4, error: 0 },
            { entity: 'bob', denials: 2, error: 0 },
          ],
        },
      ],
    })
    expect((await ask('dimension=user&limit=1')).dimensions).toEqual([
      { dimension: 'user', entries: [{ entity: 'ann', denials: 4, error: 0 }] },
    ])
    expect((await ask('dimension=tenant')).dimensions).toEqual([])
  })

  it('shows ten by default', async () => {
    const { engine, call } = handlersScene()
    for (let user = 0; user < 12; user++) {
      for (let number = 0; number < 3; number++) engine.check({ resource: '/data', user: `user-${user}` })
    }
    const { body } = (await call('top')) as Answer
    expect((JSON.parse(body) as TopAnswer).dimensions[0]!.entries).toHaveLength(10)
  })
})

describe('GET /admin/history', () => {
  it('tells what was kept', async () => {
    const { call, rollups, clock } = handlersScene()
    const now = clock.nowMicros() / 1000
    const body = JSON.stringify({ checks: [{ resource: '/data', dimension: 'user', result: 'denied', count: 7 }] })
    await rollups.put([
      { stepMs: MINUTE_MS, at: now - 5 * MINUTE_MS, source: 'a', body },
      { stepMs: MINUTE_MS, at: now - 90 * MINUTE_MS, source: 'a', body },
    ])
    const ask = async (query: string) => {
      const answer = (await call('history', { query })) as Answer
      return JSON.parse(answer.body) as { stepMs: number; points: { at: number; denials: number }[] }
    }
    expect(await ask('')).toMatchObject({ stepMs: MINUTE_MS, points: [{ at: now - 5 * MINUTE_MS, denials: 7 }] })
    expect((await ask(`from=${now - 100 * MINUTE_MS}&stepMs=${5 * MINUTE_MS}`)).points.map(({ at }) => at)).toEqual([
      now - 90 * MINUTE_MS,
      now - 5 * MINUTE_MS,
    ])
    expect((await ask(`from=${now - 100 * MINUTE_MS}&to=${now - 10 * MINUTE_MS}`)).points).toHaveLength(1)
  })
})

describe('GET /admin/history without the database', () => {
  it('says that it cannot be reached, or that the node is stopping', async () => {
    const { call, rollups } = handlersScene()
    const errors = [
      new SluiceError('SLUICE_CONFIG_UNAVAILABLE', { problem: 'away' }),
      new SluiceError('SLUICE_CLOSED', { problem: 'closed' }),
    ]
    rollups.list = () => Promise.reject(errors.shift())
    const answer = (await call('history')) as Answer
    expect(answer).toMatchObject({ status: 503, headers: { 'Retry-After': '2' } })
    expect(answer.body).toContain('SLUICE_HTTP_CONFIG_UNAVAILABLE')
    const stopping = (await call('history')) as Answer
    expect([stopping.status, stopping.body]).toEqual([503, expect.stringContaining('SLUICE_HTTP_NOT_READY')])
  })
})

/** The handler of the stream behind a real server. */
async function serveLive(scene: ReturnType<typeof handlersScene>): Promise<number> {
  const server = createServer((request, response) => {
    const answer = scene.call('live', { headers: request.headers, principal: PRINCIPAL })
    const options = { sleep: systemSleep, done: () => undefined }
    if ('stream' in (answer as StreamAnswer)) sendStream(response, answer as StreamAnswer, options)
    else response.writeHead((answer as Answer).status, (answer as Answer).headers).end((answer as Answer).body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}

describe('GET /admin/live', () => {
  it('streams events over HTTP until the client leaves', async () => {
    const scene = handlersScene()
    const port = await serveLive(scene)
    const leaving = new AbortController()
    const response = await fetch(`http://127.0.0.1:${port}/admin/live`, { signal: leaving.signal })
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    expect(response.headers.get('cache-control')).toBe('no-store')
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    const until = async (wanted: RegExp): Promise<void> => {
      while (!wanted.test(text)) text += (await reader.read()).value ?? ''
    }
    await until(/: connected\n\n/)
    await scene.timers.advance(0)
    for (let number = 0; number < 3; number++) scene.engine.check({ resource: '/data', user: 'ann' })
    await scene.timers.advance(1000)
    await until(/^data: .*\n\n/m)
    expect(text).toMatch(/^event: sample$/m)
    const [, json] = /^data: (.*)$/m.exec(text)!
    expect(JSON.parse(json!)).toMatchObject({ checks: 3, denials: 1, spanMs: 1000 })
    leaving.abort()
    await expect(reader.read()).rejects.toThrow()
  })

  it('rejects more streams than it serves at once', () => {
    const { call } = handlersScene()
    const stops = Array.from({ length: 64 }, () => {
      const answer = call('live') as StreamAnswer
      return answer.stream(
        () => true,
        () => undefined,
      )
    })
    const rejected = call('live') as Answer
    expect(rejected.status).toBe(503)
    expect(rejected.headers).toMatchObject({ 'Content-Type': 'application/problem+json', 'Retry-After': '5' })
    stops[0]!()
    expect(call('live')).toHaveProperty('stream')
    for (const stop of stops) stop()
  })

  it.each([
    ['revoked', (scene: ReturnType<typeof handlersScene>) => scene.setKey({ id: PRINCIPAL.id, revokedAt: 1 })],
    ['gone', (scene: ReturnType<typeof handlersScene>) => scene.setKey(undefined)],
    [
      'ended',
      (scene: ReturnType<typeof handlersScene>) =>
        scene.setKey({ id: PRINCIPAL.id, expiresAt: scene.clock.nowMicros() / 1000 }),
    ],
  ])('ends when the key of the reader is %s', async (_, end) => {
    const scene = handlersScene()
    const { call, timers } = scene
    let isEnded = false
    let events = 0
    const answer = call('live', { principal: PRINCIPAL }) as StreamAnswer
    const stop = answer.stream(
      () => ++events > 0,
      () => {
        isEnded = true
        stop()
      },
    )
    await timers.advance(1000)
    expect([isEnded, events]).toEqual([false, 2])
    end(scene)
    await timers.advance(1000)
    expect([isEnded, events]).toEqual([true, 2])
  })

  it('drops a client that does not read, and holds a bounded amount for it', async () => {
    const scene = handlersScene()
    for (let user = 0; user < 20; user++) {
      for (let number = 0; number < 3; number++) scene.engine.check({ resource: '/data', user: `${user}`.repeat(100) })
    }
    const port = await serveLive(scene)
    const client: Socket = connect(port, '127.0.0.1')
    onTestFinished(() => void client.destroy())
    client.write('GET /admin/live HTTP/1.1\r\nHost: test\r\n\r\n')
    await new Promise((resolve) => client.once('data', resolve))
    client.pause()
    let seconds = 0
    for (; seconds < 20_000 && scene.timers.pending > 0; seconds++) await scene.timers.advance(1000)
    expect(scene.timers.pending).toBe(0)
    expect(seconds).toBeLessThan(20_000)
  })
})
