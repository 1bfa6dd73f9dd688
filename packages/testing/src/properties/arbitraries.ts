import type { Duration, Rule } from '@sluice/core'
import { compileRule } from '@sluice/core/internal'
import type { Limit } from '@sluice/core/store'
import fc from 'fast-check'
import { START_MICROS } from '../fakes/fake-clock.ts'

/** The name of an algorithm, as the registry of the core lists it. */
export type AlgorithmName = Limit['algorithm']

/** Keys that have broken other limiters: separators, NUL, hash tags, halves of characters, look-alikes, long ones. */
export const HOSTILE_KEYS: readonly string[] = [
  '\0',
  'a\0b',
  '{',
  '}',
  '{user}:1',
  '{}{}',
  ':',
  '1:a',
  '1:a1:b',
  '#',
  ' ',
  '\n',
  '__proto__',
  'constructor',
  '👩‍👩‍👧',
  '\ud83d',
  '\udc69',
  '\udc69\ud83d',
  'é',
  'e\u0301',
  'ａ',
  'k'.repeat(4096),
  `${'k'.repeat(4095)}l`,
]

/** Any key a limiter accepts: hostile ones, any 16-bit code units (halves of characters included), and plain ones. */
export function keys(): fc.Arbitrary<string> {
  const codeUnit = fc.integer({ min: 0, max: 0xff_ff }).map((unit) => String.fromCharCode(unit))
  return fc.oneof(
    fc.constantFrom(...HOSTILE_KEYS),
    fc.string({ unit: codeUnit, minLength: 1, maxLength: 12 }),
    fc.string({ unit: fc.constantFrom('a', 'b', ':', '1', '2'), minLength: 1, maxLength: 6 }),
  )
}

/** A number of units that is mostly small, sometimes at its largest. Shrinks to the smallest. */
function units({ least = 1, most = 9_000_000_000 }: { least?: number; most?: number } = {}): fc.Arbitrary<number> {
  return fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: least, max: Math.min(most, 12) }) },
    { weight: 2, arbitrary: fc.integer({ min: least, max: Math.min(most, 5000) }) },
    { weight: 1, arbitrary: fc.integer({ min: least, max: most }) },
  )
}

/** The capacity of a bucket: a whole number, or a fraction to the millionth. */
function bucketUnits({ most = 9_000_000_000 }: { most?: number } = {}): fc.Arbitrary<number> {
  return fc.oneof(
    { weight: 3, arbitrary: units({ most }) },
    { weight: 1, arbitrary: fc.integer({ min: 1_000_000, max: 12_000_000 }).map((micro) => micro / 1e6) },
    { weight: 1, arbitrary: fc.constantFrom(1.5, 2.3, 2.5, 4.1, 1_000_000.000_001) },
  )
}

/** A length of time in milliseconds, to the microsecond: round ones, crooked ones, and up to a hundred years. */
function windows(): fc.Arbitrary<Duration> {
  return fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom<Duration>('1s', '1m', '1h', '1d', 250) },
    { weight: 3, arbitrary: fc.integer({ min: 1, max: 5_000_000 }).map((micros) => micros / 1000) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 36_600 }).map((days): Duration => `${days}d`) },
  )
}

/** A rate per second: whole, a fraction of small numbers, a decimal, or extreme. */
function ratesPerSecond(): fc.Arbitrary<number> {
  return fc.oneof(
    { weight: 3, arbitrary: fc.integer({ min: 1, max: 1000 }) },
    {
      weight: 3,
      arbitrary: fc
        .tuple(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 1000 }))
        .map(([amount, seconds]) => amount / seconds),
    },
    { weight: 2, arbitrary: fc.integer({ min: 1, max: 1_000_000 }).map((millionths) => millionths / 1e6) },
    { weight: 1, arbitrary: fc.double({ min: 1e-9, max: 9e9, noNaN: true }) },
  )
}

const calendars: fc.Arbitrary<{ calendar: 'minute' | 'hour' | 'day' | 'week' | 'month'; timeZone: string }> = fc.record(
  {
    calendar: fc.constantFrom('minute', 'hour', 'day', 'week', 'month'),
    timeZone: fc.constantFrom('UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kathmandu', 'Australia/Lord_Howe'),
  },
)

/** A burst on top of a window: a whole number of units above the limit. */
function withBurst<T extends { readonly limit: number }>(
  base: fc.Arbitrary<T>,
): fc.Arbitrary<T & { readonly burst: number }> {
  return fc
    .tuple(base, units({ least: 0, most: 5000 }))
    .map(([rule, extra]) => ({ ...rule, burst: Math.min(9_000_000_000, rule.limit + extra) }))
}

const windowed = fc.record({ limit: units(), window: windows() })

const RULES: { readonly [A in AlgorithmName]: fc.Arbitrary<Rule> } = {
  'token-bucket': fc.record({
    algorithm: fc.constant('token-bucket'),
    capacity: bucketUnits(),
    refillPerSecond: ratesPerSecond(),
  }),
  'token-bucket-rollover': fc.record({
    algorithm: fc.constant('token-bucket'),
    capacity: bucketUnits({ most: 3_000_000_000 }),
    refillPerSecond: ratesPerSecond(),
    rollover: fc.constant(true),
  }),
  'leaky-bucket-meter': fc.record({
    algorithm: fc.constant('leaky-bucket-meter'),
    capacity: bucketUnits(),
    leakPerSecond: ratesPerSecond(),
  }),
  'leaky-bucket-queue': fc.record({
    algorithm: fc.constant('leaky-bucket-queue'),
    capacity: bucketUnits(),
    ratePerSecond: ratesPerSecond(),
  }),
  gcra: fc.oneof(
    windowed,
    fc.record({ limit: units(), window: windows(), burst: units() }),
    windowed.map((rule) => ({ ...rule, algorithm: 'gcra' as const })),
  ),
  'fixed-window': fc.oneof(
    fc.record({ algorithm: fc.constant('fixed-window'), limit: units(), window: windows() }),
    fc.record({ algorithm: fc.constant('fixed-window'), limit: units(), window: windows(), rollover: fc.boolean() }),
    fc.record({ algorithm: fc.constant('fixed-window'), limit: units(), window: calendars }),
  ),
  'sliding-window-counter': windowed.map((rule) => ({ ...rule, algorithm: 'sliding-window-counter' as const })),
  'sliding-window-log': fc.record({
    algorithm: fc.constant('sliding-window-log'),
    limit: units({ most: 100_000 }),
    window: windows(),
  }),
  'sliding-window-segments': fc.record({
    algorithm: fc.constant('sliding-window-log'),
    limit: units(),
    window: windows(),
    segments: units({ most: 100 }),
  }),
  hybrid: fc.oneof(
    fc.record({
      algorithm: fc.constant('hybrid'),
      limit: units(),
      window: fc.oneof(windows(), calendars),
      burst: fc.record({ capacity: fc.oneof(fc.constant(0), bucketUnits()), refillPerSecond: ratesPerSecond() }),
    }),
    withBurst(fc.record({ algorithm: fc.constant('fixed-window'), limit: units(), window: windows() })),
    withBurst(windowed.map((rule) => ({ ...rule, algorithm: 'sliding-window-counter' as const }))),
    withBurst(
      fc.record({
        algorithm: fc.constant('sliding-window-log'),
        limit: units({ most: 1000 }),
        window: windows(),
      }),
    ),
    withBurst(
      fc.record({
        algorithm: fc.constant('sliding-window-log'),
        limit: units(),
        window: windows(),
        segments: units({ most: 20 }),
      }),
    ),
  ),
  concurrency: fc.record({ algorithm: fc.constant('concurrency'), limit: units(), lease: windows() }),
}

/** Rules that one algorithm decides (a log with `segments`, a window with `burst` are algorithms of their own). */
export function rules(algorithm: AlgorithmName): fc.Arbitrary<Rule> {
  return RULES[algorithm]
}

/** One call of a sequence. */
export interface Call {
  /** Time since the call before, whole microseconds. */
  readonly advanceMicros: number
  /** Whole units, 0 or more. */
  readonly cost: number
  readonly entitled: boolean
}

/** A rule as a limit, when the sequence starts, and calls whose times and costs suit the limit. */
export interface CallSequence {
  readonly rule: Rule
  readonly limit: Limit
  readonly startMicros: number
  readonly calls: readonly Call[]
}

/** Time until the next call: none, a microsecond, the time of a unit, of the whole limit, or of several. */
const PACES = ['same', 'next', 'unit', 'whole', 'long'] as const
/** How much a call takes: nothing, one, little, a part, all, or more than there can be. */
const APPETITES = ['none', 'one', 'one', 'few', 'part', 'all', 'more'] as const

const rawCalls = fc.array(
  fc.record({
    pace: fc.constantFrom(...PACES),
    appetite: fc.constantFrom(...APPETITES),
    // In thousandths.
    part: fc.integer({ min: 0, max: 1000 }),
    entitled: fc.boolean(),
  }),
  { minLength: 1, maxLength: 30 },
)

/** Sequences of calls to any limit of an algorithm. */
export function callSequences(algorithm: AlgorithmName): fc.Arbitrary<CallSequence> {
  return fc.tuple(rules(algorithm), fc.integer({ min: 0, max: 1e12 }), rawCalls).map(([rule, offset, raw]) => {
    const limit = compileRule('rule', rule)[0]!
    const span = spanMicros(limit)
    const calls = raw.map(({ pace, appetite, part, entitled }) => ({
      advanceMicros: paceMicros(pace, part, { span, limit }),
      cost: costOf(appetite, part, limit.capacity),
      entitled,
    }))
    return { rule, limit, startMicros: START_MICROS + offset, calls }
  })
}

function paceMicros(
  pace: (typeof PACES)[number],
  part: number,
  { span, limit }: { span: number; limit: Limit },
): number {
  switch (pace) {
    case 'same':
      return 0
    case 'next':
      return 1
    case 'unit':
      return Math.ceil((span / Math.max(1, limit.capacity)) * (part / 500))
    case 'whole':
      return Math.ceil(span * (part / 1000))
    case 'long':
      return Math.ceil(span * (part / 250))
  }
}

function costOf(appetite: (typeof APPETITES)[number], part: number, capacity: number): number {
  switch (appetite) {
    case 'none':
      return 0
    case 'one':
      return 1
    case 'few':
      return 1 + (part % 4)
    case 'part':
      return Math.ceil(capacity * (part / 1000))
    case 'all':
      return capacity
    case 'more':
      return capacity + 1 + part
  }
}

/** Instants stay whole numbers in a double for this long after 2030: a hundred years. */
const LONGEST_SPAN_MICROS = 3.2e15

const PERIOD_MICROS = { minute: 6e7, hour: 3.6e9, day: 8.64e10, week: 6.048e11, month: 2.6784e12 } as const

/** The time between calls that suits a limit: that in which it recovers as a whole, but never decades. */
export function spanMicros(limit: Limit): number {
  return Math.min(LONGEST_SPAN_MICROS / 120, recoveryMicros(limit))
}

/** The time in which a limit recovers as a whole, in microseconds, however long. */
export function recoveryMicros(limit: Limit): number {
  switch (limit.algorithm) {
    case 'token-bucket':
    case 'leaky-bucket-meter':
    case 'leaky-bucket-queue':
    case 'gcra':
      return Math.ceil((limit.full * limit.rate.micros) / limit.rate.units)
    case 'token-bucket-rollover':
      return Math.ceil((3 * limit.full * limit.rate.micros) / limit.rate.units)
    case 'fixed-window':
      return typeof limit.window === 'number' ? limit.window : PERIOD_MICROS[limit.window.period]
    case 'concurrency':
      return limit.leaseMicros
    case 'hybrid':
      return recoveryMicros(limit.base)
    case 'sliding-window-segments':
      // Sub-windows are whole microseconds, and units leave with the one after the last.
      return (limit.segments + 1) * Math.ceil(limit.windowMicros / limit.segments)
    default:
      return limit.windowMicros
  }
}
