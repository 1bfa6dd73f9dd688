import type { DecisionLike } from '@sluice/contract'
import type { Store } from '@sluice/core'
import { createLimiter, memoryStore } from '@sluice/core'
import { noteSpace } from '@sluice/core/internal'
import { PolicyEngine } from '@sluice/core/policy'
import { fallbackStore } from '@sluice/core/store'
import { deferredStore, FakeClock, FakeTimers, seededRandom } from '@sluice/testing'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Denial } from '../http/denial-response.ts'
import type { HttpRequest } from '../http/http-request.ts'
import type { Admission, HttpOutcome } from '../http/request-outcome.ts'
import { byIp } from '../identity/identity.ts'
import type { RateLimitOptions } from '../options/rate-limit-options.ts'
import { createHttpLimiter } from './http-limiter.ts'
import { RequestBatcher } from './request-batcher.ts'

/** A request of no framework. */
interface Call {
  readonly user?: string
  readonly path?: string
  readonly address?: string
  readonly headers?: Readonly<Record<string, string>>
}

function requestOf({ path = '/', address = '192.0.2.1', headers = {} }: Call): HttpRequest {
  return { method: 'GET', url: path, route: undefined, peerAddress: address, header: (name) => headers[name] }
}

/** A limiter of its own store on a clock that stands still. */
function scene(options: RateLimitOptions<Call>) {
  const clock = new FakeClock()
  const timers = new FakeTimers(clock)
  const limiter = createHttpLimiter<Call>(
    { clock, timers, random: seededRandom(1), warn: () => undefined, ...options },
    { name: 'test', request: requestOf },
  )
  /** The outcome, which must be there at once. */
  const now = (call: Call = {}): HttpOutcome => {
    const outcome = limiter.begin(call)
    expect(outcome).not.toBeInstanceOf(Promise)
    return outcome as HttpOutcome
  }
  const allowed = (call: Call = {}): boolean => now(call).allowed
  const left = (call: Call = {}): number | null | undefined => now(call).decision?.remaining
  return { clock, timers, limiter, now, allowed, left }
}

const YEAR = { algorithm: 'fixed-window', window: '52w' } as const

describe('an outcome', () => {
  it('is there at once on a local store, and a promise on any other', async () => {
    const { limiter, now } = scene({ limit: 1, window: '1m' })
    expect(now().allowed).toBe(true)
    expect(now().allowed).toBe(false)
    await limiter.close()
    const remote = scene({ limit: 1, window: '1m', store: deferredStore(memoryStore()) })
    const outcome = remote.limiter.begin({})
    expect(outcome).toBeInstanceOf(Promise)
    expect((await outcome).allowed).toBe(true)
  })

  it('is held back in a crowd where it was decided at once, and not where a remote store has answered', async () => {
    const ends: (() => void)[] = []
    const limiterOn = (store: Store): { readonly joined: () => number; readonly begin: () => unknown } => {
      const batcher = new RequestBatcher((run) => void ends.push(run))
      const joins = vi.spyOn(batcher, 'join')
      const options = { limit: 9, window: '1m', store, warn: () => undefined } as const
      const limiter = createHttpLimiter<Call>(options, { name: 'test', request: requestOf, batcher })
      return { joined: () => joins.mock.calls.length, begin: () => limiter.begin({}) }
    }
    const local = limiterOn(memoryStore())
    for (let call = 0; call < 4; call++) expect(local.begin()).not.toBeInstanceOf(Promise)
    ends[0]!()
    const held = local.begin()
    expect([held instanceof Promise, local.joined()]).toEqual([true, 5])
    ends[1]!()
    expect(await held).toMatchObject({ allowed: true, decision: { remaining: 4 } })
    const remote = limiterOn(deferredStore(memoryStore()))
    expect(await remote.begin()).toMatchObject({ allowed: true })
    expect(remote.joined()).toBe(0)
  })

  it('has nothing to finish without an option that needs it', () => {
    expect((scene({ limit: 1, window: '1m' }).now() as Admission).finish).toBeUndefined()
    expect((scene({ limit: 1, window: '1m', refund: [500] }).now() as Admission).finish).toBeTypeOf('function')
    expect((scene({ limit: 1, window: '1m', skip: () => true }).now() as Admission).decision).toBeUndefined()
  })

  it('spreads the time to come back, never before it is true', () => {
    const { now } = scene({ limit: 1, window: '100s', jitter: 0.5 })
    now()
    const waits = Array.from({ length: 50 }, () => Number(now().headers['Retry-After']))
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(100)
    expect(Math.max(...waits)).toBeLessThanOrEqual(150)
    expect(new Set(waits).size).toBeGreaterThan(5)
  })

  it('says why a caller is denied: a block, a cost that never fits, a limit of nothing', async () => {
    const limiter = createLimiter({ limit: 5, window: '1m' })
    limiter.block('3:key1:a', '30s')
    const problemOf = (options: RateLimitOptions<Call>) => {
      const { now } = scene(options)
      return JSON.parse((now({ user: 'a' }) as Denial).body) as Record<string, unknown>
    }
    expect(problemOf({ limiter, key: ({ user }) => user })).toMatchObject({
      type: 'https://iana.org/assignments/http-problem-types#abnormal-usage-detected',
      retryAfter: 30,
    })
    expect(problemOf({ limit: 5, window: '1m', cost: () => 6 })).toMatchObject({
      title: 'The request costs more than the limit',
      retryAfter: null,
    })
    expect(problemOf({ limit: 0, window: '1m' })).toMatchObject({ limit: 0, remaining: 0 })
    await limiter.close()
  })

  it('gives a slot back when the callback for decisions throws', () => {
    let fails = true
    const { now } = scene({
      algorithm: 'concurrency',
      limit: 1,
      lease: '1m',
      onDecision: () => {
        if (fails) throw new Error('told')
      },
    })
    expect(() => now()).toThrow('told')
    fails = false
    expect(now().allowed).toBe(true)
  })
})

describe('a limiter that was made elsewhere', () => {
  it('decides, and stays open', async () => {
    const own = createLimiter({ ...YEAR, limit: 2 })
    const { limiter, left, allowed } = scene({ limiter: own, headers: 'both' })
    expect([left(), left(), allowed()]).toEqual([1, 0, false])
    await limiter.close()
    expect(own.peek('key').remaining).toBe(2)
    await own.close()
  })

  it('tells what its limit means', () => {
    const { now } = scene({ limiter: createLimiter({ ...YEAR, limit: 2 }), headers: 'draft-11' })
    expect(now().headers['RateLimit-Policy']).toBe('"default";q=2;w=31449600')
  })

  it('gives back and settles what it charged', () => {
    const limiter = createLimiter({ ...YEAR, limit: 10 })
    const refunding = scene({ limiter, refund: (status) => status >= 500 })
    const first = refunding.now() as Admission
    first.finish?.(503)
    expect(refunding.left()).toBe(9)
    const settling = scene({ limiter, cost: 4, actualCost: (_call, status) => (status === 200 ? 1 : undefined) })
    const second = settling.now() as Admission
    expect(second.decision?.remaining).toBe(5)
    second.finish?.(200)
    expect(limiter.peek('2:ip9:192.0.2.1').remaining).toBe(8)
    const third = settling.now() as Admission
    third.finish?.(404)
    expect(limiter.peek('2:ip9:192.0.2.1').remaining).toBe(4)
  })

  it('takes slots until requests end, and keeps them alive until then', async () => {
    const clock = new FakeClock()
    const limiter = createLimiter({ algorithm: 'concurrency', limit: 1, lease: '30s', clock })
    const { timers, now, allowed } = scene({ limiter, clock, timers: new FakeTimers(clock) })
    const held = new FakeTimers(clock)
    const keeping = scene({ limiter, clock, timers: held })
    const first = keeping.now() as Admission
    await held.advance(120_000)
    expect(allowed()).toBe(false)
    first.finish?.(200)
    expect(held.pending).toBe(0)
    expect(timers.pending).toBe(0)
    const second = now() as Admission
    expect(second.allowed).toBe(true)
    second.finish?.(200)
  })

  it('may have several rules, of which some apply', () => {
    const limiter = createLimiter({ rules: { each: { ...YEAR, limit: 2 }, all: { ...YEAR, limit: 3 } } })
    const { allowed } = scene({ limiter, rules: { each: { key: ({ user }) => user }, all: { key: () => 'all' } } })
    const calls = ['a', 'a', 'a', 'b', 'b'].map((user) => allowed({ user }))
    expect(calls).toEqual([true, true, false, true, false])
    const one = scene({ limiter, rules: { each: { key: () => 'c' } } })
    expect([one.allowed(), one.allowed(), one.allowed()]).toEqual([true, true, false])
  })

  it('with several rules gives slots back that stand alone, and rejects a mixture', () => {
    const slot = { algorithm: 'concurrency', limit: 1, lease: '1m' } as const
    const limiter = createLimiter({ rules: { one: slot, other: slot, rate: { ...YEAR, limit: 5 } } })
    const slots = scene({ limiter, rules: { one: {}, other: {} } })
    const first = slots.now() as Admission
    expect(slots.allowed()).toBe(false)
    first.finish?.(200)
    expect(slots.allowed()).toBe(true)
    const mixed = scene({ limiter, rules: { one: {}, rate: {} } })
    expect(() => mixed.now()).toThrow(expect.objectContaining({ code: 'SLUICE_UNSUPPORTED' }))
  })

  it('must have the rules that are requested', () => {
    const limiter = createLimiter({ rules: { each: { ...YEAR, limit: 2 }, all: { ...YEAR, limit: 3 } } })
    expect(() => scene({ limiter, rules: { each: {}, evry: {} } })).toThrow('SLUICE_UNKNOWN_RULE')
  })
})

describe('rules of several kinds', () => {
  const rules = {
    inFlight: { algorithm: 'concurrency', limit: 1, lease: '30s' },
    units: { ...YEAR, limit: 10 },
    requests: { ...YEAR, limit: 5, cost: 1 },
  } as const

  it('end each in its own way', () => {
    const { now, allowed } = scene({ rules, cost: 1, actualCost: () => 4 })
    const first = now() as Admission
    expect(allowed()).toBe(false)
    first.finish?.(200)
    const second = now() as Admission
    expect(second.decision?.limits?.map(({ rule, remaining }) => [rule, remaining])).toEqual([
      ['inFlight', 0],
      ['units', 5],
      ['requests', 3],
    ])
    second.finish?.(200)
  })

  it('are all given back by a refund', () => {
    const { now } = scene({ rules, refund: [0] })
    const first = now() as Admission
    first.finish?.(0)
    first.finish?.(0)
    expect(now().decision?.limits?.map(({ remaining }) => remaining)).toEqual([0, 9, 4])
  })

  it('are given back once, however often the end is reported', () => {
    const { now } = scene({ rules: { a: { ...YEAR, limit: 10 }, b: { ...YEAR, limit: 10 } }, refund: [500] })
    const first = now() as Admission
    now()
    first.finish?.(500)
    first.finish?.(500)
    expect(now().decision?.remaining).toBe(8)
  })

  it('keep their slots for as long as the request is in progress', async () => {
    const { timers, now, allowed } = scene({ rules })
    const first = now() as Admission
    await timers.advance(120_000)
    expect(allowed()).toBe(false)
    first.finish?.(200)
    expect(timers.pending).toBe(0)
    expect(allowed()).toBe(true)
  })

  it('do not limit when they are off', () => {
    const { now } = scene({ rules: { a: { limit: 'off', window: '1m' }, b: { limit: 'off', window: '1m' } } })
    expect(now()).toMatchObject({ allowed: true, headers: {}, decision: { reason: 'unlimited' } })
  })
})

it('who is not known counts by address', () => {
  const { allowed } = scene({ ...YEAR, limit: 1, key: ({ user }) => user })
  const from = (address: string) => allowed({ address })
  expect([from('192.0.2.1'), from('192.0.2.2'), from('192.0.2.1')]).toEqual([true, true, false])
  expect(allowed({ user: '192.0.2.1' })).toBe(true)
})

describe('IPv6 networks', () => {
  it('count together, and on the wider ones too', () => {
    const { allowed } = scene({ ...YEAR, limit: 2, ipv6: { tiers: [{ prefixLength: 48, multiply: 2 }] } })
    const from = (network: number) => allowed({ address: `2001:db8:1:${network}::1` })
    expect([from(1), from(1), from(1), from(2), from(3), from(4)]).toEqual([true, true, false, true, true, false])
    expect(allowed({ address: '192.0.2.1' })).toBe(true)
  })
})

describe('an engine', () => {
  function engineScene(options: Partial<RateLimitOptions<Call>> = {}) {
    const clock = new FakeClock()
    const store = memoryStore({ clock })
    const engine = new PolicyEngine({
      store,
      clock,
      ruleSet: {
        rules: [
          { resource: '/orders/:id', dimension: 'user', ...YEAR, limit: 2 },
          { resource: '/slots', dimension: 'user', name: 'rate', ...YEAR, limit: 10 },
          {
            resource: '/slots',
            dimension: 'user',
            name: 'slots',
            always: true,
            algorithm: 'concurrency',
            limit: 1,
            lease: '30s',
          },
          { resource: '/address', dimension: 'ip', ...YEAR, limit: 1 },
        ],
      },
    })
    const identify = ({ user }: Call) => (user === undefined ? {} : { user })
    return { engine, ...scene({ engine, identify, clock, timers: new FakeTimers(clock), ...options }) }
  }

  it('decides by its rules: who calls what', () => {
    const { allowed, now } = engineScene()
    const order = (user: string) => allowed({ user, path: '/orders/7?full=1' })
    expect([order('a'), order('a'), order('a'), order('b')]).toEqual([true, true, false, true])
    expect([allowed({ path: '/address' }), allowed({ path: '/address' })]).toEqual([true, false])
    expect(now({ path: '/other' })).toMatchObject({ decision: { reason: 'unlimited' }, headers: {} })
  })

  it('gets slots back, and leaves the other charges', () => {
    const { engine, now } = engineScene()
    const checks = vi.spyOn(engine, 'check')
    const left = ({ decision }: HttpOutcome) => decision?.limits?.map(({ rule, remaining }) => [rule, remaining])
    for (const expected of [9, 8, 7]) {
      const outcome = now({ user: 'a', path: '/slots' }) as Admission
      expect(left(outcome)).toEqual([
        ['rate', expected],
        ['slots', 0],
      ])
      expect(now({ user: 'a', path: '/slots' }).allowed).toBe(false)
      outcome.finish?.(200)
    }
    // From the first slot on, it is called only once for each request.
    expect(checks).toHaveBeenCalledTimes(1)
  })

  it('gives back, and settles', () => {
    const refunding = engineScene({ refund: [500] })
    const first = refunding.now({ user: 'a', path: '/orders/7' }) as Admission
    first.finish?.(500)
    expect(refunding.left({ user: 'a', path: '/orders/7' })).toBe(1)
    const settling = engineScene({ actualCost: () => 2 })
    const second = settling.now({ user: 'a', path: '/orders/7' }) as Admission
    second.finish?.(200)
    expect(settling.left({ user: 'a', path: '/orders/7' })).toBe(0)
  })

  it('is called with the outcome of requests that ended', () => {
    const { engine, now } = engineScene()
    const report = vi.spyOn(engine, 'report')
    for (const status of [200, 500, 0]) (now({ user: 'a', path: '/other' }) as Admission).finish?.(status)
    expect(report.mock.calls.map(([, failed]) => failed)).toEqual([false, true])
  })
})

describe('a function', () => {
  it('decides, in the words of the library or of the service', async () => {
    const decision: DecisionLike = createLimiter({ ...YEAR, limit: 5 }).check('key')
    const asked: unknown[] = []
    const { now } = scene({
      check: ({ key, identity, cost }) => {
        asked.push({ key, identity, cost })
        return decision
      },
      key: ({ user }) => user,
      cost: 3,
    })
    expect(now({ user: 'a' })).toMatchObject({ allowed: true, headers: { 'X-RateLimit-Remaining': '4' } })
    expect(asked).toEqual([{ key: '3:key1:a', identity: { kind: 'key', value: 'a' }, cost: 3 }])
    const service = scene({
      check: () =>
        Promise.resolve({
          allowed: false,
          reason: 'limit' as const,
          limit: 5,
          remaining: 0,
          resetAt: '2030-01-01T00:01:00Z',
          retryAfter: 12,
          dimension: 'user',
          rule: 'reads',
          version: 3,
        }),
    })
    const denied = (await service.limiter.begin({})) as Denial
    expect(denied.headers).toMatchObject({ 'Retry-After': '12', 'X-RateLimit-Reset-After': '60' })
    expect(denied.decision).toMatchObject({ retryAfterMs: 12_000, version: 3 })
    const unlimited = { limit: null, remaining: null, resetAt: null, retryAfter: null, dimension: '', rule: '' }
    const free = scene({ check: () => ({ ...unlimited, allowed: true, reason: 'unlimited' as const }) })
    expect(free.now()).toMatchObject({ allowed: true, headers: {} })
    const never = scene({ check: () => ({ ...unlimited, allowed: false, reason: 'denied' as const }) })
    expect(never.now()).toMatchObject({ status: 429, decision: { retryAfterMs: Number.POSITIVE_INFINITY } })
  })

  it('may say no more than whether', () => {
    const denies = scene({ check: () => ({ allowed: false }) as DecisionLike })
    const denied = denies.now() as Denial
    expect(denied).toMatchObject({ status: 429, decision: { reason: 'limit', rule: '', resetAt: 0 } })
    expect(Object.keys(denied.headers).toSorted()).toEqual(['Cache-Control', 'Content-Type'])
    expect(JSON.parse(denied.body)).toMatchObject({
      title: 'Too many requests',
      detail: 'Try again later.',
      'violated-policies': [],
      limit: null,
      retryAfter: null,
    })
    const allows = scene({ check: () => ({ allowed: true }) as DecisionLike })
    expect(allows.now()).toMatchObject({ allowed: true, headers: {}, decision: { reason: 'allowed', retryAfterMs: 0 } })
  })

  it('may leave out parts of what the library or the service would say', () => {
    const inMs = scene({ check: () => ({ allowed: false, retryAfterMs: 1500 }) as DecisionLike })
    expect((inMs.now() as Denial).headers['Retry-After']).toBe('2')
    const inSeconds = scene({
      check: () => ({ allowed: false, rule: 'reads', limit: 5, remaining: 0, retryAfter: 7 }) as never,
    })
    const denied = inSeconds.now() as Denial
    expect(denied.headers).toMatchObject({ 'Retry-After': '7', 'X-RateLimit-Limit': '5' })
    const unknown = scene({ check: () => ({ allowed: true, rule: 'reads', limit: 5, remaining: null }) as never })
    expect(unknown.now()).toMatchObject({ headers: { 'X-RateLimit-Limit': '5' }, decision: { remaining: null } })
    expect(unknown.now().headers).not.toHaveProperty('X-RateLimit-Remaining')
    expect(JSON.parse(denied.body)).toMatchObject({ 'violated-policies': ['reads'], limit: 5, resetAt: null })
  })
})

describe('what fails after the answer', () => {
  /** Lets promise callbacks run. */
  const promises = async () => {
    for (let turn = 0; turn < 32; turn++) await undefined
  }

  const failing = (): Store<'async'> => {
    const store = deferredStore(memoryStore())
    return { ...store, settle: () => Promise.reject(new Error('the store has gone')) }
  }

  it('is reported, and never thrown', async () => {
    const told: unknown[] = []
    const onError = (error: unknown) => void told.push(error)
    const { limiter } = scene({ limit: 5, window: '1m', refund: [500], store: failing(), onError })
    const outcome = (await limiter.begin({})) as Admission
    outcome.finish?.(500)
    await promises()
    expect(told).toEqual([new Error('the store has gone')])
    const option = scene({
      algorithm: 'concurrency',
      limit: 1,
      lease: '1m',
      onError,
      actualCost: () => {
        throw new Error('an option failed')
      },
    })
    const slot = option.now() as Admission
    slot.finish?.(200)
    expect(told).toHaveLength(2)
    expect(option.allowed()).toBe(true)
  })

  it('is a warning of the process, once, when there is no callback', async () => {
    const warnings = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    const { limiter } = scene({ limit: 5, window: '1m', refund: [500], store: failing() })
    for (let call = 0; call < 3; call++) {
      const outcome = (await limiter.begin({})) as Admission
      outcome.finish?.(500)
    }
    await promises()
    expect(warnings).toHaveBeenCalledTimes(1)
    expect(warnings.mock.calls[0]?.[0]).toContain('the store has gone')
  })
})

it('an unavailable store has a status of its own, whatever that of denials is', async () => {
  const fail = () => Promise.reject(new Error('gone'))
  const store = fallbackStore({ ...deferredStore(memoryStore()), decide: fail }, { failureMode: 'closed' })
  const { limiter } = scene({ limit: 5, window: '1m', status: 420, store })
  const denied = (await limiter.begin({})) as Denial
  expect(denied.status).toBe(503)
  expect(denied.headers).toMatchObject({ 'Retry-After': '1', 'Cache-Control': 'no-store' })
  expect(denied.decision.failure).toMatchObject({ mode: 'closed' })
  await store.close()
})

/** The codes of mistakes that limiters with these options report, at creation and for these requests. */
function codesOf(calls: readonly Call[], ...limiters: readonly RateLimitOptions<Call>[]): string[] {
  const codes: string[] = []
  const warn = ({ code }: { readonly code: string }) => void codes.push(code)
  const made = limiters.map((options) => scene({ warn, ...options }).limiter)
  for (const call of calls) for (const limiter of made) limiter.begin(call)
  return codes
}

describe('mistakes in how it is used', () => {
  const LIMIT = { limit: 100, window: '1m' } as const
  const proxied = (): Call => ({ address: '127.0.0.1', headers: { 'x-forwarded-for': '192.0.2.7' } })

  it('are reported', () => {
    const call = proxied()
    expect(codesOf([call, call, { address: '' }], LIMIT)).toEqual([
      'SLUICE_USE_PROXY_NOT_TRUSTED',
      'SLUICE_USE_COUNTED_TWICE',
      'SLUICE_USE_NO_ADDRESS',
    ])
  })

  it.each<[string, RateLimitOptions<Call>, boolean]>([
    ['by address', LIMIT, true],
    ['by user', { ...LIMIT, key: () => 'ada' }, false],
    ['by user, who is not known', { ...LIMIT, key: () => undefined }, true],
    ['by an address that something else knows', { ...LIMIT, key: byIp(() => '192.0.2.7') }, false],
    ['by an address that is none', { ...LIMIT, key: byIp(() => 'unknown') }, true],
    ['by rules that are all by user', { rules: { a: { ...LIMIT, key: () => 'ada' } } }, false],
    ['by rules of which one is by address', { rules: { a: { ...LIMIT, key: 'ip' } }, key: () => 'ada' }, true],
    ['by a function', { check: () => ({ allowed: true }) as DecisionLike }, true],
    ['by an engine', { engine: new PolicyEngine({ store: memoryStore() }) }, true],
    [
      'by an engine that gets the address',
      { engine: new PolicyEngine({ store: memoryStore() }), identify: () => ({ ip: '192.0.2.7' }) },
      false,
    ],
  ])('in trust of a proxy are reported for limits %s only where the address counts', (_what, options, isReported) => {
    expect(codesOf([proxied()], options)).toEqual(isReported ? ['SLUICE_USE_PROXY_NOT_TRUSTED'] : [])
  })

  it('are not told of an engine without an address, whose rules may count by something else', () => {
    expect(codesOf([{ address: '' }], { engine: new PolicyEngine({ store: memoryStore() }) })).toEqual([])
  })

  it.each<[string, RateLimitOptions<Call>, boolean]>([
    ['its own store', LIMIT, true],
    ['a limiter', { limiter: createLimiter(LIMIT) }, true],
    ['a set of limiters', { limiter: createLimiter({ rules: { a: LIMIT } }), rules: { a: {} } }, true],
    ['an engine', { engine: new PolicyEngine({ store: memoryStore() }) }, true],
    ['a remote store', { ...LIMIT, name: 'a', store: deferredStore(memoryStore()) }, false],
    ['a limiter on one', { limiter: createLimiter({ ...LIMIT, store: deferredStore(memoryStore()) }) }, false],
  ])('in memory of one of several processes are reported for %s', (_what, options, isReported) => {
    vi.stubEnv('NODE_APP_INSTANCE', '1')
    onTestFinished(() => void vi.unstubAllEnvs())
    expect(codesOf([], options)).toEqual(isReported ? ['SLUICE_USE_MEMORY_IN_CLUSTER'] : [])
  })

  it('in names are reported for limiters that were made elsewhere, by the names they have', () => {
    const store = memoryStore()
    const make = (name: string) => ({ limiter: createLimiter({ ...LIMIT, name, store }) })
    expect(codesOf([{}], make('a'), make('b'))).toEqual([])
    expect(codesOf([{}], make('a'), make('a'))).toEqual(['SLUICE_USE_COUNTED_TWICE'])
    expect(codesOf([{}], make('a'), { ...LIMIT, name: 'a' })).toEqual(['SLUICE_USE_SHARED_NAME'])
  })

  it('in names are not told for functions and engines, which alone know theirs', () => {
    const ask = () => ({ check: () => ({ allowed: true }) as DecisionLike })
    const apply = () => ({ engine: new PolicyEngine({ store: memoryStore() }) })
    expect(codesOf([{}], ask(), ask(), apply(), apply(), LIMIT)).toEqual([])
    const once = ask()
    expect(codesOf([{}], once, once)).toEqual(['SLUICE_USE_COUNTED_TWICE'])
  })

  it.each<[string, Store]>([
    ['in memory', memoryStore()],
    ['outside the process', deferredStore(memoryStore())],
  ])('are two limiters without a name on one store %s, until one is closed', async (what, store) => {
    noteSpace(store, what)
    const codes: string[] = []
    const warn = ({ code }: { readonly code: string }) => void codes.push(code)
    for (let time = 0; time < 2; time++) await scene({ ...LIMIT, store, warn }).limiter.close()
    const one = scene({ ...LIMIT, store, warn })
    onTestFinished(() => one.limiter.close())
    expect(codes).toEqual([])
    await scene({ ...LIMIT, store, warn }).limiter.close()
    expect(codes).toEqual(['SLUICE_USE_SHARED_NAME'])
  })
})

describe('a rule that callers are not told of', () => {
  const hidden = { name: 'hidden', resource: '*', dimension: 'ip', limit: 1, window: '1m', announce: false } as const
  const told = { name: 'told', resource: '*', dimension: 'global', limit: 100, window: '1m' } as const

  it('is in no header, and in no word of its denial', () => {
    const clock = new FakeClock()
    const engine = new PolicyEngine({ store: memoryStore({ clock }), clock, ruleSet: { rules: [hidden, told] } })
    const { now } = scene({ engine, headers: 'both' })
    const allowed = now()
    expect(JSON.stringify(allowed.headers)).not.toContain('hidden')
    expect(allowed.headers).toMatchObject({ 'X-RateLimit-Limit': '100', 'X-RateLimit-Remaining': '99' })
    const denied = now() as Denial
    expect(denied).toMatchObject({ status: 429, headers: { 'Retry-After': '60' } })
    expect(Object.keys(denied.headers).filter((name) => name.startsWith('X-'))).toEqual([])
    expect(denied.headers['RateLimit']).toBe('"told";r=99')
    expect(JSON.parse(denied.body)).toMatchObject({
      detail: 'Try again in 60 seconds.',
      'violated-policies': [],
      limit: null,
      remaining: null,
      resetAt: null,
      retryAfter: 60,
    })
  })

  it('does not take the place of another limiter before the same handler', () => {
    const engineOf = (rule: typeof hidden | typeof told) =>
      new PolicyEngine({ store: memoryStore(), ruleSet: { rules: [rule] } })
    const call: Call = {}
    const one = scene({ engine: engineOf(told) })
    const other = scene({ engine: engineOf(hidden) })
    expect(one.now(call).headers).toMatchObject({ 'X-RateLimit-Limit': '100' })
    expect(other.now(call).headers).toMatchObject({ 'X-RateLimit-Limit': '100' })
    const reversed: Call = {}
    expect(scene({ engine: engineOf(hidden) }).now(reversed).headers).toEqual({})
    expect(one.now(reversed).headers).toMatchObject({ 'X-RateLimit-Limit': '100' })
  })
})
