import { FakeClock, FakeTimers, ReferenceStore, START_MICROS } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { SluiceError } from '../../errors.ts'
import { createLimiter } from '../../limiter/create-any-limiter.ts'
import type { Denied } from '../../limiter/decision.ts'
import type { Reservation } from '../../limiter/reservation.ts'
import type { FailureMode, Rule } from '../../rule/rule.ts'
import { compileRule } from '../../rule-kinds.ts'
import { createBatch, createItem } from '../batch.ts'
import { CallbackStore, type PendingBatch } from '../callback-store.ts'
import type { Store } from '../store.ts'
import { outcomeUnknown, storeUnavailable } from '../store-error.ts'
import type { StoreEvent } from '../store-event.ts'
import type { FallbackStoreOptions } from './fallback-options.ts'
import { type FallbackStart, fallbackStore, startingFallbackStore } from './fallback-store.ts'

interface SentCall {
  readonly name: string
  /** Executes the call, and answers. */
  answer(): void
  reject(error: unknown): void
}

/** A store behind a network that the test owns: it answers when the test says so, or at once while it is `well`. */
class RemoteStore implements Store<'async'> {
  readonly mode = 'async'
  readonly sent: SentCall[] = []
  readonly counters: ReferenceStore
  well = true
  closed = 0

  constructor(clock: FakeClock) {
    this.counters = new ReferenceStore(clock)
  }

  decide: Store<'async'>['decide'] = (batch) => this.#call('decide', () => this.counters.decide(batch))
  settle: Store<'async'>['settle'] = (receipt, actuals) =>
    this.#call('settle', () => this.counters.settle(receipt, actuals))
  block: Store<'async'>['block'] = (...args) => this.#call('block', () => this.counters.block(...args))
  reset: Store<'async'>['reset'] = (...args) => this.#call('reset', () => this.counters.reset(...args))

  close(): Promise<void> {
    this.closed++
    return this.counters.close()
  }

  names(): string[] {
    return this.sent.map(({ name }) => name)
  }

  #call<T>(name: string, act: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const answer = () => resolve(act())
      this.sent.push({ name, answer, reject })
      if (this.well) answer()
    })
  }
}

/** A store that keeps every batch, and never completes one. */
class SilentStore extends CallbackStore {
  readonly pending: PendingBatch[] = []
  readonly #isSent: boolean

  constructor(isSent: boolean) {
    super()
    this.#isSent = isSent
  }

  submit(pending: PendingBatch): void {
    pending.isSent = this.#isSent
    this.pending.push(pending)
  }

  settle = (): Promise<never> => new Promise(() => undefined)
  block = (): Promise<never> => new Promise(() => undefined)
  reset = (): Promise<never> => new Promise(() => undefined)
  close = (): Promise<void> => Promise.resolve()
}

/** Chance in the middle: a pause is as long as it is called. */
const EVEN = { nextUint32: () => 0x80_00_00_00 }

const TEN = { algorithm: 'fixed-window', limit: 10, window: '1h' } as const

function scene(options: FallbackStoreOptions = {}, rule: Rule = TEN, start?: FallbackStart) {
  const clock = new FakeClock()
  const timers = new FakeTimers(clock)
  const remote = new RemoteStore(clock)
  const events: StoreEvent[] = []
  const all = {
    clock,
    timers,
    monotonicMs: () => (clock.nowMicros() - START_MICROS) / 1000,
    random: EVEN,
    observe: (event: StoreEvent) => void events.push(event),
    ...options,
  }
  const store = start === undefined ? fallbackStore(remote, all) : startingFallbackStore(remote, all, start)
  const limiter = createLimiter({ ...rule, store, clock, random: EVEN, timers, name: 'rule' })
  /** Units left for the key in the remote store. */
  const leftRemotely = () =>
    createLimiter({ ...rule, store: remote.counters, clock, name: 'rule' }).peek('key').remaining
  /** Fails checks until the breaker is open. */
  const openBreaker = async () => {
    remote.well = false
    for (let call = 0; call < 5; call++) {
      const answer = limiter.peek('other')
      remote.sent.at(-1)!.reject(storeUnavailable({ because: 'unreachable', problem: 'gone' }))
      await answer
    }
    expect(store.state).toBe('open')
    remote.sent.length = 0
    events.length = 0
  }
  return { clock, timers, remote, events, store, limiter, leftRemotely, openBreaker }
}

async function reserved(answer: Promise<Reservation<'async'> | Denied>): Promise<Reservation<'async'>> {
  const reservation = await answer
  if (!('settle' in reservation)) throw new Error('denied')
  return reservation
}

/** What became of a promise by the time everything has run that can. */
async function outcomeOf<T>(timers: FakeTimers, promise: Promise<T>): Promise<T | 'pending'> {
  let outcome: T | 'pending' = 'pending'
  promise.then(
    (value) => {
      outcome = value
    },
    () => undefined,
  )
  await timers.advance(0)
  return outcome
}

describe('while the store answers', () => {
  it('says what the store says', async () => {
    const { limiter, store, events } = scene()
    expect(await limiter.check('key', { cost: 4 })).toMatchObject({ allowed: true, remaining: 6, failure: undefined })
    expect(await limiter.check('key', { cost: 7 })).toMatchObject({ allowed: false, reason: 'limit', remaining: 6 })
    expect(await limiter.check('key', { cost: 7, partial: true })).toMatchObject({ allowed: true, cost: 6 })
    expect(store.stats()).toMatchObject({ asked: 3, failed: 0, pending: 0, fellBack: { open: 0, closed: 0, local: 0 } })
    expect(events).toEqual(Array.from({ length: 3 }, () => ({ type: 'asked', micros: 0, outcome: 'answered' })))
  })

  it('measures how long it took', async () => {
    const { limiter, timers, remote, events } = scene()
    remote.well = false
    const answer = limiter.check('key')
    await timers.advance(12.5)
    remote.sent[0]!.answer()
    await answer
    expect(events).toEqual([{ type: 'asked', micros: 12_500, outcome: 'answered' }])
  })

  it('passes mistakes on to their maker: they are no failures', async () => {
    const { limiter, remote, store, events } = scene({ breaker: { failures: 1 } })
    remote.well = false
    for (const code of ['SLUICE_UNSUPPORTED', 'SLUICE_CLOSED', 'SLUICE_STORE_FULL'] as const) {
      const answer = limiter.check('key')
      remote.sent.at(-1)!.reject(new SluiceError(code, { problem: 'no' }))
      await expect(answer).rejects.toMatchObject({ code })
    }
    expect(store.state).toBe('closed')
    expect(store.stats()).toMatchObject({ asked: 3, failed: 0 })
    expect(events.map((event) => event.type === 'asked' && event.outcome)).toEqual(['misused', 'misused', 'misused'])
  })
})

describe('when the store hangs', () => {
  it.each<[FailureMode, object]>([
    ['open', { allowed: true, reason: 'allowed', cost: 3, limit: 10, remaining: null, resetAt: 0, retryAfterMs: 0 }],
    ['closed', { allowed: false, reason: 'unavailable', cost: 0, remaining: 0, retryAfterMs: 50 }],
    ['local', { allowed: true, reason: 'allowed', cost: 3, limit: 5, remaining: 2 }],
  ])('answers within the deadline by failure mode: %s', async (mode, expected) => {
    const { limiter, timers, remote, events, store } = scene({ failureMode: mode, nodes: () => 2 })
    remote.well = false
    const answer = limiter.check('key', { cost: 3 })
    await timers.advance(49.999)
    expect(await outcomeOf(timers, answer)).toBe('pending')
    await timers.advance(0.001)
    expect(await outcomeOf(timers, answer)).toMatchObject({
      ...expected,
      failure: { mode, cause: 'deadline', charged: 'unknown' },
    })
    expect(events).toEqual([
      { type: 'asked', micros: 50_000, outcome: 'failed' },
      { type: 'failed', cause: 'deadline', charged: 'unknown', error: undefined },
      { type: 'fell-back', mode, rule: 'rule' },
    ])
    expect(store.stats()).toMatchObject({ asked: 1, failed: 1, pending: 0, fellBack: { [mode]: 1 } })
  })

  it('nothing may have been charged by a question that charges nothing', async () => {
    const { limiter, timers, remote } = scene()
    remote.well = false
    const answer = limiter.peek('key', { cost: 3 })
    await timers.advance(50)
    expect(await answer).toMatchObject({ allowed: true, cost: 0, remaining: null, failure: { charged: 'no' } })
  })

  it.each([
    { isSent: false, charged: 'no' },
    { isSent: true, charged: 'unknown' },
  ] as const)('a batch is charged $charged when it was sent: $isSent', async ({ isSent, charged }) => {
    const { clock, timers } = scene()
    const silent = new SilentStore(isSent)
    const monotonicMs = () => (clock.nowMicros() - START_MICROS) / 1000
    const store = fallbackStore(silent, { clock, timers, monotonicMs, random: EVEN })
    const answer = createLimiter({ ...TEN, store, clock, timers }).check('key')
    await timers.advance(50)
    expect(await answer).toMatchObject({ failure: { cause: 'deadline', charged } })
    expect(silent.pending.map(({ isAbandoned }) => isAbandoned)).toEqual([true])
  })

  it('the store beneath keeps the batch: what it writes late reaches no batch in use', async () => {
    const { clock, timers } = scene()
    const silent = new SilentStore(true)
    const monotonicMs = () => (clock.nowMicros() - START_MICROS) / 1000
    const store = fallbackStore(silent, { clock, timers, monotonicMs, random: EVEN })
    const limiter = createLimiter({ ...TEN, store, clock, timers })
    const answers = [limiter.check('key')]
    await timers.advance(50)
    answers.push(limiter.check('key'), limiter.check('key'))
    const batches = silent.pending.map(({ batch }) => batch)
    expect(new Set(batches).size).toBe(3)
    expect(new Set(batches.flatMap(({ items }) => items)).size).toBe(3)
    await timers.advance(50)
    expect(await Promise.all(answers)).toHaveLength(3)
  })

  it('waits for its deadline', async () => {
    const { limiter, timers, remote } = scene({ deadlineMs: 200 })
    remote.well = false
    const answer = limiter.check('key')
    await timers.advance(199)
    expect(await outcomeOf(timers, answer)).toBe('pending')
    await timers.advance(1)
    expect(await outcomeOf(timers, answer)).toMatchObject({ failure: { cause: 'deadline' } })
  })

  it('one timer watches over all calls', async () => {
    const { limiter, timers, remote } = scene()
    remote.well = false
    const answers = Array.from({ length: 100 }, () => limiter.check('key'))
    expect(timers.pending).toBe(1)
    await timers.advance(50)
    await Promise.all(answers)
    expect(timers.pending).toBe(0)
  })

  it('a late answer does not change the decision', async () => {
    const { timers, remote, store } = scene({ failureMode: 'closed' })
    remote.well = false
    const [limit] = compileRule('rule', TEN)
    const batch = createBatch([createItem(limit!, 'key', 1)])
    const answer = store.decide(batch)
    await timers.advance(50)
    await answer
    const before = structuredClone(batch)
    remote.sent[0]!.answer()
    await timers.advance(0)
    expect(batch).toEqual(before)
  })
})

describe('the failure mode', () => {
  it('of the rule wins over that of the store, and the strictest of a batch over the others', async () => {
    const { clock, timers, remote, store, events } = scene({ failureMode: 'open' })
    const rules = {
      open: { ...TEN, failureMode: 'open' },
      local: { ...TEN, failureMode: 'local' },
      closed: { ...TEN, failureMode: 'closed' },
      plain: TEN,
    } as const
    const set = createLimiter({ rules, store, clock, timers })
    remote.well = false
    const modeOf = async (...names: (keyof typeof rules)[]) => {
      const answer = set.checkAll(names.map((rule) => ({ rule, key: 'key' })))
      remote.sent.at(-1)!.reject(storeUnavailable({ because: 'unreachable', problem: 'gone' }))
      return (await answer).failure?.mode
    }
    expect(await modeOf('plain')).toBe('open')
    expect(await modeOf('closed')).toBe('closed')
    expect(await modeOf('plain', 'local')).toBe('local')
    expect(await modeOf('local', 'closed', 'open')).toBe('closed')
    const fellBack = events.filter((event) => event.type === 'fell-back').map(({ rule }) => rule)
    expect(fellBack).toEqual(['plain', 'closed', 'local', 'closed'])
  })

  it('open does not claim to know what is left, under any limit and in any answer', async () => {
    const { clock, timers, remote, store } = scene()
    const rules = { ten: TEN, queue: { algorithm: 'leaky-bucket-queue', capacity: 5, ratePerSecond: 1 } } as const
    const set = createLimiter({ rules, store, clock, timers })
    const limiter = set.limiter('ten')
    remote.well = false
    const joint = [
      { rule: 'ten', key: 'key' },
      { rule: 'queue', key: 'key' },
    ] as const
    const unknown = { remaining: null, resetAt: 0 }
    const known = { failure: { mode: 'open' }, allowed: true }
    const answers = [set.checkAll(joint), limiter.reserve('key'), limiter.acquire('key', { maxWait: '1s' })]
    await timers.advance(50)
    const [checked, reservation, acquired] = await Promise.all(answers)
    expect(checked).toMatchObject({ ...unknown, ...known, limit: 5, limits: [unknown, unknown] })
    expect(reservation).toMatchObject({ allowed: true, decision: { ...unknown, ...known, limit: 10 } })
    expect(acquired).toMatchObject({ ...unknown, ...known, limit: 10 })
  })

  it('open still denies what the limit can never give', async () => {
    const { clock, timers, remote, store } = scene()
    const rules = { none: { ...TEN, limit: 0 }, ten: TEN }
    const set = createLimiter({ rules, store, clock, timers })
    remote.well = false
    const answers = [
      set.limiter('none').check('key'),
      set.limiter('ten').check('key', { cost: 11 }),
      set.limiter('ten').check('key', { cost: 11, partial: true }),
    ]
    await timers.advance(50)
    expect(await Promise.all(answers)).toMatchObject([
      { allowed: false, reason: 'never', retryAfterMs: Number.POSITIVE_INFINITY, failure: { mode: 'open' } },
      { allowed: false, reason: 'never', limit: 10, remaining: null },
      { allowed: true, cost: 10 },
    ])
  })

  it('local takes no more than the share of this node, and follows the number of nodes', async () => {
    let nodes = 4
    const { limiter, openBreaker } = scene({ failureMode: 'local', nodes: () => nodes })
    await openBreaker()
    const allowed = async () => (await limiter.check('key')).allowed
    expect([await allowed(), await allowed(), await allowed(), await allowed()]).toEqual([true, true, true, false])
    nodes = 2
    expect([await allowed(), await allowed(), await allowed()]).toEqual([true, true, false])
    nodes = 0
    expect(await limiter.check('key')).toMatchObject({ allowed: true, limit: 10 })
  })

  it('local says "later" of what only its share can never give', async () => {
    const { limiter, openBreaker } = scene({ failureMode: 'local', nodes: () => 4 })
    await openBreaker()
    expect(await limiter.check('key', { cost: 5 })).toMatchObject({
      allowed: false,
      reason: 'limit',
      retryAfterMs: 250,
    })
    expect(await limiter.check('key', { cost: 11 })).toMatchObject({ allowed: false, reason: 'never' })
    expect(await limiter.check('key', { cost: 5, partial: true })).toMatchObject({ allowed: true, cost: 3 })
  })

  it('never makes a lease up', async () => {
    const { timers, remote, store } = scene({ failureMode: 'open' })
    remote.well = false
    const [limit] = compileRule('rule', TEN)
    const batch = { ...createBatch([createItem(limit!, 'key', 1)]), holder: 1, leaseMicros: 1000 }
    const answers = [store.decide({ ...batch }), store.decide({ ...batch })]
    remote.sent[1]!.reject(storeUnavailable({ because: 'unreachable', problem: 'gone' }))
    await expect(answers[1]).rejects.toMatchObject({
      code: 'SLUICE_STORE_UNAVAILABLE',
      failure: { cause: 'unreachable' },
    })
    const unknown = expect(answers[0]).rejects.toMatchObject({
      code: 'SLUICE_OUTCOME_UNKNOWN',
      failure: { cause: 'deadline' },
    })
    await timers.advance(50)
    await unknown
  })
})

describe('why there is no answer', () => {
  it.each([
    [storeUnavailable({ because: 'unreachable', problem: 'x' }), { cause: 'unreachable', charged: 'no' }],
    [storeUnavailable({ because: 'refused', problem: 'x' }), { cause: 'refused', charged: 'no' }],
    [outcomeUnknown({ because: 'unreachable', problem: 'x' }), { cause: 'unreachable', charged: 'unknown' }],
    [new Error('of a driver'), { cause: 'refused', charged: 'unknown' }],
  ])('%s', async (error, expected) => {
    const { limiter, remote, events } = scene()
    remote.well = false
    const answer = limiter.check('key')
    remote.sent[0]!.reject(error)
    expect((await answer).failure).toMatchObject({ mode: 'open', ...expected })
    expect(events).toContainEqual({ type: 'failed', ...expected, error })
  })

  it('reports the error of the store, also while it is not called, until it answers', async () => {
    const { limiter, remote, timers, openBreaker } = scene()
    remote.well = false
    const failed = limiter.check('key')
    remote.sent[0]!.reject(
      storeUnavailable({ because: 'refused', problem: 'wrong password', action: 'Give the right one.' }),
    )
    const detail = 'SLUICE_STORE_UNAVAILABLE: wrong password. Give the right one.'
    expect((await failed).failure).toMatchObject({ cause: 'refused', detail })
    await openBreaker()
    expect((await limiter.check('key')).failure).toMatchObject({
      cause: 'breaker',
      detail: 'SLUICE_STORE_UNAVAILABLE: gone.',
    })
    remote.well = true
    await timers.advance(60_000)
    await limiter.check('key')
    remote.well = false
    const late = limiter.check('key')
    await timers.advance(50)
    expect((await late).failure).toEqual({ mode: 'open', cause: 'deadline', charged: 'unknown', detail: undefined })
  })

  it('does not hand on what an error of another library says', async () => {
    const { limiter, remote } = scene()
    remote.well = false
    const answer = limiter.check('key')
    remote.sent[0]!.reject(new Error('redis://user:secret@host'))
    expect((await answer).failure?.detail).toBeUndefined()
  })

  it('a store that throws at once has failed too', async () => {
    const { limiter, remote } = scene()
    remote.decide = () => {
      throw new Error('of a driver')
    }
    expect((await limiter.check('key')).failure).toMatchObject({ cause: 'refused' })
  })
})

describe('the breaker', () => {
  it('opens, and asks again with one probe', async () => {
    const { limiter, timers, remote, store, events, openBreaker } = scene({ failureMode: 'closed' })
    await openBreaker()
    expect(await limiter.check('key')).toMatchObject({
      reason: 'unavailable',
      retryAfterMs: 250,
      failure: { cause: 'breaker', charged: 'no' },
    })
    expect(remote.names()).toEqual([])
    await timers.advance(250)
    const probe = limiter.check('key')
    expect(store.state).toBe('half-open')
    expect(await limiter.check('key')).toMatchObject({ failure: { cause: 'breaker' } })
    expect(remote.names()).toEqual(['decide'])
    await timers.advance(50)
    expect(await probe).toMatchObject({ failure: { cause: 'deadline' }, retryAfterMs: 500 })
    expect(store.state).toBe('open')
    const states = events.filter((event) => event.type === 'breaker').map(({ state }) => state)
    expect(states).toEqual(['half-open', 'open'])
  })

  it('does not open for what concerns only a part of the store, also as a probe', async () => {
    const { limiter, timers, remote, store, openBreaker } = scene({ failureMode: 'closed' })
    const failPartly = async (): Promise<void> => {
      const answer = limiter.check('key')
      remote.sent
        .at(-1)!
        .reject(storeUnavailable({ because: 'unreachable', problem: 'one node is gone', partial: true }))
      expect(await answer).toMatchObject({ reason: 'unavailable', failure: { cause: 'unreachable', charged: 'no' } })
    }
    remote.well = false
    for (let call = 0; call < 50; call++) await failPartly()
    expect(store.state).toBe('closed')
    await openBreaker()
    await timers.advance(250)
    await failPartly()
    expect(store.state).toBe('open')
    remote.well = true
    expect(await limiter.check('key')).toMatchObject({ allowed: true, failure: undefined })
    expect(store.state).toBe('closed')
  })

  it('recovers by itself', async () => {
    const { limiter, timers, remote, store, openBreaker, leftRemotely } = scene()
    await openBreaker()
    remote.well = true
    for (let ms = 0; ms < 250; ms += 50) {
      expect(await limiter.check('key')).toMatchObject({ allowed: true, failure: { cause: 'breaker' } })
      await timers.advance(50)
    }
    expect(leftRemotely()).toBe(10)
    expect(await limiter.check('key')).toMatchObject({ allowed: true, remaining: 9, failure: undefined })
    expect(store.state).toBe('closed')
    expect(await limiter.check('key')).toMatchObject({ allowed: true, remaining: 8, failure: undefined })
  })

  it('asks with the next call when the probe was a mistake', async () => {
    const { limiter, timers, remote, store, openBreaker } = scene()
    await openBreaker()
    await timers.advance(250)
    const probe = limiter.check('key')
    remote.sent[0]!.reject(new SluiceError('SLUICE_UNSUPPORTED', { problem: 'no' }))
    await expect(probe).rejects.toMatchObject({ code: 'SLUICE_UNSUPPORTED' })
    remote.well = true
    expect(await limiter.check('key')).toMatchObject({ failure: undefined })
    expect(store.state).toBe('closed')
  })

  it('a store that is unavailable at the start is used when it comes', async () => {
    const { limiter, timers, remote } = scene({ failureMode: 'local' })
    remote.well = false
    const first = limiter.check('key')
    await timers.advance(50)
    expect(await first).toMatchObject({ allowed: true, failure: { mode: 'local' } })
    remote.well = true
    expect(await limiter.check('key')).toMatchObject({ allowed: true, remaining: 9, failure: undefined })
  })
})

describe('late answers', () => {
  it.each<[string, FallbackStoreOptions, number]>([
    ['a denied caller', { failureMode: 'closed' }, 10],
    ['a caller denied by its share', { failureMode: 'local', nodes: () => 10 }, 10],
    ['a caller let through', { failureMode: 'open' }, 7],
    ['a caller let through by its share', { failureMode: 'local', nodes: () => 2 }, 7],
  ])('of %s', async (_who, options, left) => {
    const { limiter, timers, remote, leftRemotely, store, events } = scene(options)
    remote.well = false
    const answer = limiter.check('key', { cost: 3 })
    await timers.advance(50)
    await answer
    remote.well = true
    remote.sent[0]!.answer()
    expect(leftRemotely()).toBe(7)
    await timers.advance(0)
    expect(leftRemotely()).toBe(left)
    const givenBack = left === 10
    expect(events.at(-1)).toEqual({ type: 'late-answer', allowed: true, givenBack })
    expect(remote.names()).toEqual(givenBack ? ['decide', 'settle'] : ['decide'])
    expect(store.stats()).toMatchObject({ lateAnswers: 1, givenBack: givenBack ? 1 : 0 })
  })

  it('are given back once, and what cannot be given back stands', async () => {
    const { limiter, timers, remote, leftRemotely, events } = scene({ failureMode: 'closed' })
    remote.well = false
    const answer = limiter.check('key', { cost: 3 })
    await timers.advance(50)
    await answer
    remote.sent[0]!.answer()
    await timers.advance(0)
    remote.sent[1]!.reject(new Error('gone again'))
    await timers.advance(1000)
    expect(remote.names()).toEqual(['decide', 'settle'])
    expect(leftRemotely()).toBe(7)
    expect(events.at(-1)).toEqual({ type: 'late-answer', allowed: true, givenBack: false })
  })

  it('that charged nothing need nothing given back', async () => {
    const { limiter, timers, remote, events } = scene({ failureMode: 'closed' })
    remote.well = false
    const answers = [limiter.peek('key'), limiter.check('key', { cost: 11 })]
    await timers.advance(50)
    await Promise.all(answers)
    for (const call of remote.sent) call.answer()
    await timers.advance(0)
    expect(remote.names()).toEqual(['decide', 'decide'])
    expect(events.filter((event) => event.type === 'late-answer')).toEqual([
      { type: 'late-answer', allowed: true, givenBack: false },
      { type: 'late-answer', allowed: false, givenBack: false },
    ])
  })

  it('that are errors have no effect', async () => {
    const { limiter, timers, remote, store } = scene()
    remote.well = false
    const answer = limiter.check('key')
    await timers.advance(50)
    await answer
    remote.sent[0]!.reject(outcomeUnknown({ because: 'unreachable', problem: 'gone' }))
    await timers.advance(0)
    expect(store.stats()).toMatchObject({ asked: 1, failed: 1, lateAnswers: 0 })
  })

  it('of a reservation give its slot back', async () => {
    const rule = { algorithm: 'concurrency', limit: 1, lease: '1h', failureMode: 'closed' } as const
    const { limiter, timers, remote, leftRemotely } = scene({}, rule)
    remote.well = false
    const answer = limiter.reserve('key')
    await timers.advance(50)
    expect(await answer).toMatchObject({ allowed: false, reason: 'unavailable' })
    remote.well = true
    remote.sent[0]!.answer()
    expect(leftRemotely()).toBe(0)
    await timers.advance(0)
    expect(leftRemotely()).toBe(1)
  })
})

it('never sends anything again', async () => {
  const { limiter, timers, remote, store } = scene({ breaker: { failures: 1000 } })
  remote.well = false
  const answers = [limiter.check('key'), limiter.check('key'), limiter.check('key')]
  remote.sent[0]!.reject(outcomeUnknown({ because: 'unreachable', problem: 'gone' }))
  remote.sent[1]!.reject(storeUnavailable({ because: 'refused', problem: 'out of memory' }))
  const reset = expect(limiter.reset('key')).rejects.toMatchObject({ code: 'SLUICE_OUTCOME_UNKNOWN' })
  await timers.advance(50)
  await Promise.all([...answers, reset])
  await timers.advance(10_000)
  expect(remote.names()).toEqual(['decide', 'decide', 'decide', 'reset'])
  expect(store.stats()).toMatchObject({ asked: 4, failed: 4, pending: 0 })
})

it('in flight is bounded', async () => {
  const { limiter, timers, remote, store } = scene({ maxPending: 3, breaker: { failures: 1000 } })
  remote.well = false
  const waiting = Array.from({ length: 3 }, () => limiter.check('key'))
  expect(await limiter.check('key')).toMatchObject({ allowed: true, failure: { cause: 'deadline', charged: 'no' } })
  await expect(limiter.unblock('key')).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
  expect(remote.sent).toHaveLength(3)
  expect(store.stats().pending).toBe(3)
  remote.sent[1]!.answer()
  await waiting[1]
  const next = limiter.check('key')
  expect(remote.sent).toHaveLength(4)
  await timers.advance(50)
  await Promise.all([...waiting, next])
  expect(store.stats().pending).toBe(0)
})

describe('refunds go to the store that took the charge', () => {
  it('of the store, through an outage', async () => {
    const { limiter, remote, leftRemotely, openBreaker, timers } = scene({ failureMode: 'local' })
    const decision = await limiter.check('key', { cost: 4 })
    const other = await limiter.check('key', { cost: 1 })
    await openBreaker()
    await expect(limiter.refund(other)).rejects.toMatchObject({
      code: 'SLUICE_STORE_UNAVAILABLE',
      failure: { cause: 'breaker', charged: 'no' },
    })
    remote.well = true
    await timers.advance(250)
    expect(await limiter.refund(decision)).toEqual({ outcome: 'settled', corrected: -4 })
    expect(leftRemotely()).toBe(9)
  })

  it('of this node, also when the store is back', async () => {
    const { limiter, remote, leftRemotely, openBreaker, timers } = scene({ failureMode: 'local' })
    await limiter.check('key', { cost: 1 })
    await openBreaker()
    const decision = await limiter.check('key', { cost: 7 })
    const slot = await reserved(limiter.reserve('key', { cost: 2 }))
    expect(await limiter.check('key')).toMatchObject({ allowed: false, failure: { mode: 'local' } })
    remote.well = true
    await timers.advance(250)
    expect(await limiter.check('key')).toMatchObject({ allowed: true, failure: undefined })
    expect(await limiter.refund(decision)).toEqual({ outcome: 'settled', corrected: -7 })
    expect(await slot.settle(1)).toEqual({ outcome: 'settled', corrected: -1 })
    expect(leftRemotely()).toBe(8)
    remote.sent.length = 0
    await openBreaker()
    expect(await limiter.check('key')).toMatchObject({ allowed: true, remaining: 7 })
  })

  it('of no caller, when nothing was counted', async () => {
    const { limiter, remote, leftRemotely, openBreaker, timers } = scene({ failureMode: 'open' })
    await limiter.check('key', { cost: 5 })
    await openBreaker()
    const decision = await limiter.check('key', { cost: 3 })
    const reservation = await reserved(limiter.reserve('key', { cost: 3 }))
    remote.well = true
    await timers.advance(250)
    expect(await limiter.refund(decision)).toEqual({ outcome: 'settled', corrected: 0 })
    expect(await reservation.settle(9)).toEqual({ outcome: 'settled', corrected: 0 })
    expect(remote.names()).toEqual([])
    expect(leftRemotely()).toBe(5)
  })

  it('one fallback store does not take the charge of another for its own', async () => {
    const one = scene({ failureMode: 'local' })
    const other = scene({ failureMode: 'local' })
    await one.openBreaker()
    const decision = await one.limiter.check('key', { cost: 3 })
    await other.limiter.check('key', { cost: 5 })
    await other.limiter.refund(decision)
    expect(other.remote.names()).toEqual(['decide', 'settle'])
  })
})

describe('settlements, blocks and resets', () => {
  it('that get no answer may have happened', async () => {
    const { limiter, timers, remote } = scene()
    const decision = await limiter.check('key')
    remote.well = false
    const answers = [limiter.refund(decision), limiter.block('key', '1m'), limiter.reset('key')].map((answer) =>
      expect(answer).rejects.toMatchObject({
        code: 'SLUICE_OUTCOME_UNKNOWN',
        failure: { cause: 'deadline', charged: 'unknown' },
      }),
    )
    await timers.advance(50)
    await Promise.all(answers)
  })

  it('fail as the store says', async () => {
    const { limiter, remote } = scene()
    remote.well = false
    const refused = storeUnavailable({ because: 'refused', problem: 'out of memory' })
    const first = limiter.reset('key')
    remote.sent[0]!.reject(refused)
    await expect(first).rejects.toBe(refused)
    const beneath = new Error('of a driver')
    const second = limiter.reset('key')
    remote.sent[1]!.reject(beneath)
    await expect(second).rejects.toMatchObject({ code: 'SLUICE_OUTCOME_UNKNOWN', cause: beneath })
  })

  it('a block counts on this node whatever happens to the store', async () => {
    const { limiter, openBreaker } = scene({ failureMode: 'local' })
    await limiter.block('blocked before', '1h')
    await openBreaker()
    await expect(limiter.block('blocked since', '1h')).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
    expect(await limiter.check('blocked before')).toMatchObject({ reason: 'blocked' })
    expect(await limiter.check('blocked since')).toMatchObject({ reason: 'blocked' })
    await expect(limiter.unblock('blocked since')).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
    expect(await limiter.check('blocked since')).toMatchObject({ allowed: true })
  })

  it('a block with reset starts the counter of this node afresh', async () => {
    const { limiter, openBreaker } = scene({ failureMode: 'local', nodes: () => 2 })
    await openBreaker()
    expect(await limiter.check('key', { cost: 5 })).toMatchObject({ allowed: true, remaining: 0 })
    await expect(limiter.block('key', '1h', { reset: true })).rejects.toMatchObject({
      code: 'SLUICE_STORE_UNAVAILABLE',
    })
    expect(await limiter.check('key')).toMatchObject({ reason: 'blocked' })
    await expect(limiter.unblock('key')).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
    expect(await limiter.check('key', { cost: 5 })).toMatchObject({ allowed: true, remaining: 0 })
  })

  it('an adjustment has no other way to succeed than the store', async () => {
    const { limiter, openBreaker } = scene({ failureMode: 'local' })
    await openBreaker()
    await expect(limiter.adjust('key', 1)).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
  })

  it.each<[string, Rule]>([
    ['a window', TEN],
    ['a window whose share has nothing to carry over', { ...TEN, limit: 1, rollover: true }],
  ])('a reset counts on this node: %s', async (_name, rule) => {
    const { limiter, openBreaker } = scene({ failureMode: 'local', nodes: () => 2 }, rule)
    await openBreaker()
    while ((await limiter.check('key')).allowed);
    await expect(limiter.reset('key')).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
    expect((await limiter.check('key')).allowed).toBe(true)
  })
})

it('a reset finds counters that were made when there were other nodes', async () => {
  let nodes = 1
  const options = { failureMode: 'local', nodes: () => nodes } as const
  const { limiter, openBreaker } = scene(options, { ...TEN, limit: 1, rollover: true })
  await openBreaker()
  expect((await limiter.check('key')).allowed).toBe(true)
  expect((await limiter.check('key')).allowed).toBe(false)
  nodes = 2
  await expect(limiter.reset('key')).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
  nodes = 1
  expect((await limiter.check('key')).allowed).toBe(true)
})

describe('while the store starts', () => {
  /** A store that starts when the test says so. */
  function starting(options: FallbackStoreOptions = {}) {
    const started = Promise.withResolvers<void>()
    let waits = 0
    const untilStarted = (): Promise<void> => {
      waits++
      return started.promise
    }
    const parts = scene(options, TEN, { graceMs: 2000, untilStarted, hasBreakers: false })
    return { ...parts, start: () => started.resolve(), waits: () => waits }
  }

  it('checks wait, whatever the deadline, and are then made once, in their order', async () => {
    const { limiter, timers, remote, store, start, waits } = starting()
    const answers = [limiter.check('key', { cost: 4 }), limiter.check('key', { cost: 5 }), limiter.check('key')]
    await timers.advance(1999)
    expect(remote.names()).toEqual([])
    expect(store.stats()).toMatchObject({ asked: 0, failed: 0, pending: 3 })
    start()
    expect((await Promise.all(answers)).map(({ remaining }) => remaining)).toEqual([6, 1, 0])
    expect(await limiter.check('key')).toMatchObject({ allowed: false, failure: undefined })
    expect(remote.names()).toEqual(['decide', 'decide', 'decide', 'decide'])
    expect(waits()).toBe(1)
  })

  it('the deadline of what waited begins when it is made', async () => {
    const { limiter, timers, remote, start } = starting()
    remote.well = false
    const answer = limiter.check('key')
    await timers.advance(1000)
    start()
    expect(await outcomeOf(timers, answer)).toBe('pending')
    await timers.advance(49)
    expect(await outcomeOf(timers, answer)).toBe('pending')
    await timers.advance(1)
    expect(await answer).toMatchObject({ allowed: true, failure: { cause: 'deadline', charged: 'unknown' } })
  })

  it('failures do not open the breaker until the store has answered once', async () => {
    const { limiter, timers, remote, store, start } = starting()
    start()
    remote.well = false
    const late = Promise.all(Array.from({ length: 25 }, () => limiter.check('key')))
    await timers.advance(50)
    expect(new Set((await late).map(({ failure }) => failure?.cause))).toEqual(new Set(['deadline']))
    expect(store.state).toBe('closed')
    remote.well = true
    expect((await limiter.check('other')).failure).toBeUndefined()
    remote.well = false
    const later = Promise.all(Array.from({ length: 5 }, () => limiter.check('key')))
    await timers.advance(50)
    await later
    expect(store.state).toBe('open')
  })

  it('no more calls wait than may be in flight', async () => {
    const { limiter, remote, start } = starting({ maxPending: 2, failureMode: 'closed' })
    const waiting = [limiter.check('key'), limiter.check('key')]
    expect(await limiter.check('key')).toMatchObject({ failure: { cause: 'deadline', charged: 'no' } })
    start()
    expect((await Promise.all(waiting)).map(({ allowed }) => allowed)).toEqual([true, true])
    expect(remote.sent).toHaveLength(2)
  })

  it('closing ends the wait, and nothing is sent', async () => {
    const { limiter, timers, remote, store, start } = starting()
    const answers = [limiter.check('key'), limiter.reset('key')].map((answer) =>
      expect(answer).rejects.toMatchObject({ code: 'SLUICE_CLOSED' }),
    )
    await store.close()
    await Promise.all(answers)
    start()
    await timers.advance(0)
    expect(remote.names()).toEqual([])
    expect(timers.pending).toBe(0)
  })
})

describe('closing', () => {
  it('answers what is in flight, holds no timer, and closes the store', async () => {
    const { limiter, timers, remote, store } = scene({ failureMode: 'local' })
    remote.well = false
    const answers = [limiter.check('key'), limiter.reset('key')].map((answer) =>
      expect(answer).rejects.toMatchObject({ code: 'SLUICE_CLOSED' }),
    )
    await store.close()
    await Promise.all(answers)
    expect(timers.pending).toBe(0)
    expect(remote.closed).toBe(1)
  })

  it('ends while the store of this node is in use', async () => {
    const { limiter, timers, remote, store } = scene({ failureMode: 'local' })
    remote.well = false
    const answer = limiter.check('key')
    await timers.advance(50)
    expect(await answer).toMatchObject({ failure: { mode: 'local' } })
    await store.close()
    await expect(limiter.check('key')).rejects.toMatchObject({ code: 'SLUICE_CLOSED' })
  })

  it('may be done again, and ends everything', async () => {
    const { limiter, remote, store } = scene()
    const decision = await limiter.check('key')
    await Promise.all([store.close(), store.close()])
    await store.close()
    expect(remote.closed).toBe(1)
    const closed = { code: 'SLUICE_CLOSED' }
    await expect(limiter.check('key')).rejects.toMatchObject(closed)
    await expect(limiter.refund(decision)).rejects.toMatchObject(closed)
    await expect(limiter.block('key', '1m')).rejects.toMatchObject(closed)
    await expect(limiter.reset('key')).rejects.toMatchObject(closed)
  })

  it('a charge that is answered after it has no effect', async () => {
    const { limiter, timers, remote, store } = scene()
    remote.well = false
    const answer = expect(limiter.check('key')).rejects.toMatchObject({ code: 'SLUICE_CLOSED' })
    const late = remote.sent[0]!
    await store.close()
    await answer
    late.reject(new Error('gone'))
    await timers.advance(0)
  })
})

it('an observer that throws does not hurt a decision', async () => {
  const { limiter, timers, remote } = scene({
    observe: () => {
      throw new Error('of the observer')
    },
    breaker: { failures: 1 },
  })
  expect(await limiter.check('key')).toMatchObject({ allowed: true, failure: undefined })
  remote.well = false
  const answer = limiter.check('key')
  await timers.advance(50)
  expect(await answer).toMatchObject({ allowed: true, failure: { cause: 'deadline' } })
})

it.each<[FallbackStoreOptions, string]>([
  [{ deadlineMs: 0 }, 'deadlineMs'],
  [{ deadlineMs: 60_001 }, 'deadlineMs'],
  [{ maxPending: 0 }, 'maxPending'],
  [{ failureMode: 'ajar' as FailureMode }, 'failureMode'],
  [{ breaker: { failures: 0 } }, 'failures'],
])('does not take %j', (options, name) => {
  expect(() => scene(options)).toThrow(expect.objectContaining({ code: 'SLUICE_INVALID_OPTION' }))
  expect(() => scene(options)).toThrow(`"${name}"`)
})
