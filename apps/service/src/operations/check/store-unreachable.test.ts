import type { FailureMode, Store } from '@sluice/core'
import { memoryStore, SluiceError } from '@sluice/core'
import type { RuleSet } from '@sluice/core/policy'
import type { Mode } from '@sluice/core/store'
import { fallbackStore, outcomeUnknown, storeUnavailable } from '@sluice/core/store'
import { redisStore } from '@sluice/store-redis'
import { deferredStore, FakeClock, FakeTimers } from '@sluice/testing'
import { startRedis } from '@sluice/testing/servers'
import { describe, expect, it } from 'vitest'
import type { CheckApiOptions } from './check-api.test.support.ts'
import { CheckApi, perUser } from './check-api.test.support.ts'

const ORDER = { userId: 'ann', resource: '/orders' }
const JOB = { tenantId: 'acme', resource: '/jobs' }

const RULES: RuleSet = {
  rules: [
    { resource: '/orders', dimension: 'user', algorithm: 'fixed-window', limit: 100, window: '1h' },
    { resource: '/jobs', dimension: 'tenant', algorithm: 'concurrency', limit: 2, lease: '30s' },
  ],
}

/** A store behind a network that can go away, several processes that share it, and their clock. */
class Network {
  readonly clock = new FakeClock()
  readonly #beneath = memoryStore({ clock: this.clock })
  #failure: (() => Error) | undefined
  /** What goes through while the rest fails. */
  #passing: readonly string[] = []
  #losing: readonly string[] = []

  /** Only these calls fail from now on. */
  fail(calls: readonly string[], failure: () => Error): void {
    this.#passing = ['decide', 'settle', 'reset'].filter((call) => !calls.includes(call))
    this.#failure = failure
  }

  /** These calls are done from now on, and their answers are lost. */
  loseAnswers(calls: readonly string[]): void {
    this.#losing = calls
  }

  goAway(failure: () => Error = () => storeUnavailable({ because: 'unreachable', problem: 'no connection' })): void {
    this.#failure = failure
  }

  comeBack(): void {
    this.#failure = undefined
    this.#passing = []
    this.#losing = []
  }

  /** The API of one more process. */
  process(failureMode: FailureMode = 'open', options: Partial<CheckApiOptions> = {}): CheckApi {
    const { clock } = this
    const timers = new FakeTimers(clock)
    const breaker = { failures: 1000 }
    const guard = { failureMode, clock, timers, breaker, monotonicMs: () => clock.nowMicros() / 1000 }
    const store = fallbackStore(this.#connection(), guard)
    return new CheckApi({ store, clock, ruleSet: RULES, ...options })
  }

  #connection(): Store<'async'> {
    const store = deferredStore(this.#beneath)
    const reach = async <T>(ask: () => Promise<T>, call = ''): Promise<T> => {
      if (this.#failure !== undefined && !this.#passing.includes(call)) throw this.#failure()
      const answer = await ask()
      if (this.#losing.includes(call)) throw outcomeUnknown({ because: 'unreachable', problem: 'the connection broke' })
      return answer
    }
    return {
      mode: 'async',
      decide: (batch) => reach(() => store.decide(batch), 'decide'),
      settle: (receipt, actuals) => reach(() => store.settle(receipt, actuals), 'settle'),
      block: (rule, key, term) => reach(() => store.block(rule, key, term)),
      reset: (limits, key) => reach(() => store.reset(limits, key), 'reset'),
      close: () => Promise.resolve(),
    }
  }
}

describe('a check while the store is unreachable', () => {
  it.each([
    ['open', 200, { allowed: true, reason: 'allowed', limit: 100, remaining: null, resetAt: null }],
    ['local', 200, { allowed: true, reason: 'allowed', remaining: 99 }],
    ['closed', 429, { allowed: false, reason: 'unavailable', retryAfter: 1 }],
  ] as const)('is answered by the failure mode of its rule, and says so (%s)', async (mode, status, said) => {
    const network = new Network()
    const api = network.process(mode)
    network.goAway()
    const answer = await api.post('check', ORDER)
    expect(answer).toMatchObject({
      status,
      body: { ...said, failure: { mode, cause: 'unreachable', charged: 'no' } },
    })
    expect(answer.headers['Retry-After']).toBe(status === 429 ? '1' : undefined)
    expect(answer.headers['X-RateLimit-Limit']).toBe('100')
    expect('X-RateLimit-Remaining' in answer.headers).toBe(mode !== 'open')
    expect('X-RateLimit-Reset' in answer.headers).toBe(mode !== 'open')
    network.comeBack()
    const after = await api.post('check', ORDER)
    expect(after).toMatchObject({ status: 200, body: { remaining: 99 } })
    expect(Object.keys(after.body)).not.toContain('failure')
  })

  it.each([
    ['open', 200, { overallCode: 'OK', statuses: [{ code: 'OK' }] }],
    ['local', 200, { overallCode: 'OK', statuses: [{ code: 'OK', limitRemaining: 1 }] }],
    ['closed', 429, { overallCode: 'OVER_LIMIT', statuses: [{ code: 'OVER_LIMIT', durationUntilReset: '1s' }] }],
  ] as const)('is answered by the failure mode as Envoy asks it, too (%s)', async (mode, status, body) => {
    const network = new Network()
    const limit = { unit: 'hour', requestsPerUnit: 2 } as const
    const ruleSet: RuleSet = { rules: [], domains: [{ domain: 'shop', descriptors: [{ key: 'user', limit }] }] }
    const api = network.process(mode, { ruleSet })
    const request = { domain: 'shop', descriptors: [{ entries: [{ key: 'user', value: 'ann' }] }] }
    network.goAway()
    const answer = await api.envoy(request)
    expect(answer).toMatchObject({ status, body })
    if (mode === 'open') {
      expect(answer.body).toEqual(body)
      expect(answer.headers).toEqual({ 'X-RateLimit-Limit': '2' })
    }
    expect(answer.headers['Retry-After']).toBe(status === 429 ? '1' : undefined)
    network.comeBack()
    expect((await api.envoy(request)).body).toMatchObject({ statuses: [{ limitRemaining: 1 }] })
  })

  it('says so of every check of a batch', async () => {
    const network = new Network()
    const api = network.process('open')
    network.goAway()
    const { body } = await api.post('batch', { requests: [ORDER, { resource: '/free' }, ORDER] })
    const failure = { mode: 'open', cause: 'unreachable', charged: 'no' }
    expect(body['answers']).toMatchObject([
      { failure, limit: 100, remaining: null },
      { reason: 'unlimited', limit: null, remaining: null },
      { failure, limit: 100, remaining: null },
    ])
  })

  it('is answered in time when a real Redis is gone', async () => {
    const server = await startRedis()
    const store = redisStore(server.url, { failureMode: 'closed', deadlineMs: 10_000 })
    try {
      await store.ready()
      const api = new CheckApi({ store, clock: new FakeClock(), ruleSet: perUser(3) })
      expect(await api.post('check', ORDER)).toMatchObject({ status: 200, body: { remaining: 2 } })
      await server.close()
      const answer = await api.post('check', ORDER)
      expect(answer).toMatchObject({ status: 429, body: { reason: 'unavailable', failure: { mode: 'closed' } } })
      expect(Number(answer.headers['Retry-After'])).toBeGreaterThan(0)
    } finally {
      await store.close()
      await server.close()
    }
  })
})

describe('a reservation made while the store is unreachable', () => {
  it('owes nothing when everything is allowed, whichever node settles it and whenever', async () => {
    const network = new Network()
    const [here, there] = [network.process('open'), network.process('open')]
    network.goAway()
    const answers = [await here.post('reserve', { ...ORDER, tokens: 9 }), await here.post('reserve', ORDER)]
    for (const { body } of answers) expect(body).toMatchObject({ allowed: true, limit: 100, remaining: null })
    const [one, other] = answers.map(({ body }) => body['reservationId'])
    const nothing = { outcome: 'settled', corrected: 0 }
    expect((await here.post('settle', { reservationId: one, tokens: 50 })).body).toEqual(nothing)
    network.comeBack()
    expect((await there.post('settle', { reservationId: other, tokens: 50 })).body).toEqual(nothing)
    expect(await here.remaining(ORDER)).toBe(100)
  })

  it('is settled where it was charged when a node decides alone, and owes nothing elsewhere', async () => {
    const network = new Network()
    const [here, there] = [network.process('local'), network.process('local')]
    network.goAway()
    const one = (await here.post('reserve', { ...ORDER, tokens: 40 })).body
    const other = (await here.post('reserve', { ...ORDER, tokens: 40 })).body
    expect(one).toMatchObject({ remaining: 60, failure: { mode: 'local' } })
    const { reservationId } = one
    expect((await there.post('settle', { reservationId, tokens: 1 })).body).toEqual({
      outcome: 'settled',
      corrected: 0,
    })
    expect(await here.remaining(ORDER)).toBe(20)
    expect((await here.post('settle', { reservationId, tokens: 1 })).body).toEqual({
      outcome: 'settled',
      corrected: -39,
    })
    expect(await here.remaining(ORDER)).toBe(59)
    network.comeBack()
    await here.post('release', { reservationId: other['reservationId'] })
    expect(await here.remaining(ORDER)).toBe(100)
    network.goAway()
    expect(await here.remaining(ORDER)).toBe(99)
  })
})

describe('a slot taken while the store is unreachable', () => {
  it('is kept by heartbeats when everything is let through', async () => {
    const network = new Network()
    const [here, there] = [network.process('open'), network.process('open')]
    network.goAway()
    const { reservationId, expiresAt } = (await here.post('acquire', JOB)).body
    expect(expiresAt).toBe('2030-01-01T00:00:30.000Z')
    network.comeBack()
    network.clock.advance(29_000)
    const renewed = { outcome: 'renewed', expiresAt: '2030-01-01T00:00:59.000Z', leaseMs: 30_000 }
    expect((await here.post('heartbeat', { reservationId })).body).toEqual(renewed)
    expect((await there.post('heartbeat', { reservationId })).body).toEqual(renewed)
  })

  it('is known to the node that decided alone, and to no other', async () => {
    const network = new Network()
    const [here, there] = [network.process('local'), network.process('local')]
    network.goAway()
    const { reservationId } = (await here.post('acquire', JOB)).body
    await here.post('acquire', JOB)
    expect((await here.post('acquire', JOB)).status).toBe(429)
    expect((await there.post('heartbeat', { reservationId })).body['outcome']).toBe('gone')
    expect((await here.post('heartbeat', { reservationId })).body['outcome']).toBe('renewed')
    expect((await here.post('release', { reservationId })).body).toEqual({ outcome: 'settled', corrected: -1 })
    expect((await here.post('acquire', JOB)).status).toBe(200)
    expect((await here.post('heartbeat', { reservationId })).body['outcome']).toBe('gone')
  })
})

describe('the way to the store', () => {
  it('is gone once to give a slot back, and twice to correct what was charged besides', async () => {
    const clock = new FakeClock()
    const store = deferredStore(memoryStore({ clock }))
    let settlements = 0
    const counting: Store<'async'> = {
      ...store,
      settle: (receipt, actuals) => {
        settlements++
        return store.settle(receipt, actuals)
      },
    }
    const rules = [...RULES.rules, { resource: '/jobs', dimension: 'global', limit: 10, window: '1h' } as const]
    const api = new CheckApi({ store: counting, clock, ruleSet: { rules } })
    const take = async (): Promise<unknown> => (await api.post('acquire', JOB)).body['reservationId']
    await api.post('release', { reservationId: await take() })
    expect(settlements).toBe(1)
    await api.post('settle', { reservationId: await take(), tokens: 1 })
    expect(settlements).toBe(2)
    await api.post('settle', { reservationId: await take(), tokens: 0 })
    expect(settlements).toBe(4)
  })
})

describe('what cannot be done without the store', () => {
  it.each([
    ['settle', { tokens: 1 }, ORDER, 'reserve'],
    ['release', {}, ORDER, 'reserve'],
    ['heartbeat', {}, JOB, 'acquire'],
  ])('is a problem that says to try again, and can be tried again (%s)', async (operation, more, call, take) => {
    const network = new Network()
    const api = network.process()
    const { reservationId } = (await api.post(take, call)).body
    network.goAway()
    expect(await api.post(operation, { reservationId, ...more })).toMatchObject({
      status: 503,
      headers: { 'Retry-After': '1' },
      body: { code: 'SLUICE_HTTP_STORE_UNAVAILABLE' },
    })
    network.comeBack()
    const { body } = await api.post(operation, { reservationId, ...more })
    expect(body['outcome']).toBe(operation === 'heartbeat' ? 'renewed' : 'settled')
  })

  it('is another problem when the outcome is unknown', async () => {
    const network = new Network()
    const api = network.process()
    const { reservationId } = (await api.post('reserve', ORDER)).body
    network.goAway(() => outcomeUnknown({ because: 'unreachable', problem: 'the connection broke' }))
    const answer = await api.post('settle', { reservationId, tokens: 1 })
    expect(answer).toMatchObject({ status: 504, body: { code: 'SLUICE_HTTP_OUTCOME_UNKNOWN' } })
    expect(answer.headers['Retry-After']).toBeUndefined()
  })

  const UNAVAILABLE = (): Error => storeUnavailable({ because: 'unreachable', problem: 'no connection' })
  const UNKNOWN = (): Error => outcomeUnknown({ because: 'unreachable', problem: 'the connection broke' })

  it.each([
    ['noted', ['decide'], UNAVAILABLE, 503],
    ['noted, or perhaps was', ['decide'], UNKNOWN, 504],
    ['done', ['settle'], UNAVAILABLE, 503],
    ['done, or perhaps was', ['settle'], UNKNOWN, 504],
  ])('is a settlement that could not be %s: it can be tried again on any node, and counts', async (...given) => {
    const [, calls, failure, status] = given
    const network = new Network()
    const [here, there] = [network.process('closed'), network.process('closed')]
    const { reservationId } = (await here.post('reserve', { ...ORDER, tokens: 40 })).body
    network.fail(calls, failure)
    expect((await here.post('settle', { reservationId, tokens: 15 })).status).toBe(status)
    network.comeBack()
    const settled = { outcome: 'settled', corrected: -25 }
    expect((await there.post('settle', { reservationId, tokens: 15 })).body).toEqual(settled)
    expect((await here.post('settle', { reservationId, tokens: 15 })).body['corrected']).toBe(0)
    expect(await here.remaining(ORDER)).toBe(85)
  })

  it.each([
    ['was noted', 'decide', { outcome: 'settled', corrected: -25 }, 85],
    // It never counts too little.
    ['was done', 'settle', { outcome: 'late', corrected: 15 }, 70],
  ])('is a settlement that %s with unknown outcome: a retry counts once or twice', async (...given) => {
    const [, call, again, remaining] = given
    const network = new Network()
    const [here, there] = [network.process('closed'), network.process('closed')]
    const { reservationId } = (await here.post('reserve', { ...ORDER, tokens: 40 })).body
    network.loseAnswers([call])
    expect((await here.post('settle', { reservationId, tokens: 15 })).status).toBe(504)
    network.comeBack()
    expect((await there.post('settle', { reservationId, tokens: 15 })).body).toEqual(again)
    expect(await here.remaining(ORDER)).toBe(remaining)
  })

  it('is a settlement whose mark could not be taken back either: the node that made it tries again', async () => {
    const network = new Network()
    const [here, there] = [network.process('closed'), network.process('closed')]
    const { reservationId } = (await here.post('reserve', { ...ORDER, tokens: 40 })).body
    network.fail(['settle', 'reset'], UNAVAILABLE)
    expect((await here.post('settle', { reservationId, tokens: 15 })).status).toBe(503)
    network.comeBack()
    expect((await here.post('settle', { reservationId, tokens: 15 })).body['corrected']).toBe(-25)
    expect((await there.post('settle', { reservationId, tokens: 15 })).body['corrected']).toBe(0)
    expect(await here.remaining(ORDER)).toBe(85)
  })

  it('does not keep an acquire without slots from going on', async () => {
    const clock = new FakeClock()
    const away = storeUnavailable({ because: 'unreachable', problem: 'it went away just now' })
    const store = { ...deferredStore(memoryStore({ clock })), settle: () => Promise.reject(away) }
    const api = new CheckApi({ store, clock, ruleSet: RULES })
    expect(await api.post('acquire', ORDER)).toMatchObject({ status: 200, body: { allowed: true, expiresAt: null } })
  })

  it.each([
    ['SLUICE_STORE_FULL', 503, 'SLUICE_HTTP_OVERLOADED'],
    ['SLUICE_CLOSED', 503, 'SLUICE_HTTP_NOT_READY'],
  ] as const)('is a problem: %s', async (code, status, problem) => {
    const clock = new FakeClock()
    const failing: Store<'sync'> = Object.assign(memoryStore({ clock }), {
      decide: () => {
        throw new SluiceError(code, { problem: 'it cannot be' })
      },
    })
    for (const one of [failing, deferredStore(failing)]) {
      const api = new CheckApi({ store: one, clock, ruleSet: RULES })
      expect(await api.post('reserve', ORDER)).toMatchObject({
        status,
        headers: { 'Retry-After': '1' },
        body: { code: problem },
      })
    }
  })

  it('is thrown on when it is a mistake of ours', async () => {
    const clock = new FakeClock()
    const store = deferredStore(memoryStore({ clock }))
    const failing: Store<Mode> = { ...store, decide: () => Promise.reject(new RangeError('a mistake')) }
    const api = new CheckApi({ store: failing, clock, ruleSet: RULES })
    await expect(api.post('check', ORDER)).rejects.toThrow('a mistake')
    const unsupported = new SluiceError('SLUICE_UNSUPPORTED', { problem: 'another mistake' })
    const other = new CheckApi({
      store: { ...failing, decide: () => Promise.reject(unsupported) },
      clock,
      ruleSet: RULES,
    })
    await expect(other.post('check', ORDER)).rejects.toThrow('another mistake')
  })
})
