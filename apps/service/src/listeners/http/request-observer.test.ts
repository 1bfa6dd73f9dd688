import { keyDigest } from '@sluice/runtime'
import { describe, expect, it } from 'vitest'
import {
  createScene,
  numbersOf,
  observedHandlers,
  requestOf,
  SECRET,
} from '../../observability/observability.test.support.ts'
import type { Answer, AnyHandler } from '../../operations/handler.ts'
import { jsonAnswer } from '../../operations/handler.ts'
import { RequestObserver } from './request-observer.ts'

function scene(handlers: Readonly<Record<string, AnyHandler>>) {
  const made = createScene()
  const { metrics, log, monotonicMs } = made
  const observer = new RequestObserver({ metrics, log: log.logger, monotonicMs, secret: SECRET })
  return { ...made, observer, observed: observedHandlers(observer, handlers) }
}

const PRINCIPAL = { id: 'slk_abc', name: 'the deploy key', role: 'admin' } as const

describe('an observed handler', () => {
  it('answers as the handler does: at once, later, with an error, with a stream', async () => {
    const answer = jsonAnswer(200, '{}')
    const stream = { status: 200, headers: {}, stream: () => () => undefined }
    const { observed } = scene({
      'GET /now': () => answer,
      'GET /later': () => Promise.resolve(answer),
      'GET /stream': () => stream,
      'GET /throws': () => {
        throw new Error('thrown')
      },
      'GET /rejects': () => Promise.reject(new Error('rejected')),
    })
    const call = (operation: string) => observed[operation]!(requestOf())
    expect(call('GET /now')).toBe(answer)
    expect(await call('GET /later')).toBe(answer)
    expect(call('GET /stream')).toBe(stream)
    expect(() => call('GET /throws')).toThrow('thrown')
    await expect(call('GET /rejects')).rejects.toThrow('rejected')
  })

  it('counts and times requests by operation and status, and those that are being answered', async () => {
    const pending = Promise.withResolvers<Answer>()
    const { observed, metrics } = scene({
      'POST /internal/ratelimit/check': ({ body }) => jsonAnswer(body === 'denied' ? 429 : 200, '{}'),
      'GET /later': () => pending.promise,
      'GET /broken': () => {
        throw new Error('broken')
      },
      'GET /unused': () => jsonAnswer(200, '{}'),
    })
    observed['POST /internal/ratelimit/check']!(requestOf())
    observed['POST /internal/ratelimit/check']!(requestOf({ body: 'denied' }))
    observed['POST /internal/ratelimit/check']!(requestOf({ body: 'denied' }))
    expect(() => observed['GET /broken']!(requestOf())).toThrow()
    const later = observed['GET /later']!(requestOf())
    expect(numbersOf(metrics.snapshot(), 'sluice_http_requests_in_flight')).toEqual({ '': 1 })
    pending.resolve(jsonAnswer(204, ''))
    await later
    const snapshot = metrics.snapshot()
    expect(numbersOf(snapshot, 'sluice_http_requests_in_flight')).toEqual({ '': 0 })
    expect(numbersOf(snapshot, 'sluice_http_requests_total')).toEqual({
      'POST /internal/ratelimit/check 200': 1,
      'POST /internal/ratelimit/check 429': 2,
      'GET /broken 500': 1,
      'GET /later 204': 1,
    })
    expect(numbersOf(snapshot, 'sluice_http_request_duration_seconds')).toEqual({
      'POST /internal/ratelimit/check': 3,
      'GET /broken': 1,
      'GET /later': 1,
    })
  })

  it.each([
    ['POST /internal/ratelimit/check', 3],
    ['GET /v1/ids', 3],
    ['GET /metrics', 3],
    ['GET /livez', 3],
    ['GET /admin/ratelimits', 50],
  ])('reports %s %i times in 2001', (operation, lines) => {
    const { observed, log } = scene({ [operation]: () => jsonAnswer(200, '{}') })
    for (let number = 0; number < 2001; number++) observed[operation]!(requestOf())
    // All of one second, of which the log takes 50.
    expect(log.lines).toHaveLength(lines)
  })

  it('writes what is needed and no address', () => {
    const { observed, log } = scene({ 'PUT /admin/tiers/{name}': () => jsonAnswer(200, '{}') })
    observed['PUT /admin/tiers/{name}']!(
      requestOf({
        parameters: { name: 'ann', user: 'ann' },
        remoteAddress: '203.0.113.7',
        principal: PRINCIPAL,
      }),
    )
    expect(log.entries()).toEqual([
      {
        time: '2030-01-01T00:00:00.000Z',
        level: 'info',
        message: 'request',
        operation: 'PUT /admin/tiers/{name}',
        status: 200,
        durationMs: 1,
        caller: keyDigest('203.0.113.7', Buffer.from(SECRET).toString('hex')),
        principal: 'slk_abc',
      },
    ])
  })

  it('warns of every request that could not be answered; the caller of the handler logs the error', () => {
    const { observed, log } = scene({
      'POST /internal/ratelimit/check': () => jsonAnswer(503, '{}'),
      'GET /broken': () => {
        throw new Error('broken')
      },
    })
    for (let number = 0; number < 3; number++) observed['POST /internal/ratelimit/check']!(requestOf())
    expect(() => observed['GET /broken']!(requestOf())).toThrow()
    expect(log.entries().map(({ level, status }) => [level, status])).toEqual([
      ['warn', 503],
      ['warn', 503],
      ['warn', 503],
    ])
  })
})

describe('a request that comes to no handler', () => {
  const ADDRESS = '203.0.113.7'

  it('is counted by operation and status with the others, and not timed', () => {
    const { observed, observer, metrics } = scene({ 'GET /admin/tiers': () => jsonAnswer(200, '{}') })
    observed['GET /admin/tiers']!(requestOf())
    for (const status of [401, 401, 200]) {
      observer.rejected({ operation: 'GET /admin/tiers', status, remoteAddress: ADDRESS })
    }
    observer.rejected({ operation: undefined, status: 404, remoteAddress: ADDRESS })
    const snapshot = metrics.snapshot()
    expect(numbersOf(snapshot, 'sluice_http_requests_total')).toEqual({
      'GET /admin/tiers 200': 2,
      'GET /admin/tiers 401': 2,
      'none 404': 1,
    })
    expect(numbersOf(snapshot, 'sluice_http_request_duration_seconds')).toEqual({ 'GET /admin/tiers': 1 })
    expect(numbersOf(snapshot, 'sluice_http_requests_in_flight')).toEqual({ '': 0 })
  })

  it.each([
    ['GET /admin/tiers', 401, 'info', 50],
    ['GET /admin/tiers', 503, 'warn', 3],
    ['POST /internal/ratelimit/check', 400, 'info', 3],
    ['POST /internal/ratelimit/check', 503, 'warn', 3],
    [undefined, 404, 'info', 3],
  ] as const)('at %s with %i is logged at level %s %i times in 2001', (operation, status, level, lines) => {
    const { observer, log } = scene({})
    for (let number = 0; number < 2001; number++) observer.rejected({ operation, status, remoteAddress: ADDRESS })
    expect(log.lines).toHaveLength(lines)
    expect(log.entries()[0]).toMatchObject({ level, status, operation: operation ?? 'none' })
    expect(log.lines.join()).not.toContain(ADDRESS)
  })
})
