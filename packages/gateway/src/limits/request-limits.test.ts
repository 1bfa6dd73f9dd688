import { memoryStore } from '@sluice/core'
import { type Block, type PolicyDecision, PolicyEngine, type PolicyRule } from '@sluice/core/policy'
import { fallbackStore, type Store } from '@sluice/core/store'
import type { HttpOutcome, HttpRequest } from '@sluice/middleware'
import { deferredStore, FakeClock, FakeTimers, seededRandom } from '@sluice/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { compileGateway } from '../config/compile-gateway.ts'
import type { Route } from '../config/compiled-config.ts'
import type { RouteConfig } from '../config/gateway-config.ts'
import type { Caller } from '../identity/caller.ts'
import { createRequestLimits, NOT_SENT } from './request-limits.ts'

const NOBODY: Caller = { ip: '192.0.2.7', user: undefined, apiKey: undefined, tenant: undefined, tier: undefined }

interface Context extends HttpRequest {
  readonly matched: Route
  readonly caller: Caller
}

function routeOf(route: Partial<RouteConfig> = {}): Route {
  const { router } = compileGateway(
    {
      routes: [{ name: 'login', match: {}, upstream: 'shop', ...route }],
      upstreams: { shop: { instances: [{ url: 'http://a' }] } },
    },
    { folder: '/' },
  )
  return router.routes[0]!
}

const RULE: PolicyRule = { name: 'base', resource: '*', dimension: 'ip', limit: 3, window: '1h' }

function scene({ rules = [RULE], store }: { rules?: readonly PolicyRule[]; store?: Store } = {}) {
  const clock = new FakeClock()
  const timers = new FakeTimers(clock)
  const kept: Block[] = []
  const errors: unknown[] = []
  const engine = new PolicyEngine({
    store: store ?? memoryStore({ clock }),
    clock,
    ruleSet: { rules },
    keepBlock: (block: Block) => void kept.push(block),
  })
  const limits = createRequestLimits<Context>({
    engine,
    routeOf: ({ matched }) => matched,
    callerOf: ({ caller }) => caller,
    headers: 'both',
    clock,
    timers,
    random: seededRandom(1),
    onError: (error) => void errors.push(error),
    warn: () => undefined,
  })
  const ask = (route: Route, about: Partial<Context> = {}): HttpOutcome => {
    const context: Context = {
      method: 'GET',
      url: '/login?x=1',
      route: undefined,
      peerAddress: '10.0.0.1',
      header: () => undefined,
      caller: NOBODY,
      matched: route,
      ...about,
    }
    // Synchronous on a local store: no promise is in between.
    return limits.begin(context) as HttpOutcome
  }
  const finish = (route: Route, status: number, about?: Partial<Context>): void => {
    const outcome = ask(route, about)
    if (outcome.allowed) outcome.finish?.(status)
  }
  const left = (): number => {
    const { remaining } = engine.peek({ resource: '/login', method: 'GET', ip: NOBODY.ip! }) as PolicyDecision
    return remaining!
  }
  return { clock, timers, engine, ask, finish, left, kept, errors, limits }
}

describe('limits of a route', () => {
  it('are those of the rules, by the identity that was found', () => {
    const rules: PolicyRule[] = [
      { name: 'address', resource: '/login', dimension: 'ip', limit: 2, window: '1m' },
      { name: 'caller', resource: '/login', dimension: 'user', limit: 1, window: '1m' },
    ]
    const { ask } = scene({ rules })
    const route = routeOf()
    const outcome = ask(route, { caller: { ...NOBODY, user: 'ada' } })
    expect(outcome.headers).toMatchObject({
      'X-RateLimit-Limit': '1',
      RateLimit: '"address";r=1;t=30, "caller";r=0;t=60',
    })
    const denied = ask(route, { caller: { ...NOBODY, user: 'ada' } })
    expect(denied).toMatchObject({ allowed: false, status: 429, headers: { 'Retry-After': '60' } })
    expect(ask(route, { caller: { ...NOBODY, user: 'bob' } }).allowed).toBe(true)
    expect(ask(route).allowed).toBe(false)
  })

  it('count its resource, or the path as the router reads it', () => {
    const rules: PolicyRule[] = [
      { name: 'named', resource: 'auth', dimension: 'global', limit: 1, window: '1m' },
      { name: 'path', resource: '/login', dimension: 'global', limit: 1, window: '1m' },
    ]
    const { ask } = scene({ rules })
    expect(ask(routeOf({ resource: 'auth' })).decision?.rule).toBe('named')
    expect(ask(routeOf(), { url: '/%6cogin?x' }).decision?.rule).toBe('path')
    expect(ask(routeOf(), { url: '/Login' }).allowed).toBe(false)
  })

  it('charge by the status of the response', () => {
    const { finish, left } = scene({ rules: [{ ...RULE, limit: 100 }] })
    const refunding = routeOf({ charge: { refund: ['5xx', 304] } })
    for (const status of [200, 304, 401, 500, 503, 0]) finish(refunding, status)
    expect(left()).toBe(97)
    const only = routeOf({ charge: { only: [401] } })
    for (const status of [200, 401, 404, 500, 0]) finish(only, status)
    expect(left()).toBe(96)
    for (const status of [200, 500]) finish(routeOf(), status)
    expect(left()).toBe(94)
  })

  it('give the charge back for a request that was not sent, and once only', () => {
    const { ask, left } = scene()
    const outcome = ask(routeOf())
    expect(left()).toBe(2)
    if (outcome.allowed) for (let call = 0; call < 3; call++) outcome.finish?.(NOT_SENT)
    expect(left()).toBe(3)
  })

  it('hold a slot while a response streams, renew it, and free it when it ends or the client is gone', () => {
    const rules: PolicyRule[] = [
      { name: 'slots', resource: '*', dimension: 'ip', algorithm: 'concurrency', limit: 1, lease: '30s' },
    ]
    const { ask, clock, timers } = scene({ rules })
    const route = routeOf()
    const streaming = ask(route)
    expect(ask(route).allowed).toBe(false)
    for (let seconds = 0; seconds < 300; seconds += 5) timers.advance(5000)
    expect(ask(route)).toMatchObject({ allowed: false, decision: { reason: 'limit' } })
    if (streaming.allowed) streaming.finish?.(0)
    const next = ask(route)
    expect(next.allowed).toBe(true)
    // A process that dies renews nothing: the lease ends.
    clock.advance(30_000)
    expect(ask(route).allowed).toBe(true)
  })
})

describe('the denial of a route', () => {
  const denied = (denial: RouteConfig['denial'], rules?: readonly PolicyRule[]) => {
    const { ask } = scene({ rules: rules ?? [{ ...RULE, limit: 0 }] })
    const outcome = ask(routeOf(denial === undefined ? {} : { denial }))
    if (outcome.allowed) throw new Error('allowed')
    return outcome
  }

  it('is a problem document, with another status if it says so', () => {
    expect(denied(undefined)).toMatchObject({ status: 429, headers: { 'Content-Type': 'application/problem+json' } })
    const other = denied({ status: 503 })
    expect([other.status, JSON.parse(other.body)]).toMatchObject([
      503,
      { status: 503, title: 'The request costs more than the limit' },
    ])
  })

  it('is a string or page with the time to wait and the rule', () => {
    const rules: PolicyRule[] = [{ ...RULE, limit: 1 }]
    const { ask } = scene({ rules })
    const body = '<p>{rule}: {retryAfter} s {other}</p>{retryAfter}'
    const route = routeOf({ denial: { contentType: 'text/html', body } })
    ask(route)
    expect(ask(route)).toMatchObject({
      status: 429,
      headers: { 'Content-Type': 'text/html', 'Retry-After': '3600', 'Cache-Control': 'no-store' },
      body: '<p>base: 3600 s {other}</p>3600',
    })
    const hidden = denied({ body: 'by {rule}' }, [{ ...RULE, limit: 0, announce: false }])
    expect([hidden.body, hidden.headers['RateLimit']]).toEqual(['by ', undefined])
    const never = denied({ body: 'wait {retryAfter}' })
    expect([never.body, never.headers['Content-Type']]).toEqual(['wait ', 'text/plain; charset=utf-8'])
  })
})

describe('while the store is unavailable', () => {
  it('each rule decides by its failure mode, a page keeps the status 503, and no response is counted', async () => {
    const down: Store<'async'> = {
      ...deferredStore(memoryStore()),
      decide: () => Promise.reject(new Error('away')),
    }
    const store = fallbackStore(down, { failureMode: 'open' })
    onTestFinished(() => store.close())
    const rules: PolicyRule[] = [
      { ...RULE, name: 'closed', resource: '/closed', failureMode: 'closed' },
      { ...RULE, name: 'open', resource: '/open', failureMode: 'open' },
    ]
    const { ask, kept } = scene({ rules, store })
    const blockAfter = { responses: 1, within: '1m', blockFor: '1m' }
    const route = routeOf({ denial: { status: 420, body: 'later' }, blockAfter })
    const closed = await ask(route, { url: '/closed' })
    expect(closed).toMatchObject({ allowed: false, status: 503, body: 'later', headers: { 'Retry-After': '1' } })
    const open = await ask(route, { url: '/open' })
    expect(open).toMatchObject({ allowed: true, decision: { failure: { mode: 'open' } } })
    if (open.allowed) open.finish?.(401)
    await ask(route, { url: '/open' })
    expect(kept).toEqual([])
  })
})

describe('a block after responses', () => {
  const blockAfter = { responses: 3, within: '1m', blockFor: '10m' }
  const rules: PolicyRule[] = []

  it('follows from configured statuses of one caller, on every route', () => {
    const { finish, ask, kept, clock } = scene({ rules })
    const route = routeOf({ blockAfter })
    for (const status of [401, 200, 403, 500, 404, 0]) finish(route, status)
    expect(ask(route).allowed).toBe(true)
    finish(route, 401)
    const denied = ask(routeOf({ name: 'other' }))
    expect(denied).toMatchObject({ allowed: false, decision: { reason: 'blocked' }, headers: { 'Retry-After': '600' } })
    expect(kept).toEqual([
      expect.objectContaining({
        dimension: 'ip',
        entity: '192.0.2.7',
        rule: 'gateway:login',
        reason: '3 responses with status 401, 403 on the route "login"',
      }),
    ])
    expect(ask(route, { caller: { ...NOBODY, ip: '192.0.2.8' } }).allowed).toBe(true)
    clock.advance(600_000)
    expect(ask(route).allowed).toBe(true)
  })

  it('is by the user or key if there is one, and never by an address beside it', () => {
    const { finish, kept } = scene({ rules })
    const route = routeOf({ blockAfter: { ...blockAfter, statuses: [422] } })
    for (let call = 0; call < 3; call++) finish(route, 422, { caller: { ...NOBODY, user: 'ada', apiKey: 'k' } })
    for (let call = 0; call < 3; call++) finish(route, 422, { caller: { ...NOBODY, apiKey: 'k' } })
    finish(route, 401)
    expect(kept.map(({ dimension, entity }) => [dimension, entity])).toEqual([
      ['user', 'ada'],
      ['apiKey', 'k'],
    ])
  })

  it('counts the responses of all gateways on one store, and each response once', () => {
    const clock = new FakeClock()
    const store = memoryStore({ clock })
    const [one, other] = [scene({ rules, store }), scene({ rules, store })]
    const route = routeOf({ blockAfter })
    const outcome = one.ask(route)
    if (outcome.allowed) for (let call = 0; call < 5; call++) outcome.finish?.(401)
    other.finish(route, 401)
    expect([one.kept, other.kept]).toEqual([[], []])
    other.finish(route, 401)
    expect([one.kept.length, other.kept.length]).toEqual([0, 1])
    expect(other.ask(route).allowed).toBe(false)
    one.finish(route, 401)
    expect(one.ask(route).allowed).toBe(false)
  })
})
