import { deferredStore, FakeClock, FakeTimers, ReferenceStore, START_MICROS, seededRandom } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { SluiceError } from '../../errors.ts'
import { createLimiter } from '../../limiter/create-any-limiter.ts'
import type { Decision } from '../../limiter/decision.ts'
import type { Limiter } from '../../limiter/limiter.ts'
import type { Rule } from '../../rule/rule.ts'
import { compileRule } from '../../rule-kinds.ts'
import { MICROS_PER_MS } from '../../system/clock-and-timers.ts'
import { createBatch, createItem } from '../batch.ts'
import type { Batch, Store } from '../store.ts'
import type { LeaseEvent } from './lease-manager.ts'
import type { LeasedStore, LeasedStoreOptions } from './leased-store.ts'
import { leasedStore } from './leased-store.ts'

const WINDOW: Rule = { algorithm: 'fixed-window', limit: 1000, window: '1m' }

/** A leased store over a reference store that records its calls, and can fail or be slow. */
class Scene {
  readonly clock = new FakeClock()
  readonly timers: FakeTimers = new FakeTimers(this.clock)
  readonly events: LeaseEvent[] = []
  /** What reached the store: `ask` and `lease` with the requested units, `settle` with the units charged. */
  readonly calls: string[] = []
  readonly store: LeasedStore
  readonly reference: ReferenceStore = new ReferenceStore(this.clock)
  /** Runs before the store sees a call; may throw, or wait. */
  before: (call: string) => void | Promise<void> = () => undefined

  constructor(options: LeasedStoreOptions = {}) {
    this.store = leasedStore(this.#noting(deferredStore(this.reference)), {
      timers: this.timers,
      monotonicMs: () => (this.clock.nowMicros() - START_MICROS) / MICROS_PER_MS,
      random: seededRandom(1),
      observe: (event) => this.events.push(event),
      ...options,
    })
  }

  limiter(rule: Rule = WINDOW, name = 'rule'): Limiter<'async'> {
    return createLimiter({ ...rule, name, store: this.store, clock: this.clock })
  }

  /** A limiter that asks the store itself, as another node would. */
  elsewhere(rule: Rule = WINDOW): Limiter<'sync'> {
    return createLimiter({ ...rule, name: 'rule', store: this.reference, clock: this.clock })
  }

  /** Makes a key busy: an exact call, then one that takes a lease of 10. Leaves 8 units in it. */
  async warmUp(limiter: Limiter<'async'>, key = 'a'): Promise<void> {
    for (let call = 0; call < 3; call++) await limiter.check(key)
    this.calls.length = 0
    this.events.length = 0
  }

  #noting(inner: Store<'async'>): Store<'async'> {
    const note = async (call: string): Promise<void> => {
      this.calls.push(call)
      await this.before(call)
    }
    const question = ({ leaseMicros, items }: Batch): string => `${leaseMicros > 0 ? 'lease' : 'ask'} ${items[0]!.cost}`
    return {
      ...inner,
      decide: async (batch) => {
        await note(question(batch))
        return await inner.decide(batch)
      },
      settle: async (receipt, actuals) => {
        await note(`settle ${actuals[0]}`)
        return await inner.settle(receipt, actuals)
      },
    }
  }
}

async function times<T>(count: number, call: () => Promise<T>): Promise<T[]> {
  const answers: T[] = []
  for (let index = 0; index < count; index++) answers.push(await call())
  return answers
}

function allowedOf(decisions: readonly Decision[]): number {
  return decisions.filter(({ allowed }) => allowed).length
}

describe('taking units', () => {
  it('asks the store exactly the first time, then takes a block and decides from it', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    const decisions = await times(6, () => limiter.check('a'))
    expect(scene.calls).toEqual(['ask 1', 'lease 10'])
    expect(decisions.map(({ remaining }) => remaining)).toEqual([999, 998, 997, 996, 995, 994])
    expect(decisions.every(({ allowed, cost, limit }) => allowed && cost === 1 && limit === 1000)).toBe(true)
    expect(decisions[5]).toMatchObject({ resetAt: START_MICROS / MICROS_PER_MS + 60_000, retryAfterMs: 0, limits: [] })
    expect(scene.store.stats()).toEqual({ leases: 1, heldUnits: 5, localDecisions: 5, grants: 1 })
  })

  it('leaves a key that is seldom checked to the store', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    for (let call = 0; call < 5; call++) {
      await limiter.check('a')
      await scene.timers.advance(300)
    }
    expect(scene.calls).toEqual(Array.from({ length: 5 }, () => 'ask 1'))
  })

  it('says the time of the store or a little before, never after', async () => {
    const scene = new Scene()
    const [limit] = compileRule('rule', WINDOW)
    const batch = createBatch([createItem(limit!, 'a', 1)])
    await times(2, () => scene.store.decide(batch))
    expect(batch.now).toBe(scene.clock.nowMicros())
    scene.clock.advance(100)
    await scene.store.decide(batch)
    expect(scene.clock.nowMicros() - batch.now).toBe(5 * MICROS_PER_MS)
    expect(batch.items[0]!.verdict.retryAt).toBe(batch.now)
    expect(scene.store.stats().localDecisions).toBe(2)
  })

  it('serves all who ask at once from one block, sized for them, in the order they came', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    const finished: number[] = []
    const calls = Array.from({ length: 50 }, async (_, index) => {
      const decision = await limiter.check('a')
      finished.push(index)
      return decision
    })
    expect(allowedOf(await Promise.all(calls))).toBe(50)
    expect(scene.calls.slice(0, 2)).toEqual(['ask 1', 'lease 49'])
    expect(scene.store.stats().grants).toBe(1)
    expect(finished.filter((index) => index > 0)).toEqual(Array.from({ length: 49 }, (_, index) => index + 1))
  })

  it('asks exactly for a cost that a block would not serve twice', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    await scene.warmUp(limiter)
    const decision = await limiter.check('a', { cost: 63 })
    expect(scene.calls).toEqual(['ask 63'])
    expect(decision.remaining).toBe(1000 - 1 - 10 - 63)
  })

  it('takes from every limit of a rule, or of several keys, or from none', async () => {
    const scene = new Scene()
    const windows = [
      { limit: 1000, window: '1s' },
      { limit: 5000, window: '1m' },
    ] as const
    const limiter = scene.limiter({ algorithm: 'fixed-window', windows })
    const decisions = await times(3, () => limiter.checkAll([{ key: 'a' }, { key: 'b', cost: 2 }]))
    expect(allowedOf(decisions)).toBe(3)
    expect(scene.calls).toEqual(['ask 1', 'lease 10', 'lease 10', 'lease 10', 'lease 10'])
    expect(decisions[2]!.limits.map(({ remaining }) => remaining)).toEqual([997, 4997, 994, 4994])
    // No lease serves this, so nothing is taken from the others either.
    expect((await limiter.checkAll([{ key: 'a' }, { key: 'b', cost: 999 }])).allowed).toBe(false)
    await scene.store.close()
    expect(scene.calls.filter((call) => call.startsWith('settle')).sort()).toEqual([
      'settle 2',
      'settle 2',
      'settle 4',
      'settle 4',
    ])
  })

  it('keeps keys and rules apart', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    await scene.warmUp(limiter)
    const other = scene.limiter(WINDOW, 'other')
    expect((await other.check('a')).remaining).toBe(999)
    expect((await limiter.check('b')).remaining).toBe(999)
    expect(scene.calls).toEqual(['ask 1', 'ask 1'])
  })
})

describe('what is not taken from blocks', () => {
  it.each<[string, Rule]>([
    ['a limit below the least', { algorithm: 'fixed-window', limit: 99, window: '1m' }],
    ['a bucket below the least', { algorithm: 'token-bucket', capacity: 99, refillPerSecond: 1000 }],
    ['a window by the calendar', { algorithm: 'fixed-window', limit: 1000, window: { calendar: 'day' } }],
    ['a window that carries over', { algorithm: 'fixed-window', limit: 1000, window: '1m', rollover: true }],
    ['an exact log', { algorithm: 'sliding-window-log', limit: 1000, window: '1m' }],
    ['a queue', { algorithm: 'leaky-bucket-queue', capacity: 1000, ratePerSecond: 1 }],
    ['slots', { algorithm: 'concurrency', limit: 1000, lease: '1m' }],
  ])('%s', async (_what, rule) => {
    const scene = new Scene()
    const limiter = scene.limiter(rule)
    await times(5, () => limiter.check('a'))
    expect(scene.calls).toEqual(Array.from({ length: 5 }, () => 'ask 1'))
    expect(scene.timers.pending).toBe(0)
  })

  it('looks, parts, reservations and nothing at all', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    await scene.warmUp(limiter)
    await limiter.peek('a')
    await limiter.check('a', { partial: true })
    await limiter.check('a', { cost: 0 })
    const reservation = await limiter.reserve('a', { cost: 5 })
    if (reservation.allowed) await reservation.settle(2)
    expect(scene.calls).toEqual(['ask 1', 'ask 1', 'ask 0', 'ask 5', 'settle 2'])
    expect(scene.store.stats().heldUnits).toBe(8)
  })

  it('a limit one unit below the requested minimum', async () => {
    for (const [minLimit, grants] of [
      [1001, 0],
      [1000, 1],
    ] as const) {
      const scene = new Scene({ minLimit })
      const limiter = scene.limiter()
      await times(3, () => limiter.check('a'))
      expect(scene.store.stats().grants).toBe(grants)
    }
  })

  it('keys beyond the number that is watched', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    for (let key = 0; key < 100_000; key++) await limiter.check(`${key}`)
    await times(3, () => limiter.check('one more'))
    await times(3, () => limiter.check('0'))
    expect(scene.store.stats()).toMatchObject({ grants: 1, localDecisions: 3 })
  })
})

describe('the limit', () => {
  it.each<[string, Rule, number]>([
    ['fixed window', { algorithm: 'fixed-window', limit: 300, window: '1m' }, 300],
    ['sliding window counter', { algorithm: 'sliding-window-counter', limit: 300, window: '1m' }, 300],
    ['token bucket', { algorithm: 'token-bucket', capacity: 300, refillPerSecond: 0.001 }, 300],
    ['leaky bucket', { algorithm: 'leaky-bucket-meter', capacity: 300, leakPerSecond: 0.001 }, 300],
    ['GCRA', { limit: 100, window: '1d', burst: 300 }, 300],
  ])('is reached exactly by one node: %s', async (_name, rule, limit) => {
    const scene = new Scene()
    const limiter = scene.limiter(rule)
    const decisions = await times(limit + 50, () => limiter.check('a'))
    expect(allowedOf(decisions.slice(0, limit))).toBe(limit)
    expect(allowedOf(decisions.slice(limit))).toBe(0)
    expect(decisions[limit]).toMatchObject({ reason: 'limit', remaining: 0 })
    expect(scene.store.stats().localDecisions).toBeGreaterThan(limit / 2)
    expect(decisions.every(({ remaining }, index) => remaining === Math.max(0, limit - 1 - index))).toBe(true)
  })

  it('is reached exactly with costs that do not fit what is left in a block', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    let used = 0
    for (let call = 0; call < 400; call++) {
      const cost = 1 + (call % 7)
      const { allowed } = await limiter.check('a', { cost })
      expect(allowed).toBe(used + cost <= 1000)
      if (allowed) used += cost
    }
    expect(used).toBe(1000)
  })

  it('is not kept from a caller by units that lie here unspent', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    await scene.warmUp(limiter)
    expect(await limiter.check('a', { cost: 995 })).toMatchObject({ allowed: true, remaining: 2 })
    expect(scene.calls).toEqual(['ask 995', 'settle 2', 'ask 995'])
  })

  it('is not kept from a reservation either', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    await scene.warmUp(limiter)
    expect((await limiter.reserve('a', { cost: 995 })).allowed).toBe(true)
    expect((await limiter.reserve('a', { cost: 3 })).allowed).toBe(false)
    expect(scene.calls).toEqual(['ask 995', 'settle 2', 'ask 995', 'ask 3'])
  })

  it('counts what other nodes took, and asks for less the less is left', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    await scene.warmUp(limiter)
    expect(scene.elsewhere().check('a', { cost: 989 - 12 })).toMatchObject({ allowed: true, remaining: 12 })
    const decisions = await times(40, () => limiter.check('a'))
    expect(allowedOf(decisions)).toBe(8 + 12)
    const lent = scene.events.flatMap((event) => (event.type === 'lease-granted' ? [event.units] : []))
    expect(lent.length).toBeGreaterThan(0)
    expect(Math.max(...lent)).toBeLessThanOrEqual(12)
    expect(scene.elsewhere().peek('a').remaining).toBe(0)
  })
})

describe('the size of a block', () => {
  it('doubles while blocks are spent quickly, up to the share of the limit', async () => {
    const scene = new Scene()
    const limiter = scene.limiter({ algorithm: 'fixed-window', limit: 1_000_000, window: '1h' })
    await times(800, () => limiter.check('a'))
    const lent = scene.events.flatMap((event) => (event.type === 'lease-granted' ? [event.units] : []))
    expect(lent.slice(0, 5)).toEqual([10, 20, 40, 80, 160])
    const small = new Scene({ maxShare: 1 / 100 })
    const shared = small.limiter({ algorithm: 'fixed-window', limit: 3000, window: '1h' })
    await times(200, () => shared.check('a'))
    const shares = small.events.flatMap((event) => (event.type === 'lease-granted' ? [event.units] : []))
    expect(Math.max(...shares)).toBe(30)
  })

  it('stays when a block lasts, and halves when more than half of one is left over', async () => {
    const scene = new Scene()
    const limiter = scene.limiter({ algorithm: 'fixed-window', limit: 1_000_000, window: '1h' })
    await times(100, () => limiter.check('a'))
    const { leases } = scene.store.stats()
    expect(leases).toBeGreaterThan(0)
    await scene.timers.advance(2000)
    expect(scene.store.stats()).toMatchObject({ leases: 0, heldUnits: 0 })
    scene.events.length = 0
    await times(2, () => limiter.check('a'))
    expect(scene.events).toEqual([{ type: 'lease-granted', rule: 'rule', units: 10 }])
  })

  it('requests the next block in time, so that no caller waits', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    await scene.warmUp(limiter)
    await times(4, () => limiter.check('a'))
    await scene.timers.advance(1)
    // Quickly half spent, so the next is twice as large; it is there before the first is used up.
    expect(scene.calls).toEqual(['lease 20'])
    expect(scene.store.stats()).toMatchObject({ leases: 2, heldUnits: 24 })
    await times(4, () => limiter.check('a'))
    await scene.timers.advance(1)
    expect(scene.calls).toEqual(['lease 20', 'settle 10'])
    expect(scene.store.stats()).toMatchObject({ leases: 1, heldUnits: 20 })
  })
})

describe('the end of a block', () => {
  it('is 5 % before it ends in the store, counted from the request', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    await limiter.check('a')
    scene.before = () => scene.clock.advance(100)
    await limiter.check('a')
    scene.before = () => undefined
    scene.clock.advance(849)
    await limiter.check('a')
    expect(scene.calls).toEqual(['ask 1', 'lease 10'])
    scene.clock.advance(1)
    await limiter.check('a')
    await scene.timers.advance(0)
    expect(scene.calls.slice(2)).toContain('settle 2')
  })

  it('is at least 10 ms before', async () => {
    const scene = new Scene({ leaseMs: 50 })
    const limiter = scene.limiter()
    await times(2, () => limiter.check('a'))
    scene.clock.advance(39.999)
    await limiter.check('a')
    expect(scene.calls).toEqual(['ask 1', 'lease 10'])
    scene.clock.advance(0.001)
    await limiter.check('a')
    expect(scene.calls[2]).toBe('settle 2')
  })

  it('has come when the answer takes longer: then it is given back unspent', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    await limiter.check('a')
    scene.before = (call) => void (call.startsWith('lease') && scene.clock.advance(950))
    expect((await limiter.check('a')).remaining).toBe(998)
    expect(scene.calls).toEqual(['ask 1', 'lease 10', 'settle 0', 'ask 1'])
  })

  it('comes early for an unused one, and the key is forgotten', async () => {
    const scene = new Scene()
    await scene.warmUp(scene.limiter())
    await scene.timers.advance(500)
    expect(scene.calls).toEqual([])
    await scene.timers.advance(250)
    expect(scene.calls).toEqual(['settle 2'])
    expect(scene.events).toEqual([
      { type: 'lease-ended', rule: 'rule', units: 10, spent: 2 },
      { type: 'lease-settled', rule: 'rule', units: 10, spent: 2 },
    ])
    expect(scene.elsewhere().peek('a').remaining).toBe(997)
    await scene.timers.advance(250)
    expect(scene.timers.pending).toBe(0)
  })

  it('comes in time for the store to hear of it, also when it is in use', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    await scene.warmUp(limiter)
    for (let turn = 0; turn < 3; turn++) {
      await scene.timers.advance(249)
      await limiter.check('a')
    }
    await scene.timers.advance(10)
    expect(scene.calls).toEqual(['settle 5'])
    expect(scene.elsewhere().peek('a').remaining).toBe(994)
  })
})

describe('a refund', () => {
  it('goes back into the block it was taken from', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    await scene.warmUp(limiter)
    const decision = await limiter.check('a', { cost: 3 })
    expect(scene.store.stats().heldUnits).toBe(5)
    expect(await limiter.refund(decision, 2)).toEqual({ outcome: 'settled', corrected: -2 })
    expect(await limiter.refund(decision)).toEqual({ outcome: 'settled', corrected: -1 })
    expect(await limiter.refund(decision)).toEqual({ outcome: 'settled', corrected: 0 })
    expect(scene.store.stats().heldUnits).toBe(8)
    expect(scene.calls).toEqual([])
  })

  it('goes to the store when the block is over', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    await scene.warmUp(limiter)
    const decision = await limiter.check('a', { cost: 3 })
    await scene.timers.advance(1000)
    expect(scene.elsewhere().peek('a').remaining).toBe(994)
    expect(await limiter.refund(decision)).toEqual({ outcome: 'settled', corrected: -3 })
    expect(scene.elsewhere().peek('a').remaining).toBe(997)
  })

  it('does not revive a block whose time is over but that has not been given back yet', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    await scene.warmUp(limiter)
    const decision = await limiter.check('a', { cost: 3 })
    scene.clock.advance(1000)
    expect(await limiter.refund(decision)).toEqual({ outcome: 'settled', corrected: -3 })
    expect(scene.store.stats().heldUnits).toBe(5)
    await scene.store.close()
    expect(scene.calls).toEqual(['settle 0', 'settle 5'])
  })

  it('of several limits goes to each where it belongs', async () => {
    const scene = new Scene()
    const set = createLimiter({
      rules: { small: { algorithm: 'fixed-window', limit: 50, window: '1m' }, large: WINDOW },
      store: scene.store,
      clock: scene.clock,
    })
    // A batch with a limit that has no leases is decided by the store, whatever the others have.
    const decision = await set.checkAll([
      { rule: 'small', key: 'a' },
      { rule: 'large', key: 'a' },
    ])
    expect(await set.refund(decision)).toEqual({ outcome: 'settled', corrected: -2 })
    const pair = [
      { rule: 'large', key: 'a' },
      { rule: 'large', key: 'b' },
    ] as const
    const taken = (await times(3, () => set.checkAll(pair)))[2]!
    await set.limiter('large').reset('a')
    scene.calls.length = 0
    expect(await set.refund(taken)).toEqual({ outcome: 'settled', corrected: -1 })
    expect(scene.calls).toEqual(['settle 0'])
    expect(scene.store.stats().heldUnits).toBe(9)
  })
})

describe('what a node does to a key', () => {
  it('a reset holds at once: what lies here is given back before', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    await scene.warmUp(limiter)
    await limiter.reset('a')
    expect(scene.calls).toEqual(['settle 2'])
    expect(scene.store.stats().heldUnits).toBe(0)
    expect((await limiter.check('a')).remaining).toBe(999)
  })

  it('a block holds at once', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    await scene.warmUp(limiter)
    await scene.warmUp(limiter, 'b')
    await limiter.block('a', '1m')
    expect(await limiter.check('a')).toMatchObject({ allowed: false, reason: 'blocked' })
    expect(await limiter.check('a')).toMatchObject({ allowed: false, reason: 'blocked' })
    expect(scene.calls).toEqual(['settle 2', 'lease 10', 'ask 1', 'ask 1'])
    expect((await limiter.check('b')).allowed).toBe(true)
    await limiter.unblock('a')
    expect((await limiter.check('a')).allowed).toBe(true)
  })

  it('a block with reset forgets what was spent here too', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    await scene.warmUp(limiter)
    await limiter.block('a', '10s', { reset: true })
    expect(scene.calls).toEqual(['settle 2'])
    expect(await limiter.check('a')).toMatchObject({ allowed: false, reason: 'blocked' })
    scene.clock.advance(10_000)
    expect(await limiter.check('a')).toMatchObject({ allowed: true, remaining: 999 })
  })

  it('an adjustment is exact: what was spent here is charged before', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    await scene.warmUp(limiter)
    expect(await limiter.adjust('a', -2)).toEqual({ outcome: 'settled', corrected: -2 })
    expect(scene.calls).toEqual(['settle 2', 'settle 0'])
    expect(scene.elsewhere().peek('a').remaining).toBe(999)
    expect(await limiter.adjust('a', 5)).toEqual({ outcome: 'settled', corrected: 5 })
    expect(scene.elsewhere().peek('a').remaining).toBe(994)
  })

  it('a block that was on its way during a reset is not spent', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    await limiter.check('a')
    const answer = Promise.withResolvers<void>()
    scene.before = (call) => (call.startsWith('lease') ? answer.promise : undefined)
    const waiting = limiter.check('a')
    await scene.timers.advance(0)
    const reset = limiter.reset('a')
    await scene.timers.advance(0)
    answer.resolve()
    await reset
    expect((await waiting).allowed).toBe(true)
    expect(scene.calls).toEqual(['ask 1', 'lease 10', 'settle 0', 'ask 1'])
  })
})

describe('a store that fails', () => {
  const unavailable = (): never => {
    throw new SluiceError('SLUICE_STORE_UNAVAILABLE', { problem: 'it is unavailable' })
  }

  it('fails all who wait for a block, and the next call asks again', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    await limiter.check('a')
    scene.before = unavailable
    const outcomes = await Promise.allSettled([limiter.check('a'), limiter.check('a'), limiter.check('a')])
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    expect(scene.calls).toEqual(['ask 1', 'lease 10'])
    scene.before = () => undefined
    expect((await limiter.check('a')).allowed).toBe(true)
    expect(scene.calls).toEqual(['ask 1', 'lease 10', 'lease 10'])
  })

  it('does not keep leased units from being used; errors meanwhile are reported', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    await scene.warmUp(limiter)
    scene.before = unavailable
    expect(allowedOf(await times(8, () => limiter.check('a')))).toBe(8)
    await scene.timers.advance(1)
    expect(scene.calls).toEqual(['lease 20', 'settle 10'])
    expect(scene.events.filter(({ type }) => type === 'lease-failed')).toHaveLength(2)
    await expect(limiter.check('a')).rejects.toThrow(/SLUICE_STORE_UNAVAILABLE/)
    scene.before = () => undefined
    // The settlement was not sent again: the store has counted the block as spent at its end.
    await scene.timers.advance(1000)
    expect(scene.elsewhere().peek('a').remaining).toBe(1000 - 11)
  })

  it('does not keep the leased store from closing', async () => {
    const scene = new Scene()
    await scene.warmUp(scene.limiter())
    scene.before = unavailable
    await scene.store.close()
    expect(scene.events.map(({ type }) => type)).toEqual(['lease-ended', 'lease-failed'])
  })
})

describe('closing', () => {
  it('gives back everything, also what is on its way, and then closes the store', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    await scene.warmUp(limiter)
    await limiter.check('b')
    const answer = Promise.withResolvers<void>()
    scene.before = (call) => (call.startsWith('lease') ? answer.promise : undefined)
    const waiting = limiter.check('b')
    await scene.timers.advance(0)
    scene.calls.length = 0
    const closing = scene.store.close()
    expect(scene.store.close()).toBe(closing)
    await scene.timers.advance(0)
    answer.resolve()
    await Promise.allSettled([waiting, closing])
    expect(scene.calls.slice(0, 2)).toEqual(['settle 2', 'settle 0'])
    expect(scene.store.stats()).toMatchObject({ leases: 0, heldUnits: 0 })
    expect(scene.timers.pending).toBe(0)
    await expect(limiter.check('a')).rejects.toThrow(/SLUICE_CLOSED/)
    await expect(limiter.reset('a')).rejects.toThrow(/SLUICE_CLOSED/)
  })
})

describe('closing in the turn in which a block is requested', () => {
  it('gives it back', async () => {
    const scene = new Scene()
    const limiter = scene.limiter()
    await limiter.check('a')
    const waiting = limiter.check('a')
    await Promise.allSettled([scene.store.close(), waiting])
    expect(scene.calls.slice(0, 3)).toEqual(['ask 1', 'lease 10', 'settle 0'])
    expect(scene.store.stats().leases).toBe(0)
  })
})

describe('options', () => {
  it.each<[string, LeasedStoreOptions]>([
    ['leaseMs', { leaseMs: 49 }],
    ['leaseMs', { leaseMs: 60_001 }],
    ['minLimit', { minLimit: 1 }],
    ['minUnits', { minUnits: 1.5 }],
    ['maxShare', { maxShare: 0 }],
    ['maxShare', { maxShare: Number.NaN }],
  ])('%s is checked', (option, options) => {
    const inner = deferredStore(new ReferenceStore(new FakeClock()))
    expect(() => leasedStore(inner, options)).toThrow(new RegExp(`SLUICE_INVALID_OPTION.*"${option}"`))
  })

  it('minUnits is the size of the first block', async () => {
    const scene = new Scene({ minUnits: 25 })
    const limiter = scene.limiter()
    await times(2, () => limiter.check('a'))
    expect(scene.calls).toEqual(['ask 1', 'lease 25'])
  })

  it('observe may throw', async () => {
    const scene = new Scene({
      observe: () => {
        throw new Error('not my day')
      },
    })
    const limiter = scene.limiter()
    expect(allowedOf(await times(30, () => limiter.check('a')))).toBe(30)
    expect(scene.store.stats().grants).toBeGreaterThan(0)
  })
})
