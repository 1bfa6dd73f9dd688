import { rules } from '@sluice/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ALGORITHMS } from './algorithms/all-algorithms.ts'
import type { Limit } from './rule/limit.ts'
import type { Rule } from './rule/rule.ts'
import { compileRule } from './rule-kinds.ts'

function compileOne(rule: unknown): Limit {
  const limits = compileRule('api', rule as Rule)
  expect(limits).toHaveLength(1)
  return limits[0]!
}

function errorOf(rule: unknown, name = 'api'): { code: string; message: string; received: unknown } {
  try {
    compileRule(name, rule as Rule)
  } catch (error) {
    return error as { code: string; message: string; received: unknown }
  }
  throw new Error('the rule was accepted')
}

describe('a rule becomes a limit', () => {
  it.each<[string, Rule, Partial<Record<string, unknown>>]>([
    [
      'gcra',
      { limit: 100, window: '1m' },
      { algorithm: 'gcra', limit: 100, capacity: 100, rate: { units: 5, micros: 3 } },
    ],
    [
      'gcra with burst',
      { limit: 100, window: '1m', burst: 10 },
      { limit: 100, capacity: 10, rate: { units: 5, micros: 3 } },
    ],
    [
      'token bucket',
      { algorithm: 'token-bucket', capacity: 50, refillPerSecond: 0.5 },
      { limit: 50, capacity: 50, rate: { units: 1, micros: 2 }, stateSize: 2, fixedSize: true },
    ],
    [
      'leaky bucket',
      { algorithm: 'leaky-bucket-meter', capacity: 5, leakPerSecond: 7 },
      { algorithm: 'leaky-bucket-meter', limit: 5, capacity: 5, rate: { units: 7, micros: 1 } },
    ],
    [
      'queue',
      { algorithm: 'leaky-bucket-queue', capacity: 5, ratePerSecond: 7 },
      { algorithm: 'leaky-bucket-queue', limit: 5, capacity: 5, rate: { units: 7, micros: 1 } },
    ],
    [
      'fixed window',
      { algorithm: 'fixed-window', limit: 5, window: '1.001ms' },
      { limit: 5, capacity: 5, window: 1001, rolloverMax: 0, stateSize: 2 },
    ],
    [
      'rollover',
      { algorithm: 'fixed-window', limit: 5, window: '1s', rollover: true },
      { limit: 5, capacity: 10, rolloverMax: 5, stateSize: 3 },
    ],
    [
      'calendar',
      {
        algorithm: 'fixed-window',
        limit: 5,
        window: { calendar: 'week', timeZone: 'Europe/Berlin', weekStart: 'sunday' },
      },
      { window: { period: 'week', timeZone: 'Europe/Berlin', weekStart: 0 } },
    ],
    [
      'calendar with defaults',
      { algorithm: 'fixed-window', limit: 5, window: { calendar: 'month' } },
      { window: { period: 'month', timeZone: 'UTC', weekStart: 1 } },
    ],
    [
      'fractional bucket',
      { algorithm: 'token-bucket', capacity: 2.3, refillPerSecond: 1 },
      { algorithm: 'token-bucket', limit: 2, capacity: 2, full: 2_300_000, stateSize: 2 },
    ],
    [
      'bucket finer than a millionth',
      { algorithm: 'leaky-bucket-queue', capacity: 10 / 3, ratePerSecond: 1 },
      { algorithm: 'leaky-bucket-queue', limit: 3, capacity: 3, full: 3_333_333, stateSize: 2 },
    ],
    [
      'bucket with rollover',
      { algorithm: 'token-bucket', capacity: 2.5, refillPerSecond: 1, rollover: true },
      {
        algorithm: 'token-bucket-rollover',
        limit: 2,
        capacity: 5,
        full: 2_500_000,
        rolloverFull: 2_500_000,
        stateSize: 3,
        fixedSize: true,
      },
    ],
    [
      'hybrid with a fractional burst',
      { algorithm: 'hybrid', limit: 5, window: '1s', burst: { capacity: 2.5, refillPerSecond: 2 } },
      { algorithm: 'hybrid', limit: 7, capacity: 7, burst: expect.objectContaining({ capacity: 2, full: 2_500_000 }) },
    ],
    [
      'counter',
      { algorithm: 'sliding-window-counter', limit: 5, window: '1s' },
      { windowMicros: 1_000_000, capacity: 5, stateSize: 3, fixedSize: true },
    ],
    [
      'log',
      { algorithm: 'sliding-window-log', limit: 5, window: '1s' },
      { algorithm: 'sliding-window-log', windowMicros: 1_000_000, stateSize: 10, fixedSize: false },
    ],
    [
      'segments',
      { algorithm: 'sliding-window-log', limit: 5, window: '1s', segments: 6 },
      { algorithm: 'sliding-window-segments', segments: 6, stateSize: 8, fixedSize: true },
    ],
    [
      'hybrid',
      { algorithm: 'hybrid', limit: 5, window: '1s', burst: { capacity: 3, refillPerSecond: 2 } },
      { algorithm: 'hybrid', limit: 8, capacity: 8, stateSize: 4, fixedSize: true },
    ],
    [
      'burst over a window',
      { algorithm: 'fixed-window', limit: 5, window: '1s', burst: 8 },
      { algorithm: 'hybrid', limit: 8, capacity: 8 },
    ],
    [
      'concurrency',
      { algorithm: 'concurrency', limit: 5, lease: '30s' },
      { leaseMicros: 30_000_000, capacity: 5, stateSize: 15, fixedSize: false },
    ],
    ['limit 0', { limit: 0, window: '1s' }, { limit: 0, capacity: 0 }],
    ['limit 0 with burst', { limit: 0, window: '1s', burst: 5 }, { limit: 0, capacity: 0 }],
    [
      'hybrid of limit 0',
      { algorithm: 'hybrid', limit: 0, window: '1s', burst: { capacity: 3, refillPerSecond: 2 } },
      { limit: 0, capacity: 0 },
    ],
    ['the largest', { limit: 9_000_000_000, window: '36600d' }, { capacity: 9_000_000_000 }],
  ])('%s', (_what, rule, limit) => {
    expect(compileOne(rule)).toMatchObject(limit)
  })

  it('or into none when it is off', () => {
    expect(compileRule('api', { limit: 'off', window: '1m' })).toEqual([])
    expect(compileRule('api', { algorithm: 'token-bucket', capacity: 'off', refillPerSecond: 1 })).toEqual([])
  })

  it('or into one for each of its windows, known by their length', () => {
    const rule = (...windows: readonly { limit: number; window: '1s' | '1m' | 1000 }[]) =>
      compileRule('api', { windows })
    const [second, minute] = rule({ limit: 5, window: '1s' }, { limit: 50, window: '1m' })
    expect([second, minute]).toMatchObject([
      { rule: 'api', limit: 5 },
      { rule: 'api', limit: 50 },
    ])
    expect(second!.id).not.toBe(minute!.id)
    // Another order, another limit, another spelling: the same counters.
    expect(rule({ limit: 9, window: '1m' }, { limit: 9, window: 1000 }).map(({ id }) => id)).toEqual([
      minute!.id,
      second!.id,
    ])
  })

  it('knows calendar windows by what they mean, not by how they are written', () => {
    const idOf = (window: object): string =>
      compileRule('api', { algorithm: 'fixed-window', windows: [{ limit: 1, window }] } as unknown as Rule)[0]!.id
    expect(idOf({ calendar: 'day' })).toBe(idOf({ timeZone: 'UTC', weekStart: 'monday', calendar: 'day' }))
    expect(idOf({ calendar: 'day' })).not.toBe(idOf({ calendar: 'day', timeZone: 'Europe/Berlin' }))
  })

  it('frozen, whole, and leaves the rule as it was', () => {
    for (const name of Object.keys(ALGORITHMS) as Limit['algorithm'][]) {
      fc.assert(
        fc.property(rules(name), (rule) => {
          const copy = structuredClone(rule)
          const limit = compileOne(deepFreeze(rule))
          expect(rule).toEqual(copy)
          expect(limit.algorithm).toBe(name)
          expect(Object.isFrozen(limit)).toBe(true)
          expect(() => JSON.stringify(limit)).not.toThrow()
          for (const value of Object.values(limit)) if (typeof value === 'number') expect(value).toBe(Math.floor(value))
        }),
        { numRuns: 30 },
      )
    }
  })

  it('keeps its counters when its limit changes, and starts others when its kind of algorithm does', () => {
    const idOf = (rule: Rule): string => compileOne(rule).id
    expect(idOf({ limit: 1, window: '1s' })).toBe(idOf({ limit: 9, window: '1h', burst: 3 }))
    expect(idOf({ limit: 1, window: '1s' })).toBe(idOf({ algorithm: 'token-bucket', capacity: 2, refillPerSecond: 1 }))
    const kinds: Rule[] = [
      { limit: 1, window: '1s' },
      { algorithm: 'fixed-window', limit: 1, window: '1s' },
      { algorithm: 'fixed-window', limit: 1, window: '1s', rollover: true },
      { algorithm: 'fixed-window', limit: 1, window: '1s', burst: 2 },
      { algorithm: 'sliding-window-counter', limit: 1, window: '1s' },
      { algorithm: 'sliding-window-counter', limit: 1, window: '1s', burst: 2 },
      { algorithm: 'sliding-window-log', limit: 1, window: '1s' },
      { algorithm: 'sliding-window-log', limit: 1, window: '1s', segments: 2 },
      { algorithm: 'concurrency', limit: 1, lease: '1s' },
    ]
    expect(new Set(kinds.map(idOf)).size).toBe(kinds.length)
    const spaces = kinds.map(compileOne).map(({ space0, space1 }) => `${space0} ${space1}`)
    expect(new Set(spaces).size).toBe(kinds.length)
  })
})

describe('a mistake in a rule is named, with what was received and expected', () => {
  const bucket = { algorithm: 'token-bucket', capacity: 5, refillPerSecond: 1 }
  const fixed = { algorithm: 'fixed-window', limit: 5, window: '1s' }
  const log = { algorithm: 'sliding-window-log', limit: 5, window: '1s' }
  const hybrid = { algorithm: 'hybrid', limit: 5, window: '1s', burst: { capacity: 3, refillPerSecond: 2 } }

  it.each<[string, unknown, RegExp]>([
    ['no object', undefined, /is not an object; received undefined; expected a rule such as/],
    ['null', null, /is not an object; received null/],
    ['a string', '100/m', /is not an object; received "100\/m"/],
    [
      'an unknown algorithm',
      { algorithm: 'magic', limit: 1 },
      /unknown "algorithm"; received "magic"; expected one of gcra, fixed-window/,
    ],
    ['an algorithm from Object', { algorithm: 'toString', limit: 1 }, /unknown "algorithm"/],
    ['an algorithm that is no text', { algorithm: 5 }, /unknown "algorithm"; received 5/],
    [
      'an unknown option',
      { ...fixed, limits: 5 },
      /the option "limits", which fixed-window does not have; expected only limit, window/,
    ],
    ['a misspelt option', { limit: 5, window: '1s', brust: 2 }, /the option "brust", which gcra/],
    ['a limit on a bucket', { ...bucket, limit: 5 }, /the option "limit".*calls it "capacity"/],
    ['a window on a bucket', { ...bucket, window: '1s' }, /the option "window".*takes a rate per second/],
    ['a burst on a bucket', { ...bucket, burst: 5 }, /the option "burst".*Here "capacity" is the burst/],
    ['a capacity on a window', { ...fixed, capacity: 5 }, /the option "capacity".*calls it "limit"/],
    [
      'a window on slots',
      { algorithm: 'concurrency', limit: 1, lease: '1s', window: '1s' },
      /expected only limit, lease\.$/,
    ],
    ['rollover elsewhere', { ...log, rollover: true }, /the option "rollover".*use "fixed-window"/],
    [
      'no limit',
      { window: '1s' },
      /unusable "limit"; received undefined; expected a whole number from 0 to 9000000000.*0 to deny all, or "off"/,
    ],
    ['a negative limit', { ...fixed, limit: -1 }, /unusable "limit"; received -1/],
    ['a fractional limit', { ...fixed, limit: 1.5 }, /unusable "limit"; received 1\.5/],
    ['NaN', { ...fixed, limit: Number.NaN }, /unusable "limit"; received NaN/],
    ['an infinite limit', { ...fixed, limit: Number.POSITIVE_INFINITY }, /unusable "limit"; received Infinity/],
    ['a limit in text', { ...fixed, limit: '5' }, /unusable "limit"; received "5".*without quotes: limit: 5\./],
    ['a limit in words', { ...fixed, limit: 'five' }, /unusable "limit"; received "five"[^:]* Use 0 to deny all/],
    ['an empty limit', { ...fixed, limit: '' }, /unusable "limit"; received ""[^:]* Use 0 to deny all/],
    ['an algorithm that is near', { ...fixed, algorithm: 'fixed_window' }, /Did you mean "fixed-window"\?/],
    ['an option of another library', { ...fixed, windowMs: 5 }, /has the option "windowMs".*Write "window"/],
    ['a misspelt part', { windows: [{ limit: 1, windw: '1s' }] }, /"windw" in "windows".*Did you mean "window"\?/],
    ['a limit too large', { ...fixed, limit: 9_000_000_001 }, /unusable "limit"; received 9000000001/],
    ['a bigint', { ...fixed, limit: 5n }, /unusable "limit"; received 5n/],
    [
      'a capacity below 1',
      { ...bucket, capacity: 0.5 },
      /unusable "capacity"; received 0\.5; expected 0, or a number from 1/,
    ],
    ['a negative capacity', { ...bucket, capacity: -1 }, /unusable "capacity"; received -1/],
    ['a capacity of NaN', { ...bucket, capacity: Number.NaN }, /unusable "capacity"; received NaN/],
    ['a capacity too large', { ...bucket, capacity: 9_000_000_000.5 }, /unusable "capacity"; received 9000000000\.5/],
    ['a capacity in text', { ...bucket, capacity: '2.5' }, /received "2\.5".*without quotes: capacity: 2\.5\./],
    [
      'a capacity too large to roll over',
      { ...bucket, capacity: 3_000_000_001, rollover: true },
      /unusable "capacity"; received 3000000001; expected 0, or a number from 1 to 3000000000/,
    ],
    ['rollover of a bucket that is no flag', { ...bucket, rollover: 1 }, /unusable "rollover"; received 1/],
    [
      'rollover on another bucket',
      { algorithm: 'leaky-bucket-meter', capacity: 1, leakPerSecond: 1, rollover: true },
      /option "rollover"/,
    ],
    ['no capacity', { algorithm: 'token-bucket', refillPerSecond: 1 }, /unusable "capacity"; received undefined/],
    [
      'no rate',
      { algorithm: 'token-bucket', capacity: 1 },
      /unusable "refillPerSecond"; received undefined; expected units per second/,
    ],
    ['a rate of 0', { ...bucket, refillPerSecond: 0 }, /unusable "refillPerSecond"; received 0/],
    ['a negative rate', { ...bucket, refillPerSecond: -1 }, /unusable "refillPerSecond"; received -1/],
    ['a rate of NaN', { ...bucket, refillPerSecond: Number.NaN }, /unusable "refillPerSecond"; received NaN/],
    ['a rate too small', { ...bucket, refillPerSecond: 1e-10 }, /unusable "refillPerSecond"/],
    ['a rate too large', { ...bucket, refillPerSecond: 1e10 }, /unusable "refillPerSecond"/],
    ['no leak', { algorithm: 'leaky-bucket-meter', capacity: 1 }, /unusable "leakPerSecond"/],
    ['no rate of a queue', { algorithm: 'leaky-bucket-queue', capacity: 1 }, /unusable "ratePerSecond"/],
    [
      'a burst of gcra that is no number',
      { limit: 5, window: '1s', burst: {} },
      /unusable "burst"; received an object/,
    ],
    ['a burst below the limit', { ...fixed, burst: 4 }, /unusable "burst"; received 4; expected a whole number from 5/],
    ['a burst with rollover', { ...fixed, rollover: true, burst: 9 }, /"burst" together with "rollover"/],
    [
      'a burst on the calendar',
      { ...fixed, window: { calendar: 'day' }, burst: 9 },
      /"burst" together with a calendar window/,
    ],
    [
      'rollover that is no flag',
      { ...fixed, rollover: 'yes' },
      /unusable "rollover"; received "yes"; expected true or false/,
    ],
    ['no segments', { ...log, segments: 0 }, /unusable "segments"; received 0; expected a whole number from 1 to 1000/],
    ['too many segments', { ...log, segments: 1001 }, /unusable "segments"; received 1001/],
    [
      'a log too long',
      { ...log, limit: 100_001 },
      /"limit" too large for the exact log.*received 100001; expected at most 100000.*segments/,
    ],
    [
      'an unknown period',
      { ...fixed, window: { calendar: 'year' } },
      /unknown calendar period; received "year"; expected one of minute, hour/,
    ],
    [
      'an unknown zone',
      { ...fixed, window: { calendar: 'day', timeZone: 'Mars' } },
      /unknown "timeZone"; received "Mars"/,
    ],
    [
      'an unknown weekday',
      { ...fixed, window: { calendar: 'week', weekStart: 'Monday' } },
      /unknown "weekStart"; received "Monday"/,
    ],
    [
      'a misspelt zone option',
      { ...fixed, window: { calendar: 'day', timezone: 'UTC' } },
      /"timezone" in "window", which is not known there; expected only calendar, timeZone, weekStart/,
    ],
    ['a list as window', { ...fixed, window: ['1s'] }, /unusable "window"; received an array of 1/],
    [
      'a hybrid without burst',
      { ...hybrid, burst: undefined },
      /unusable "burst"; received undefined; expected an object of capacity, refillPerSecond/,
    ],
    ['a hybrid with a number', { ...hybrid, burst: 5 }, /unusable "burst"; received 5/],
    ['a misspelt burst', { ...hybrid, burst: { capacity: 1, refill: 1 } }, /"refill" in "burst"/],
    ['a burst without rate', { ...hybrid, burst: { capacity: 1 } }, /unusable "refillPerSecond"/],
    [
      'a burst that is off',
      { ...hybrid, burst: { capacity: 'off', refillPerSecond: 1 } },
      /unusable "capacity"; received "off"/,
    ],
    ['no windows', { windows: [] }, /unusable "windows"; received an array of 0; expected 1 to 16 entries/],
    [
      'too many windows',
      { windows: Array.from({ length: 17 }, (_, index) => ({ limit: 1, window: index + 1 })) },
      /unusable "windows"; received an array of 17/,
    ],
    ['windows that are no list', { windows: { limit: 1, window: '1s' } }, /unusable "windows"; received an object/],
    [
      'an empty place in windows',
      { windows: [null] },
      /unusable "windows"; received null; expected an object of limit, window, burst/,
    ],
    ['a number in windows', { windows: [5] }, /unusable "windows"; received 5/],
    ['a misspelt window', { windows: [{ limit: 1, window: '1s', bursts: 5 }] }, /"bursts" in "windows"/],
    [
      'both forms',
      { windows: [{ limit: 1, window: '1s' }], limit: 5 },
      /both "windows" and "limit"; expected one of them.*Put it into an entry/,
    ],
    [
      'one window twice',
      {
        windows: [
          { limit: 1, window: '60s' },
          { limit: 2, window: '1m' },
        ],
      },
      /two "windows" of one length; received "1m"/,
    ],
    ['a window that is off', { windows: [{ limit: 'off', window: '1s' }] }, /unusable "limit"; received "off"/],
  ])('%s', (_what, rule, message) => {
    const error = errorOf(rule)
    expect(error.code).toBe('SLUICE_INVALID_RULE')
    expect(error.message).toMatch(message)
    expect(error.message).toMatch(/^SLUICE_INVALID_RULE: rule "api" /)
  })

  it.each<[string, unknown, string]>([
    ['no window', { limit: 5 }, 'window'],
    ['a window of 0', { ...fixed, window: 0 }, 'window'],
    ['a window of text', { limit: 5, window: 'minute' }, 'window'],
    ['a calendar where there is none', { limit: 5, window: { calendar: 'day' } }, 'window'],
    ['no lease', { algorithm: 'concurrency', limit: 5 }, 'lease'],
    ['a window in a list', { windows: [{ limit: 5, window: -1 }] }, 'window'],
  ])('%s', (_what, rule, option) => {
    const error = errorOf(rule)
    expect(error.code).toBe('SLUICE_INVALID_DURATION')
    expect(error.message).toContain(`"${option}" is not a usable duration`)
  })

  it.each([
    ['empty', ''],
    ['no text', 5],
    ['with a space', 'my api'],
    ['with the mark that separates windows', 'api#1'],
    ['with a line break', 'api\n'],
    ['too long', 'a'.repeat(129)],
    ['with a brace', '{api}'],
    ['that begins with a dot', '.api'],
  ])('a name that is %s', (_what, name) => {
    const error = errorOf({ limit: 1, window: '1s' }, name as string)
    expect(error).toMatchObject({ code: 'SLUICE_INVALID_RULE', received: name })
    expect(error.message).toContain('the name of a rule cannot be used')
  })

  it.each(['a', 'api', '/orders/:id', '*', 'GET:/files/*', 'user@tier-1_2.x', 'a'.repeat(128)])(
    'but not the name %s',
    (name) => {
      expect(compileRule(name, { limit: 1, window: '1s' })[0]!.rule).toBe(name)
    },
  )
})

function deepFreeze<T extends object>(value: T): T {
  for (const part of Object.values(value)) if (typeof part === 'object' && part !== null) deepFreeze(part)
  return Object.freeze(value)
}
