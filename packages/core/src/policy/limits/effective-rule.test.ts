import { FakeClock } from '@sluice/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Limit } from '../../rule/limit.ts'
import type { AlgorithmRule } from '../../rule/rule.ts'
import { createBatch, createItem } from '../../store/batch.ts'
import { memoryStore } from '../../store/memory/memory-store.ts'
import type { Store } from '../../store/store.ts'
import type { OverrideTerms } from '../entries/live-entry.ts'
import type { PolicyRule } from '../rule-set/rule-set.ts'
import type { LimitModification } from './effective-rule.ts'
import { EffectiveLimits } from './effective-rule.ts'

const PLAIN: LimitModification = { terms: undefined, factor: 1, burst: 0 }

function policyRule(rule: AlgorithmRule): PolicyRule {
  return { resource: '/orders', dimension: 'user', shadow: false, ...rule }
}

function effective(rule: AlgorithmRule): EffectiveLimits {
  return new EffectiveLimits('orders', policyRule(rule))
}

/** A caller that takes units of limits which may change from call to call. */
function callerOf(store: Store<'sync'>): (limits: readonly Limit[], cost: number) => { ok: boolean; left: number } {
  let holder = 0
  return (limits, cost) => {
    const batch = createBatch(limits.map((limit) => createItem(limit, 'ann', cost)))
    holder += 1
    batch.holder = holder
    store.decide(batch)
    return { ok: batch.allowed, left: Math.min(...batch.items.map(({ verdict }) => verdict.remaining)) }
  }
}

const OF_TEN: readonly [string, AlgorithmRule][] = [
  ['gcra', { limit: 10, window: '1m' }],
  ['gcra with burst', { limit: 60, window: '1m', burst: 10 }],
  ['token-bucket', { algorithm: 'token-bucket', capacity: 10, refillPerSecond: 1 }],
  ['leaky-bucket-meter', { algorithm: 'leaky-bucket-meter', capacity: 10, leakPerSecond: 1 }],
  ['leaky-bucket-queue', { algorithm: 'leaky-bucket-queue', capacity: 10, ratePerSecond: 1 }],
  ['fixed-window', { algorithm: 'fixed-window', limit: 10, window: '1m' }],
  ['fixed-window by the calendar', { algorithm: 'fixed-window', limit: 10, window: { calendar: 'month' } }],
  ['fixed-window with rollover', { algorithm: 'fixed-window', limit: 10, window: '1m', rollover: true }],
  ['fixed-window with burst', { algorithm: 'fixed-window', limit: 8, window: '1m', burst: 10 }],
  ['sliding-window-counter', { algorithm: 'sliding-window-counter', limit: 10, window: '1m' }],
  ['sliding-window-log', { algorithm: 'sliding-window-log', limit: 10, window: '1m' }],
  ['sliding-window-log in segments', { algorithm: 'sliding-window-log', limit: 10, window: '1m', segments: 6 }],
  ['hybrid', { algorithm: 'hybrid', limit: 8, window: '1m', burst: { capacity: 2, refillPerSecond: 0.1 } }],
  ['concurrency', { algorithm: 'concurrency', limit: 10, lease: '1m' }],
]

/** Whether its limit is made of two: a window and a burst on top. */
function isOverlay(rule: AlgorithmRule): boolean {
  return effective(rule).own[0]!.algorithm === 'hybrid'
}

describe('the same counter goes on when the limit of a rule of 10 units changes', () => {
  it.each(OF_TEN)('%s: raised by a tier, an override or a schedule, it helps at once', (_name, rule) => {
    const limits = effective(rule)
    const take = callerOf(memoryStore({ clock: new FakeClock() }))
    expect(take(limits.own, 10)).toEqual({ ok: true, left: 0 })
    expect(take(limits.own, 1).ok).toBe(false)
    expect(take(limits.limitsFor({ ...PLAIN, factor: 2 }), 4)).toEqual({ ok: true, left: 6 })
    expect(take(limits.limitsFor({ ...PLAIN, terms: { multiplier: 3 } }), 1)).toEqual({ ok: true, left: 15 })
    expect(take(limits.own, 1).ok).toBe(false)
  })

  it.each(OF_TEN.filter(([, rule]) => !isOverlay(rule)))('%s: lowered, what was used counts', (_name, rule) => {
    const limits = effective(rule)
    const take = callerOf(memoryStore({ clock: new FakeClock() }))
    expect(take(limits.own, 6)).toEqual({ ok: true, left: 4 })
    expect(take(limits.limitsFor({ ...PLAIN, factor: 0.5 }), 1).ok).toBe(false)
    expect(take(limits.limitsFor({ ...PLAIN, factor: 0.8 }), 2)).toEqual({ ok: true, left: 0 })
    expect(take(limits.limitsFor({ ...PLAIN, factor: 0.8 }), 1).ok).toBe(false)
    expect(take(limits.own, 2)).toEqual({ ok: true, left: 0 })
  })

  it.each(OF_TEN.filter(([, rule]) => isOverlay(rule)))('%s: lowered, window and burst each count', (_name, rule) => {
    const limits = effective(rule)
    const take = callerOf(memoryStore({ clock: new FakeClock() }))
    const halved = limits.limitsFor({ ...PLAIN, factor: 0.5 })
    expect(take(limits.own, 6)).toEqual({ ok: true, left: 4 })
    // The window of 4 is overdrawn; the burst of 1 has not been touched.
    expect(take(halved, 2)).toEqual({ ok: false, left: 1 })
    expect(take(halved, 1)).toEqual({ ok: true, left: 0 })
    expect(take(limits.own, 3)).toEqual({ ok: true, left: 0 })
  })

  it.each(OF_TEN)('%s: switched off nothing counts, at 0 nothing passes', (_name, rule) => {
    const limits = effective(rule)
    const take = callerOf(memoryStore({ clock: new FakeClock() }))
    expect(limits.limitsFor({ ...PLAIN, terms: { limit: 'off' } })).toEqual([])
    expect(take(limits.limitsFor({ ...PLAIN, terms: { limit: 0 } }), 1)).toEqual({ ok: false, left: 0 })
    expect(take(limits.limitsFor({ ...PLAIN, factor: 0 }), 1)).toEqual({ ok: false, left: 0 })
    expect(take(limits.own, 10).ok).toBe(true)
  })
})

describe('the order of resolution: each step changes the decision', () => {
  const limits = effective({ limit: 10, window: '1m' })
  const terms: OverrideTerms = { limit: 40 }

  it.each<[string, LimitModification, number]>([
    ['the rule alone', PLAIN, 10],
    ['a tier of 10x', { ...PLAIN, factor: 10 }, 100],
    ['the tier with a burst of 5', { ...PLAIN, factor: 10, burst: 5 }, 105],
    ['in a region of 0.5', { ...PLAIN, factor: 10 * 0.5, burst: 5 }, 55],
    ['in a schedule of 2', { ...PLAIN, factor: 10 * 0.5 * 2, burst: 5 }, 105],
    ['in an incident of 0.1', { ...PLAIN, factor: 10 * 0.5 * 2 * 0.1, burst: 5 }, 15],
    ['an override in the place of rule, tier and burst', { terms, factor: 1, burst: 5 }, 40],
    ['the override in an incident of 0.1', { terms, factor: 0.1, burst: 5 }, 4],
  ])('%s', (_name, modification, most) => {
    const take = callerOf(memoryStore({ clock: new FakeClock() }))
    expect(take(limits.limitsFor(modification), most + 1)).toEqual({ ok: false, left: most })
    expect(take(limits.limitsFor(modification), most)).toEqual({ ok: true, left: 0 })
  })
})

describe('the burst of a tier', () => {
  it.each(OF_TEN.filter(([name]) => !name.includes('rollover')))(
    '%s: lets that many more pass at once',
    (_name, rule) => {
      const limits = effective(rule)
      const take = callerOf(memoryStore({ clock: new FakeClock() }))
      expect(limits.burstProblem).toBeUndefined()
      expect(take(limits.limitsFor({ ...PLAIN, burst: 5 }), 16).ok).toBe(false)
      expect(take(limits.limitsFor({ ...PLAIN, burst: 5 }), 15)).toEqual({ ok: true, left: 0 })
    },
  )

  it('over a window keeps counters apart from those without, and comes back over a window', () => {
    const clock = new FakeClock()
    const take = callerOf(memoryStore({ clock }))
    const limits = effective({ algorithm: 'fixed-window', limit: 10, window: '1m' })
    const withBurst = limits.limitsFor({ ...PLAIN, burst: 5 })
    expect(take(withBurst, 15).ok).toBe(true)
    expect(take(limits.own, 10).ok).toBe(true)
    clock.advance(60_000)
    expect(take(withBurst, 15)).toEqual({ ok: true, left: 0 })
  })

  it('that a rule has no room for is left out, and said', () => {
    const limits = effective({ algorithm: 'fixed-window', limit: 10, window: '1m', rollover: true })
    expect(limits.burstProblem).toContain('rollover')
    expect(limits.limitsFor({ ...PLAIN, burst: 5 })).toEqual(limits.own)
    expect(limits.limitsFor({ ...PLAIN, factor: 2, burst: 5 })[0]).toMatchObject({ limit: 20 })
  })
})

describe('the burst of a hybrid', () => {
  const hybrid = {
    algorithm: 'hybrid',
    limit: 10,
    window: '1m',
    burst: { capacity: 5, refillPerSecond: 1 },
  } as const

  it('is closed to callers that are not entitled, on the same counter', () => {
    const limits = effective(hybrid)
    const take = callerOf(memoryStore({ clock: new FakeClock() }))
    const closed = limits.limitsFor({ ...PLAIN, entitled: false })
    expect(take(closed, 11)).toEqual({ ok: false, left: 10 })
    expect(take(closed, 10)).toEqual({ ok: true, left: 0 })
    expect(take(closed, 1).ok).toBe(false)
    expect(take(limits.limitsFor({ ...PLAIN, entitled: true }), 5)).toEqual({ ok: true, left: 0 })
  })

  it('stays closed when multiplied, and opens by as much as a tier or an override says', () => {
    const limits = effective(hybrid)
    const capacity = (modification: Partial<LimitModification>): number =>
      limits.limitsFor({ ...PLAIN, entitled: false, ...modification })[0]!.capacity
    expect(capacity({ factor: 10 })).toBe(100)
    expect(capacity({ burst: 3 })).toBe(13)
    expect(capacity({ terms: { limit: 20 } })).toBe(20)
    expect(capacity({ terms: { limit: 20, burst: 4 } })).toBe(24)
  })

  it('does not concern other rules: the burst over a window is for all callers', () => {
    const limits = effective({ algorithm: 'fixed-window', limit: 10, window: '1m', burst: 15 })
    expect(limits.limitsFor({ ...PLAIN, entitled: false })).toBe(limits.own)
    expect(limits.own[0]!.capacity).toBe(15)
  })
})

describe('an override that cannot be applied', () => {
  it.each<[string, OverrideTerms, AlgorithmRule]>([
    ['does not have a "window"', { limit: 99, window: '1m' }, { algorithm: 'concurrency', limit: 10, lease: '1m' }],
    ['"limit"', { limit: 2.5 }, { limit: 10, window: '1m' }],
    ['"limit"', { limit: 10_000_000_000 }, { limit: 10, window: '1m' }],
    ['"window"', { limit: 99, window: '1 fortnight' as '1d' }, { limit: 10, window: '1m' }],
    ['exact log', { limit: 100_001 }, { algorithm: 'sliding-window-log', limit: 10, window: '1m' }],
    ['"burst"', { limit: 99, burst: 98 }, { algorithm: 'fixed-window', limit: 10, window: '1m' }],
    ['"windows"', { windows: [] }, { limit: 10, window: '1m' }],
    ['exactly one', { limit: 99, multiplier: 2 }, { limit: 10, window: '1m' }],
  ])('leaves the numbers of the rule and says why: %s in %j', (reason, terms, rule) => {
    const limits = effective(rule)
    expect(limits.problemOf(terms)).toContain(reason)
    expect(limits.limitsFor({ ...PLAIN, terms })).toEqual(limits.own)
    expect(limits.limitsFor({ terms, factor: 0.5, burst: 0 })[0]!.limit).toBe(5)
  })

  it('is none of those that can', () => {
    const limits = effective({ limit: 10, window: '1m' })
    expect(limits.problemOf({ limit: 99 })).toBeUndefined()
    expect(limits.problemOf({ limit: 'off' })).toBeUndefined()
  })
})

describe('limits are made once', () => {
  const limits = effective({ limit: 1000, window: '1m' })

  it('the same modification gives the identical limits, another one others', () => {
    const terms: OverrideTerms = { limit: 5 }
    expect(limits.limitsFor(PLAIN)).toBe(limits.own)
    for (const modification of [
      { ...PLAIN, factor: 2 },
      { ...PLAIN, burst: 2 },
      { ...PLAIN, terms },
      { terms, factor: 2, burst: 0 },
    ]) {
      expect(limits.limitsFor({ ...modification })).toBe(limits.limitsFor(modification))
    }
    const all = [PLAIN, { ...PLAIN, factor: 2 }, { ...PLAIN, burst: 2 }, { ...PLAIN, factor: 2, burst: 2 }]
    expect(new Set(all.map((modification) => limits.limitsFor(modification))).size).toBe(4)
    expect(limits.limitsFor({ ...PLAIN, terms })).not.toBe(limits.limitsFor({ terms, factor: 2, burst: 0 }))
  })

  it('they are frozen', () => {
    const variant = limits.limitsFor({ ...PLAIN, factor: 3 })
    for (const value of [limits.own, limits.own[0], variant, variant[0]]) expect(Object.isFrozen(value)).toBe(true)
  })

  it('of very many variants those in use stay, and the others go', () => {
    const crowded = effective({ limit: 1_000_000, window: '1m' })
    const used = crowded.limitsFor({ ...PLAIN, factor: 2 })
    const forgotten = crowded.limitsFor({ ...PLAIN, factor: 3 })
    for (let index = 0; index < 10_000; index++) {
      crowded.limitsFor({ ...PLAIN, terms: { limit: index } })
      if (index % 1000 === 0) expect(crowded.limitsFor({ ...PLAIN, factor: 2 })).toBe(used)
    }
    expect(crowded.limitsFor({ ...PLAIN, factor: 3 })).not.toBe(forgotten)
    expect(crowded.limitsFor({ ...PLAIN, factor: 3 })).toEqual(forgotten)
  })

  it('4096 in turn, asked for again and again, are too many; 2000 are not', () => {
    const made = (count: number): number => {
      const crowded = effective({ limit: 1_000_000, window: '1m' })
      const seen = new Set<readonly Limit[]>()
      for (let turn = 0; turn < 3; turn++) {
        for (let index = 2; index < count + 2; index++) seen.add(crowded.limitsFor({ ...PLAIN, factor: index }))
      }
      return seen.size
    }
    expect(made(2000)).toBe(2000)
    expect(made(4097)).toBeGreaterThan(4097)
  })
})

describe('property: whatever changes the numbers of a rule', () => {
  const terms = fc.oneof(
    fc.constant(undefined),
    fc.record({ limit: fc.integer({ min: 1, max: 1000 }) }),
    fc.record({ multiplier: fc.double({ min: 0.01, max: 100, noNaN: true }) }),
  )
  const factor = fc.double({ min: 0.01, max: 100, noNaN: true })

  it('the counter stays the same one', () => {
    fc.assert(
      fc.property(fc.constantFrom(...OF_TEN), terms, factor, ([, rule], override, times) => {
        const limits = effective(rule)
        const changed = limits.limitsFor({ terms: override, factor: times, burst: 0 })
        expect(changed.map(({ id }) => id)).toEqual(limits.own.map(({ id }) => id))
        expect(changed.map(({ fixedSize }) => fixedSize)).toEqual(limits.own.map(({ fixedSize }) => fixedSize))
      }),
    )
  })

  it('a call passes exactly when its cost and what was used fit into the current limit', () => {
    const calls = fc.array(fc.record({ times: factor, cost: fc.integer({ min: 1, max: 8 }) }), { maxLength: 20 })
    fc.assert(
      fc.property(fc.constantFrom(...OF_TEN.filter(([, rule]) => !isOverlay(rule))), calls, ([, rule], sequence) => {
        const limits = effective(rule)
        const take = callerOf(memoryStore({ clock: new FakeClock() }))
        let used = 0
        for (const { times, cost } of sequence) {
          const now = limits.limitsFor({ ...PLAIN, factor: times })
          const most = 'rate' in now[0]! ? now[0].capacity : now[0]!.limit
          const fits = used + cost <= most
          expect(take(now, cost).ok).toBe(fits)
          if (fits) used += cost
        }
      }),
    )
  })
})
