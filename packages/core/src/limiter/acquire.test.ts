import { deferredStore, FakeClock, FakeTimers, seededRandom } from '@sluice/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Rule } from '../rule/rule.ts'
import { memoryStore } from '../store/memory/memory-store.ts'
import type { Mode, Store } from '../store/store.ts'
import type { AbortSignalLike } from '../system/abort.ts'
import { createLimiter } from './create-any-limiter.ts'
import type { Decision } from './decision.ts'
import type { AcquireOptions, Limiter } from './limiter.ts'
import type { Reservation } from './reservation.ts'

const bucket = { algorithm: 'token-bucket', capacity: 2, refillPerSecond: 10 } as const
const slots = { algorithm: 'concurrency', limit: 1, lease: '2s' } as const
const longSlots = { ...slots, lease: '1h' } as const
const queue = { algorithm: 'leaky-bucket-queue', capacity: 4, ratePerSecond: 10 } as const

let clock: FakeClock
let timers: FakeTimers
let log: string[]

beforeEach(() => {
  clock = new FakeClock()
  timers = new FakeTimers(clock)
  log = []
})

// No test may leave a pending timer behind.
afterEach(() => expect(timers.pending).toBe(0))

function limiterOf(rule: Rule, options: { store?: Store; maxWaiting?: number } = {}): Limiter {
  const { store = memoryStore({ clock }), ...rest } = options
  return createLimiter<Mode>({ ...rule, ...rest, store, clock, timers, random: seededRandom(1) })
}

/** Starts waiting, and notes in the log when and how it ended. */
function start(
  limiter: Limiter,
  name: string,
  { key = 'key', ...options }: AcquireOptions & { key?: string } = {},
): void {
  const startedAt = clock.nowMicros()
  const note = (what: string): void => void log.push(`${name} ${what} after ${(clock.nowMicros() - startedAt) / 1000}`)
  limiter.acquire(key, options).then(
    (decision) => note(decision.allowed ? 'let in' : `denied (${decision.reason})`),
    (reason: unknown) => note(`ended (${reason instanceof Error && 'code' in reason ? reason.code : String(reason)})`),
  )
}

/** Takes the only slot of a key. */
async function held(limiter: Limiter, key = 'key'): Promise<Reservation> {
  const slot = await limiter.reserve(key)
  if (!slot.allowed) throw new Error('There is no slot.')
  return slot
}

/** A signal that counts who listens. */
function countingSignal(): { signal: AbortSignalLike; abort(reason: unknown): void; readonly listeners: number } {
  const listeners = new Set<() => void>()
  const signal = {
    aborted: false,
    reason: undefined as unknown,
    addEventListener: (_type: 'abort', listener: () => void) => void listeners.add(listener),
    removeEventListener: (_type: 'abort', listener: () => void) => void listeners.delete(listener),
  }
  return {
    signal,
    abort(reason) {
      signal.aborted = true
      signal.reason = reason
      for (const listener of [...listeners]) listener()
    },
    get listeners() {
      return listeners.size
    },
  }
}

describe.each<[string, () => Store]>([
  ['a store that answers at once', () => memoryStore({ clock })],
  ['a store that answers by promise', () => deferredStore(memoryStore({ clock }))],
])('acquire on %s', (_what, store) => {
  it('does not wait when it need not', async () => {
    const limiter = limiterOf(bucket, { store: store() })
    start(limiter, 'a')
    start(limiter, 'b', { maxWait: '1s' })
    await timers.advance(0)
    expect(log).toEqual(['a let in after 0', 'b let in after 0'])
  })

  it('waits exactly as long as it must, in the order of arrival', async () => {
    const limiter = limiterOf(bucket, { store: store() })
    await limiter.check('key', { cost: 2 })
    for (const name of ['a', 'b', 'c']) start(limiter, name)
    await timers.advance(99)
    expect(log).toEqual([])
    await timers.advance(1000)
    expect(log).toEqual(['a let in after 100', 'b let in after 200', 'c let in after 300'])
  })

  it('keeps arrival order when a later caller asks for fewer units', async () => {
    const limiter = limiterOf(bucket, { store: store() })
    await limiter.check('key', { cost: 2 })
    start(limiter, 'two', { cost: 2 })
    start(limiter, 'one')
    await timers.advance(1000)
    expect(log).toEqual(['two let in after 200', 'one let in after 300'])
  })

  it('does not let one key wait for another', async () => {
    const limiter = limiterOf(bucket, { store: store() })
    await limiter.check('busy', { cost: 2 })
    start(limiter, 'busy', { key: 'busy' })
    start(limiter, 'idle', { key: 'idle' })
    await timers.advance(0)
    expect(log).toEqual(['idle let in after 0'])
    await timers.advance(100)
    expect(log).toHaveLength(2)
  })

  it('denies at once what could never be let in', async () => {
    const limiter = limiterOf(bucket, { store: store() })
    start(limiter, 'a', { cost: 3 })
    start(limiter, 'b', { cost: 3, maxWait: '1h' })
    await timers.advance(0)
    expect(log).toEqual(['a denied (never) after 0', 'b denied (never) after 0'])
    start(limiterOf({ limit: 0, window: '1s' }), 'c')
    await timers.advance(0)
    expect(log[2]).toBe('c denied (never) after 0')
  })

  it('an abort ends the wait, and costs nothing', async () => {
    const limiter = limiterOf(bucket, { store: store() })
    await limiter.check('key', { cost: 2 })
    const [first, second] = [countingSignal(), countingSignal()]
    start(limiter, 'a', { signal: first.signal })
    start(limiter, 'b', { signal: second.signal })
    start(limiter, 'c')
    await timers.advance(50)
    second.abort('changed my mind')
    first.abort('me too')
    await timers.advance(0)
    expect(log).toEqual(['b ended (changed my mind) after 50', 'a ended (me too) after 50'])
    await timers.advance(50)
    expect(log[2]).toBe('c let in after 100')
    expect([first.listeners, second.listeners]).toEqual([0, 0])
    await timers.advance(100)
    expect(await limiter.peek('key')).toMatchObject({ remaining: 1 })
  })

  it('an abort before the start is an abort', async () => {
    const limiter = limiterOf(bucket, { store: store() })
    const { signal, abort } = countingSignal()
    abort('too late')
    await expect(limiter.acquire('key', { signal })).rejects.toBe('too late')
    expect(await limiter.peek('key')).toMatchObject({ remaining: 2 })
  })

  it('takes the platform’s own signals, however it ends', async () => {
    const limiter = limiterOf(bucket, { store: store() })
    await limiter.check('key', { cost: 2 })
    const controller = new AbortController()
    start(limiter, 'a', { signal: controller.signal })
    await timers.advance(10)
    controller.abort()
    await timers.advance(0)
    expect(log).toEqual(['a ended (20) after 10'])
    start(limiter, 'b', { signal: new AbortController().signal })
    await timers.advance(90)
    expect(log[1]).toBe('b let in after 90')
  })

  it('denies at once a wait that is known to be too long', async () => {
    const limiter = limiterOf(bucket, { store: store() })
    await limiter.check('key', { cost: 2 })
    const denied = limiter.acquire('key', { maxWait: 99 })
    await timers.advance(0)
    expect(await denied).toMatchObject({ allowed: false, reason: 'limit', retryAfterMs: 100, cost: 0 })
    start(limiter, 'b', { maxWait: 100 })
    await timers.advance(100)
    expect(log).toEqual(['b let in after 100'])
  })

  it('does not wait longer than its maximum behind a caller that waits longer', async () => {
    const limiter = limiterOf({ ...bucket, refillPerSecond: 1 }, { store: store() })
    await limiter.check('key', { cost: 2 })
    start(limiter, 'patient', { cost: 2 })
    start(limiter, 'hurried', { maxWait: 300 })
    await timers.advance(299)
    expect(log).toEqual([])
    await timers.advance(1)
    expect(log).toEqual(['hurried denied (limit) after 300'])
    await timers.advance(1700)
    expect(log[1]).toBe('patient let in after 2000')
    expect(await limiter.peek('key')).toMatchObject({ remaining: 0 })
  })

  it('closing turns everybody away, and leaves no timer', async () => {
    const limiter = limiterOf(bucket, { store: store() })
    await limiter.check('key', { cost: 2 })
    for (const name of ['a', 'b', 'c']) start(limiter, name, { maxWait: '1h' })
    await timers.advance(20)
    await limiter.close()
    await timers.advance(0)
    expect(log.toSorted()).toEqual(['a', 'b', 'c'].map((name) => `${name} ended (SLUICE_CLOSED) after 20`))
    expect(timers.pending).toBe(0)
    start(limiter, 'd')
    await timers.advance(0)
    expect(log[3]).toBe('d ended (SLUICE_CLOSED) after 0')
  })
})

describe('acquire', () => {
  it('asks the store again only when there is something to have', async () => {
    const store = memoryStore({ clock })
    let asked = 0
    const counting: Store<'sync'> = {
      ...proxyOf(store),
      decide(batch) {
        asked++
        store.decide(batch)
      },
    }
    const limiter = limiterOf(bucket, { store: counting })
    for (let call = 0; call < 50; call++) start(limiter, String(call))
    await timers.advance(10_000)
    expect(log).toHaveLength(50)
    expect(log.at(-1)).toBe('49 let in after 4800')
    // Once to be let in, and for all but the first two once to learn how long to wait.
    expect(asked).toBe(50 + 48)
  })

  it('denies the one who is too many, and does not let it wait', async () => {
    const limiter = limiterOf(bucket, { maxWaiting: 2 })
    await limiter.check('key', { cost: 2 })
    for (const name of ['a', 'b', 'c']) start(limiter, name)
    await timers.advance(0)
    expect(log).toEqual(['c denied (limit) after 0'])
    await timers.advance(200)
    expect(log).toHaveLength(3)
  })

  it('gives back what was charged while the caller gave up', async () => {
    const { signal, abort } = countingSignal()
    const inner = memoryStore({ clock })
    const answered = Promise.withResolvers<void>()
    const slow: Store<'async'> = {
      ...deferredStore(inner),
      decide: async (batch) => {
        inner.decide(batch)
        await answered.promise
      },
    }
    start(limiterOf(bucket, { store: slow }), 'a', { signal })
    await timers.advance(0)
    const seen = limiterOf(bucket, { store: proxyOf(inner) })
    expect(await seen.peek('key')).toMatchObject({ remaining: 1 })
    abort('gone')
    answered.resolve()
    await timers.advance(0)
    expect(log).toEqual(['a ended (gone) after 0'])
    expect(await seen.peek('key')).toMatchObject({ remaining: 2 })
  })

  it('checks its arguments', async () => {
    const limiter = limiterOf(bucket)
    const misuse: [AcquireOptions | undefined, string, string][] = [
      [undefined, '', 'SLUICE_INVALID_KEY'],
      [{ cost: -1 }, 'key', 'SLUICE_INVALID_COST'],
      [{ maxWait: 0 }, 'key', 'SLUICE_INVALID_DURATION'],
    ]
    for (const [options, key, code] of misuse) {
      await expect(limiter.acquire(key, options)).rejects.toMatchObject({ code })
    }
    expect(await limiter.acquire('key')).toMatchObject({ allowed: true })
  })

  it('waits for a block to end', async () => {
    const limiter = limiterOf(bucket)
    await limiter.block('key', '3s')
    start(limiter, 'a')
    await timers.advance(3000)
    expect(log).toEqual(['a let in after 3000'])
  })

  it('is let in at once where nothing limits', async () => {
    start(limiterOf({ limit: 'off', window: '1s' }), 'a')
    await timers.advance(0)
    expect(log).toEqual(['a let in after 0'])
  })
})

describe('acquire on a shaper', () => {
  it('lets calls out one after the other, at its rate', async () => {
    const limiter = limiterOf(queue)
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) start(limiter, name)
    await timers.advance(2000)
    // Four find room; the others wait for it, and then for their turn.
    expect(log).toEqual([0, 100, 200, 300, 400, 500].map((ms, index) => `${'abcdef'[index]} let in after ${ms}`))
  })

  it('denies a turn that comes too late, and gives the place back', async () => {
    const limiter = limiterOf(queue)
    for (const name of ['a', 'b', 'c']) start(limiter, name)
    await timers.advance(0)
    const denied = limiter.acquire('key', { maxWait: 250 })
    await timers.advance(0)
    expect(await denied).toMatchObject({
      allowed: false,
      reason: 'limit',
      retryAfterMs: 50,
      cost: 0,
      delayMs: 0,
      remaining: 1,
    })
    expect(await limiter.peek('key')).toMatchObject({ remaining: 1 })
    await timers.advance(500)
    expect(log).toHaveLength(3)
  })

  it('an abort of the last in the queue frees its place', async () => {
    const limiter = limiterOf(queue)
    const { signal, abort } = countingSignal()
    start(limiter, 'a')
    start(limiter, 'b', { signal })
    await timers.advance(20)
    abort('no')
    await timers.advance(0)
    start(limiter, 'c')
    await timers.advance(500)
    expect(log).toEqual(['a let in after 0', 'b ended (no) after 20', 'c let in after 80'])
  })

  it('an abort in the middle does not release two callers at once', async () => {
    const limiter = limiterOf(queue)
    const { signal, abort } = countingSignal()
    start(limiter, 'a')
    start(limiter, 'b', { signal })
    start(limiter, 'c')
    await timers.advance(20)
    abort('no')
    start(limiter, 'd')
    await timers.advance(500)
    expect(log).toEqual(['a let in after 0', 'b ended (no) after 20', 'c let in after 200', 'd let in after 280'])
  })

  it('makes the one who is too many wait for its turn all the same', async () => {
    const limiter = limiterOf(queue, { maxWaiting: 0 })
    start(limiter, 'a')
    start(limiter, 'b')
    await timers.advance(100)
    expect(log).toEqual(['a let in after 0', 'b let in after 100'])
  })

  it('closing ends the waits, and leaves no timer', async () => {
    const limiter = limiterOf(queue)
    for (const name of ['a', 'b', 'c']) start(limiter, name)
    await timers.advance(50)
    await limiter.close()
    await timers.advance(0)
    expect(log).toEqual(['a let in after 0', 'b ended (SLUICE_CLOSED) after 50', 'c ended (SLUICE_CLOSED) after 50'])
  })
})

describe.each<[string, () => Store]>([
  ['a store that answers at once', () => memoryStore({ clock })],
  ['a store that answers by promise', () => deferredStore(memoryStore({ clock }))],
])('acquire of a slot on %s', (_what, store) => {
  it('is let in at the instant of a release, in the order of arrival', async () => {
    const limiter = limiterOf(slots, { store: store() })
    const slot = await held(limiter)
    for (const name of ['a', 'b', 'c']) start(limiter, name)
    await timers.advance(107)
    expect(log).toEqual([])
    await slot.release()
    await timers.advance(0)
    expect(log).toEqual(['a let in after 107'])
    await limiter.reset('key')
    await timers.advance(0)
    expect(log).toEqual(['a let in after 107', 'b let in after 107'])
    await timers.advance(2000)
    expect(log.slice(2)).toEqual(['c let in after 2107'])
  })

  it('is let in by a refund, and by a release of another limiter of the rule', async () => {
    const shared = store()
    const [limiter, other] = [limiterOf(slots, { store: shared }), limiterOf(slots, { store: shared })]
    const decision = await limiter.check('key')
    start(other, 'a')
    await timers.advance(55)
    await limiter.refund(decision)
    await timers.advance(0)
    expect(log).toEqual(['a let in after 55'])
  })

  it('is woken by no other key', async () => {
    const limiter = limiterOf(longSlots, { store: store() })
    await held(limiter)
    const other = await held(limiter, 'other')
    start(limiter, 'a')
    await timers.advance(55)
    await other.release()
    await timers.advance(0)
    expect(log).toEqual([])
    await limiter.close()
    await timers.advance(0)
  })

  it('waits up to its time for a release, although the lease is longer', async () => {
    const limiter = limiterOf(longSlots, { store: store() })
    const slot = await held(limiter)
    start(limiter, 'a', { maxWait: '1s' })
    start(limiter, 'b', { maxWait: '1s' })
    await timers.advance(999)
    expect(log).toEqual([])
    await timers.advance(1)
    expect(log).toEqual(['b denied (limit) after 1000', 'a denied (limit) after 1000'])
    start(limiter, 'c', { maxWait: '1s' })
    await timers.advance(500)
    await slot.release()
    await timers.advance(0)
    expect(log[2]).toBe('c let in after 500')
  })

  it('an abort ends the wait, and the next one is woken', async () => {
    const limiter = limiterOf(longSlots, { store: store() })
    const slot = await held(limiter)
    const { signal, abort } = countingSignal()
    start(limiter, 'a', { signal })
    start(limiter, 'b')
    await timers.advance(20)
    abort('no')
    await timers.advance(0)
    await slot.release()
    await timers.advance(0)
    expect(log).toEqual(['a ended (no) after 20', 'b let in after 20'])
  })
})

describe('acquire of a slot', () => {
  it('asks within 100 ms for what another process gave back, and ten times a second at most', async () => {
    const counters = memoryStore({ clock })
    let asked = 0
    const decide: Store<'sync'>['decide'] = (batch) => {
      asked++
      counters.decide(batch)
    }
    // Two stores over the same counters are two processes: neither hears of what the other gives back.
    const here = limiterOf(longSlots, { store: { ...proxyOf(counters), decide } })
    const there = limiterOf(longSlots, { store: proxyOf(counters) })
    const slot = await held(there)
    for (let waiting = 0; waiting < 20; waiting++) start(here, String(waiting))
    await timers.advance(10_000)
    expect(log).toEqual([])
    // At 0, 10, 30, 70 and 150 ms, and every 100 ms from then on.
    expect(asked).toBe(5 + 98)
    await slot.release()
    await timers.advance(100)
    expect(log).toHaveLength(1)
    expect(log[0]).toMatch(/^0 let in after 10(?:0\d\d|100)$/)
    await here.close()
    await timers.advance(0)
  })

  it('asks a thousand times a second at most, for however many keys', async () => {
    const counters = memoryStore({ clock })
    let asked = 0
    const decide: Store<'sync'>['decide'] = (batch) => {
      asked++
      counters.decide(batch)
    }
    const limiter = limiterOf(longSlots, { store: { ...proxyOf(counters), decide } })
    const keys = Array.from({ length: 300 }, (_, key) => `key ${key}`)
    for (const key of keys) await held(limiter, key)
    for (const key of keys) start(limiter, key, { key })
    await timers.advance(0)
    asked = 0
    await timers.advance(3000)
    // Once in 300 ms for each of 300 keys.
    expect(asked).toBe(3000)
    await limiter.close()
    await timers.advance(0)
  })

  it('does not miss a release while it is being answered', async () => {
    const inner = memoryStore({ clock })
    let answered: Promise<void> = Promise.resolve()
    const slow: Store<'async'> = {
      ...deferredStore(inner),
      decide: async (batch) => {
        inner.decide(batch)
        await answered
      },
    }
    const limiter = limiterOf(longSlots, { store: slow })
    const slot = await held(limiter)
    const late = Promise.withResolvers<void>()
    answered = late.promise
    start(limiter, 'a')
    await timers.advance(0)
    await slot.release()
    answered = Promise.resolve()
    late.resolve()
    await timers.advance(0)
    expect(log).toEqual(['a let in after 0'])
  })
})

describe('acquire of units', () => {
  it('is let in by what this process gives back, before its time', async () => {
    const limiter = limiterOf({ limit: 2, window: '1h', algorithm: 'fixed-window' })
    const decision = await limiter.check('key', { cost: 2 })
    start(limiter, 'a')
    start(limiter, 'b')
    await timers.advance(1000)
    await limiter.refund(decision, 1)
    await timers.advance(0)
    expect(log).toEqual(['a let in after 1000'])
    await limiter.adjust('key', -1)
    await timers.advance(0)
    expect(log).toEqual(['a let in after 1000', 'b let in after 1000'])
  })

  it('is let in when its key is unblocked', async () => {
    const limiter = limiterOf(bucket)
    await limiter.block('key', '1h')
    start(limiter, 'a')
    await timers.advance(30)
    await limiter.unblock('key')
    await timers.advance(0)
    expect(log).toEqual(['a let in after 30'])
  })
})

describe('a decision of acquire', () => {
  it('is that of the call that was let in', async () => {
    const limiter = limiterOf(bucket)
    const decision: Decision = await limiter.acquire('key', { cost: 2 })
    expect(decision).toMatchObject({ allowed: true, cost: 2, remaining: 0, limit: 2 })
    expect(await limiter.refund(decision)).toEqual({ outcome: 'settled', corrected: -2 })
  })
})

function proxyOf(store: Store<'sync'>): Store<'sync'> {
  return {
    mode: 'sync',
    decide: (batch) => store.decide(batch),
    settle: (receipt, actuals) => store.settle(receipt, actuals),
    block: (rule, key, term) => store.block(rule, key, term),
    reset: (limits, key) => store.reset(limits, key),
    close: () => store.close(),
  }
}
