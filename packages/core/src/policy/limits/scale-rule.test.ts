import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { GcraRule, Rule, TokenBucketRule } from '../../rule/rule.ts'
import { compileRule } from '../../rule-kinds.ts'
import type { OverrideTerms } from '../entries/live-entry.ts'
import type { PolicyRule, PolicyRuleSettings } from '../rule-set/rule-set.ts'
import { addBurst, algorithmRuleOf, applyTerms, scaleRule, withoutHybridBurst } from './scale-rule.ts'

const LARGEST = 9_000_000_000
const MONTH = { calendar: 'month', timeZone: 'Europe/Berlin' } as const
const HYBRID = {
  algorithm: 'hybrid',
  limit: 100,
  window: '1m',
  burst: { capacity: 50, refillPerSecond: 2 },
} as const satisfies Rule

describe('the algorithm of a rule of a rule set', () => {
  const whole: Required<PolicyRuleSettings> & GcraRule = {
    name: 'orders',
    resource: '/orders',
    dimension: 'user',
    methods: ['GET'],
    always: true,
    announce: true,
    cost: 2,
    shadow: true,
    percent: 10,
    regions: { US: 2 },
    schedule: [{ from: '22:00', to: '06:00', multiplier: 2 }],
    incident: 0.5,
    errorRate: {
      cutAbove: 0.5,
      restoreBelow: 0.1,
      window: '10s',
      leastCalls: 10,
      step: 0.5,
      least: 0.1,
      hold: '5s',
    },
    penalty: { after: 10, within: '1m', block: '5m' },
    enabled: true,
    failureMode: 'closed',
    algorithm: 'gcra',
    limit: 10,
    window: '1m',
  }

  it('keeps the numbers and the failure mode, and drops what only rule sets say', () => {
    const rule = algorithmRuleOf(whole)
    expect(rule).toEqual({ algorithm: 'gcra', limit: 10, window: '1m', failureMode: 'closed' })
    expect(compileRule('orders', rule)[0]).toMatchObject({ limit: 10, failureMode: 'closed' })
  })

  it('leaves mistakes for the compiler to find', () => {
    const mistaken = { ...whole, windwo: '1m' } as unknown as PolicyRule
    expect(() => compileRule('orders', algorithmRuleOf(mistaken))).toThrow('"windwo"')
  })
})

describe('a rule times a factor', () => {
  it.each<[string, number, Rule, Rule]>([
    ['gcra', 2.5, { limit: 5, window: '1m' }, { limit: 12, window: '1m' }],
    ['gcra with burst', 3, { limit: 10, window: '1m', burst: 4 }, { limit: 30, window: '1m', burst: 12 }],
    [
      'gcra with several windows',
      0.5,
      {
        windows: [
          { limit: 9, window: '1s', burst: 3 },
          { limit: 100, window: '1h' },
        ],
      },
      {
        windows: [
          { limit: 4, window: '1s', burst: 1 },
          { limit: 50, window: '1h' },
        ],
      },
    ],
    [
      'fixed window of a month',
      1.5,
      { algorithm: 'fixed-window', limit: 7, window: MONTH, rollover: true },
      { algorithm: 'fixed-window', limit: 10, window: MONTH, rollover: true },
    ],
    [
      'sliding window with burst',
      0.1,
      { algorithm: 'sliding-window-counter', limit: 100, window: '1m', burst: 109 },
      { algorithm: 'sliding-window-counter', limit: 10, window: '1m', burst: 10 },
    ],
    [
      'token bucket',
      0.5,
      { algorithm: 'token-bucket', capacity: 9, refillPerSecond: 0.5 },
      { algorithm: 'token-bucket', capacity: 4, refillPerSecond: 0.25 },
    ],
    [
      'leaky bucket (meter)',
      10,
      { algorithm: 'leaky-bucket-meter', capacity: 9, leakPerSecond: 3 },
      { algorithm: 'leaky-bucket-meter', capacity: 90, leakPerSecond: 30 },
    ],
    [
      'leaky bucket (queue)',
      10,
      { algorithm: 'leaky-bucket-queue', capacity: 9, ratePerSecond: 3 },
      { algorithm: 'leaky-bucket-queue', capacity: 90, ratePerSecond: 30 },
    ],
    ['hybrid', 0.5, HYBRID, { ...HYBRID, limit: 50, burst: { capacity: 25, refillPerSecond: 1 } }],
    [
      'concurrency',
      1.9,
      { algorithm: 'concurrency', limit: 3, lease: '10s' },
      { algorithm: 'concurrency', limit: 5, lease: '10s' },
    ],
  ])('scales all numbers of %s by %d, rounded down', (_name, factor, rule, expected) => {
    expect(scaleRule(rule, factor)).toEqual(expected)
  })

  it.each<[number, number, number]>([
    [100, 0.29, 29],
    [100, 0.7 * 0.1, 7],
    [1000, 1.1 * 1.1, 1210],
    [10, 0.3999, 3],
    [LARGEST, 1 / 3, 3_000_000_000],
    [1, 0.001, 1],
    [3, 0.1, 1],
    [0, 10, 0],
    [10, 0, 0],
    [LARGEST, 10, LARGEST],
    [1, Number.POSITIVE_INFINITY, LARGEST],
  ])('makes %d times %d to %d', (limit, factor, expected) => {
    expect(scaleRule({ limit, window: '1m' }, factor)).toEqual({ limit: expected, window: '1m' })
  })

  it('leaves a rule that does not limit as it is', () => {
    expect(scaleRule({ limit: 'off', window: '1m' }, 0.5)).toEqual({ limit: 'off', window: '1m' })
    const bucket: Rule = { algorithm: 'token-bucket', capacity: 'off', refillPerSecond: 1 }
    expect(compileRule('x', scaleRule(bucket, 0.5))).toEqual([])
  })

  it('ends at the largest bucket with rollover', () => {
    const rolling = { algorithm: 'token-bucket', capacity: 1_000_000_000, refillPerSecond: 1, rollover: true } as const
    expect(scaleRule(rolling, 10)).toEqual({ ...rolling, capacity: 3_000_000_000, refillPerSecond: 10 })
    expect(addBurst(rolling, LARGEST)).toEqual({ ...rolling, capacity: 3_000_000_000 })
    expect(compileRule('rule', scaleRule(rolling, 10))).toHaveLength(1)
  })

  it('ends at the largest log, which counters of segments do not need', () => {
    const log: Rule = { algorithm: 'sliding-window-log', limit: 60_000, window: '1m' }
    expect(scaleRule(log, 10)).toEqual({ ...log, limit: 100_000 })
    expect(scaleRule({ ...log, segments: 60 }, 10)).toEqual({ ...log, segments: 60, limit: 600_000 })
  })

  it('keeps rates inside what a bucket can have, and at a factor of 0 as they are', () => {
    const bucket: Rule = { algorithm: 'token-bucket', capacity: 10, refillPerSecond: 1e-9 }
    expect(scaleRule(bucket, 0.5)).toEqual({ ...bucket, capacity: 5 })
    expect(scaleRule({ ...bucket, refillPerSecond: 3 }, 0)).toEqual({ ...bucket, capacity: 0, refillPerSecond: 3 })
    expect(scaleRule({ ...bucket, refillPerSecond: LARGEST }, 2)).toEqual({
      ...bucket,
      capacity: 20,
      refillPerSecond: LARGEST,
    })
  })

  it('uses the bounds that rules have', () => {
    const log: Rule = { algorithm: 'sliding-window-log', limit: 1, window: '1m' }
    for (const [rule, largest] of [
      [{ limit: 1, window: '1m' }, LARGEST],
      [log, 100_000],
    ] as const) {
      expect(compileRule('x', scaleRule(rule, 1e12))[0]).toMatchObject({ limit: largest })
      expect(() => compileRule('x', { ...rule, limit: largest + 1 } as Rule)).toThrow(String(largest))
    }
    const slowest: Rule = { algorithm: 'token-bucket', capacity: 1, refillPerSecond: 1e-9 }
    expect(() => compileRule('x', scaleRule(slowest, 0.1))).not.toThrow()
    expect(() => compileRule('x', { ...slowest, refillPerSecond: 0.9e-9 })).toThrow('refillPerSecond')
    expect(() => compileRule('x', scaleRule({ ...slowest, refillPerSecond: 1 }, 1e12))).not.toThrow()
  })
})

describe('a rule with the numbers of an override', () => {
  const token: TokenBucketRule = { algorithm: 'token-bucket', capacity: 10, refillPerSecond: 2 }

  it.each<[string, OverrideTerms, Rule, Rule]>([
    ['a limit', { limit: 7 }, { limit: 10, window: '1m' }, { limit: 7, window: '1m' }],
    ['limit and window', { limit: 7, window: '1h' }, { limit: 10, window: '1m' }, { limit: 7, window: '1h' }],
    [
      'limit and burst',
      { limit: 7, burst: 3 },
      { limit: 10, window: '1m', burst: 20 },
      { limit: 7, window: '1m', burst: 3 },
    ],
    [
      'a limit, in proportion to which a burst is raised',
      { limit: 20 },
      { limit: 10, window: '1m', burst: 5 },
      { limit: 20, window: '1m', burst: 10 },
    ],
    [
      'a limit, in proportion to which a burst over a window is lowered',
      { limit: 1 },
      { algorithm: 'fixed-window', limit: 10, window: '1m', burst: 15 },
      { algorithm: 'fixed-window', limit: 1, window: '1m', burst: 1 },
    ],
    [
      'a limit, for a rule whose burst has nothing to be compared with',
      { limit: 3 },
      { limit: 0, window: '1m', burst: 5 },
      { limit: 3, window: '1m', burst: 5 },
    ],
    [
      'a limit, for a window whose burst would be less',
      { limit: 8 },
      { algorithm: 'fixed-window', limit: 0, window: '1m', burst: 5 },
      { algorithm: 'fixed-window', limit: 8, window: '1m', burst: 8 },
    ],
    [
      'a limit of 0, without any burst',
      { limit: 0 },
      { limit: 10, window: '1m', burst: 5 },
      { limit: 0, window: '1m', burst: 0 },
    ],
    [
      'a limit on a calendar',
      { limit: 7 },
      { algorithm: 'fixed-window', limit: 10, window: MONTH },
      { algorithm: 'fixed-window', limit: 7, window: MONTH },
    ],
    [
      'a limit, for the only one of "windows"',
      { limit: 7 },
      { windows: [{ limit: 10, window: '1m' }] },
      { windows: [{ limit: 7, window: '1m' }] },
    ],
    ['a limit, for a rule that was off', { limit: 7 }, { limit: 'off', window: '1m' }, { limit: 7, window: '1m' }],
    ['a capacity', { limit: 5 }, token, { ...token, capacity: 5, refillPerSecond: 1 }],
    ['a capacity, for a bucket without any', { limit: 5 }, { ...token, capacity: 0 }, { ...token, capacity: 5 }],
    [
      'a capacity, for a bucket that was off',
      { limit: 5 },
      { ...token, capacity: 'off' as const },
      { ...token, capacity: 5 },
    ],
    ['a capacity of 0', { limit: 0 }, token, { ...token, capacity: 0 }],
    [
      'the limit of a hybrid, with its burst in proportion',
      { limit: 10 },
      HYBRID,
      { ...HYBRID, limit: 10, burst: { capacity: 5, refillPerSecond: 0.2 } },
    ],
    [
      'the limit of a hybrid with window and burst',
      { limit: 10, window: '1h', burst: 100 },
      HYBRID,
      { ...HYBRID, limit: 10, window: '1h', burst: { capacity: 100, refillPerSecond: 4 } },
    ],
    [
      'slots',
      { limit: 9 },
      { algorithm: 'concurrency', limit: 3, lease: '10s' },
      { algorithm: 'concurrency', limit: 9, lease: '10s' },
    ],
    [
      'several windows',
      {
        windows: [
          { limit: 1, window: '1s' },
          { limit: 9, window: '1m' },
        ],
      },
      { algorithm: 'sliding-window-log', segments: 6, limit: 10, window: '1m', burst: 12 },
      {
        algorithm: 'sliding-window-log',
        segments: 6,
        windows: [
          { limit: 1, window: '1s' },
          { limit: 9, window: '1m' },
        ],
      },
    ],
    [
      'one of "windows" for one window',
      { windows: [{ limit: 1, window: '1s' }] },
      { limit: 10, window: '1m', burst: 5 },
      { limit: 1, window: '1s' },
    ],
    ['a multiplier', { multiplier: 0.5 }, token, { ...token, capacity: 5, refillPerSecond: 1 }],
    ['a multiplier of 0', { multiplier: 0 }, { limit: 10, window: '1m' }, { limit: 0, window: '1m' }],
  ])('has %s', (_name, terms, rule, expected) => {
    expect(applyTerms(rule, terms)).toEqual(expected)
    expect(() => compileRule('x', expected)).not.toThrow()
  })

  it.each<[string, Rule]>([
    ['gcra', { limit: 10, window: '1m', burst: 5 }],
    [
      'several windows',
      {
        windows: [
          { limit: 10, window: '1m' },
          { limit: 99, window: '1h' },
        ],
      },
    ],
    ['a token bucket', token],
    ['a hybrid', HYBRID],
    ['concurrency', { algorithm: 'concurrency', limit: 3, lease: '10s' }],
  ])('does not limit when it is off, for %s', (_name, rule) => {
    const off = applyTerms(rule, { limit: 'off' }) as Rule
    expect(compileRule('x', off)).toEqual([])
    expect(compileRule('x', scaleRule(off, 0.5))).toEqual([])
  })

  it.each<[string, OverrideTerms, Rule]>([
    ['expected exactly one', {}, { limit: 10, window: '1m' }],
    ['there are 2 of', { limit: 1, multiplier: 2 }, { limit: 10, window: '1m' }],
    ['"window" stands without "limit"', { multiplier: 2, window: '1m' }, { limit: 10, window: '1m' }],
    ['"burst" stands without "limit"', { multiplier: 2, burst: 2 }, { limit: 10, window: '1m' }],
    ['"multiplier" is -1', { multiplier: -1 }, { limit: 10, window: '1m' }],
    ['"multiplier" is Infinity', { multiplier: Number.POSITIVE_INFINITY }, { limit: 10, window: '1m' }],
    [
      'which of the 2 windows',
      { limit: 1 },
      {
        windows: [
          { limit: 1, window: '1s' },
          { limit: 9, window: '1m' },
        ],
      },
    ],
    ['token-bucket does not have a "window"', { limit: 1, window: '1m' }, token],
    ['token-bucket does not have a "burst"', { limit: 1, burst: 2 }, token],
    ['token-bucket does not have "windows"', { windows: [{ limit: 1, window: '1m' }] }, token],
    ['hybrid does not have "windows"', { windows: [{ limit: 1, window: '1m' }] }, HYBRID],
    [
      'concurrency does not have a "window"',
      { limit: 1, window: '1m' },
      { algorithm: 'concurrency', limit: 1, lease: '1s' },
    ],
  ])('is a problem, not a guess: %s', (problem, terms, rule) => {
    expect(applyTerms(rule, terms)).toEqual({ problem: expect.stringContaining(problem) })
  })
})

describe('a rule with more units at once', () => {
  it.each<[string, Rule, Rule]>([
    ['gcra', { limit: 10, window: '1m' }, { limit: 10, window: '1m', burst: 15 }],
    ['gcra with burst', { limit: 10, window: '1m', burst: 2 }, { limit: 10, window: '1m', burst: 7 }],
    ['gcra that denies all', { limit: 0, window: '1m' }, { limit: 0, window: '1m' }],
    ['gcra that is off', { limit: 'off', window: '1m' }, { limit: 'off', window: '1m' }],
    [
      'each of several windows',
      {
        windows: [
          { limit: 1, window: '1s' },
          { limit: 9, window: '1m', burst: 2 },
        ],
      },
      {
        windows: [
          { limit: 1, window: '1s', burst: 6 },
          { limit: 9, window: '1m', burst: 7 },
        ],
      },
    ],
    [
      'fixed window',
      { algorithm: 'fixed-window', limit: 10, window: '1m' },
      { algorithm: 'fixed-window', limit: 10, window: '1m', burst: 15 },
    ],
    [
      'sliding window with burst',
      { algorithm: 'sliding-window-log', limit: 10, window: '1m', burst: 12 },
      { algorithm: 'sliding-window-log', limit: 10, window: '1m', burst: 17 },
    ],
    [
      'calendar window',
      { algorithm: 'fixed-window', limit: 10, window: { calendar: 'hour' }, failureMode: 'open' },
      {
        algorithm: 'hybrid',
        limit: 10,
        window: { calendar: 'hour' },
        burst: { capacity: 5, refillPerSecond: 5 / 3600 },
        failureMode: 'open',
      },
    ],
    [
      'token bucket',
      { algorithm: 'token-bucket', capacity: 10, refillPerSecond: 1 },
      { algorithm: 'token-bucket', capacity: 15, refillPerSecond: 1 },
    ],
    [
      'leaky bucket that denies all',
      { algorithm: 'leaky-bucket-queue', capacity: 0, ratePerSecond: 1 },
      { algorithm: 'leaky-bucket-queue', capacity: 0, ratePerSecond: 1 },
    ],
    ['hybrid', HYBRID, { ...HYBRID, burst: { capacity: 55, refillPerSecond: 2 } }],
    [
      'concurrency',
      { algorithm: 'concurrency', limit: 10, lease: '1s' },
      { algorithm: 'concurrency', limit: 15, lease: '1s' },
    ],
    ['the largest', { limit: LARGEST, window: '1m' }, { limit: LARGEST, window: '1m', burst: LARGEST }],
  ])('has them as %s', (_name, rule, expected) => {
    expect(addBurst(rule, 5)).toEqual(expected)
    expect(() => compileRule('x', expected)).not.toThrow()
  })

  it.each<[string, Rule]>([
    ['rollover', { algorithm: 'fixed-window', limit: 10, window: '1m', rollover: true }],
    [
      'calendar window among several',
      {
        algorithm: 'fixed-window',
        windows: [
          { limit: 10, window: MONTH },
          { limit: 1, window: '1m' },
        ],
      },
    ],
  ])('is a problem where there is no room for them: %s', (problem, rule) => {
    expect(addBurst(rule, 5)).toEqual({ problem: expect.stringContaining(problem) })
    expect(addBurst(rule, 0)).toBe(rule)
  })

  it('can be closed for a hybrid, whose window stays', () => {
    expect(withoutHybridBurst(HYBRID)).toEqual({ ...HYBRID, burst: { capacity: 0, refillPerSecond: 2 } })
    const other: Rule = { limit: 10, window: '1m', burst: 20 }
    expect(withoutHybridBurst(other)).toBe(other)
  })
})

const units = fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: LARGEST }))
const perSecond = fc.oneof(fc.double({ min: 1e-9, max: 10, noNaN: true }), fc.integer({ min: 1, max: LARGEST }))
const duration = fc.integer({ min: 1, max: 1_000_000 })
const factorOf = fc.oneof(
  fc.constantFrom(0.1, 0.29, 0.5, 1, 1.1, 2, 10),
  fc.double({ min: 1e-6, max: 1e6, noNaN: true }),
)

const anyRule: fc.Arbitrary<Rule> = fc.oneof(
  fc.record({ limit: units, window: duration }),
  fc.record({ limit: units, window: duration, burst: units }),
  fc
    .record({ limit: units, window: duration, extra: fc.integer({ min: 0, max: 100 }) })
    .map(({ limit, window, extra }): Rule => {
      return { algorithm: 'fixed-window', limit, window, burst: Math.min(LARGEST, limit + extra) }
    }),
  fc.record({
    algorithm: fc.constant('sliding-window-log' as const),
    limit: fc.integer({ min: 0, max: 100_000 }),
    window: duration,
  }),
  fc.record({
    algorithm: fc.constant('token-bucket' as const),
    capacity: units,
    refillPerSecond: perSecond,
  }),
  fc.record({
    algorithm: fc.constant('hybrid' as const),
    limit: units,
    window: fc.constant({ calendar: 'day' } as const),
    burst: fc.record({ capacity: units, refillPerSecond: perSecond }),
  }),
  fc.record({ algorithm: fc.constant('concurrency' as const), limit: units, lease: duration }),
)

describe('property: whatever the rule and the factor', () => {
  it('a scaled rule can be used, and has no more or less than its share, rounded down', () => {
    fc.assert(
      fc.property(anyRule, factorOf, (rule, factor) => {
        const before = compileRule('x', rule)[0]!
        const after = compileRule('x', scaleRule(rule, factor))[0]!
        expect(after.id).toBe(before.id)
        for (const part of ['limit', 'capacity'] as const) {
          // An overlay is the sum of two numbers, each rounded, and lifted to 1.
          const most = Math.min(2 * LARGEST, before[part] * factor * (1 + 1e-9) + 2)
          expect(after[part]).toBeLessThanOrEqual(most)
          expect(after[part] > 0).toBe(before[part] > 0)
          if (factor >= 1 && before.algorithm !== 'sliding-window-log' && before[part] * factor < LARGEST)
            expect(after[part]).toBeGreaterThan(before[part] * factor - 2)
        }
      }),
    )
  })

  it('a larger factor never gives less', () => {
    fc.assert(
      fc.property(anyRule, factorOf, factorOf, (rule, one, other) => {
        const low = compileRule('x', scaleRule(rule, Math.min(one, other)))[0]!
        const high = compileRule('x', scaleRule(rule, Math.max(one, other)))[0]!
        expect(low.limit).toBeLessThanOrEqual(high.limit)
        expect(low.capacity).toBeLessThanOrEqual(high.capacity)
      }),
    )
  })

  it('a burst never takes anything away, and gives at most what it says', () => {
    fc.assert(
      fc.property(anyRule, fc.integer({ min: 0, max: 1000 }), (rule, extra) => {
        const before = compileRule('x', rule)[0]!
        const after = compileRule('x', addBurst(rule, extra) as Rule)[0]!
        const gained = after.capacity - before.capacity
        expect(gained).toBeGreaterThanOrEqual(0)
        expect(gained).toBeLessThanOrEqual(before.capacity === 0 && before.limit === 0 ? 0 : extra)
      }),
    )
  })
})
