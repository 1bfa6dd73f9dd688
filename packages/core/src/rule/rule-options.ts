import type { CalendarPeriod } from './calendar.ts'
import type { CalendarWindow, FailureMode, HybridRule, RulesByAlgorithm, Weekday, WindowSpec } from './rule.ts'

// The options of rules: names, kinds of values and bounds. The compiler, the JSON Schema and the messages of both read
// them from here. The types below make the compiler of TypeScript compare the names with those of `Rule`.

/** Largest number of units: its micro-units must stay whole numbers in a double. */
export const LARGEST_UNITS = 9_000_000_000

/**
 * Largest capacity that can roll over: what may flow until it expires, three times that, must stay a whole number too.
 */
export const LARGEST_ROLLOVER_UNITS = 3_000_000_000

/** Largest limit of the exact log, whose state grows with it. */
export const LARGEST_LOG_UNITS = 100_000

/** Slowest rate, in units per second. The fastest is {@link LARGEST_UNITS}. */
export const SLOWEST_RATE = 1e-9

/** Largest number of parts that a sliding window log counts in. */
export const MOST_SEGMENTS = 1000

/** Largest number of windows of a rule. */
export const MOST_WINDOWS = 16

/** The algorithm of a rule that names none. */
export const DEFAULT_ALGORITHM = 'gcra'

export const FAILURE_MODES: readonly FailureMode[] = ['open', 'closed', 'local']

/** In the order of `Date.getUTCDay`. */
export const WEEKDAYS: readonly Weekday[] = [
  'sunday',
  'monday',
  'tuesday',
  'wednesday',
  'thursday',
  'friday',
  'saturday',
]

export const CALENDAR_PERIODS: readonly CalendarPeriod['period'][] = ['minute', 'hour', 'day', 'week', 'month']

/** What a calendar window has when it does not say it. */
export const CALENDAR_DEFAULTS: Required<Pick<CalendarWindow, 'timeZone' | 'weekStart'>> = {
  timeZone: 'UTC',
  weekStart: 'monday',
}

/** Kinds of values. `units` and `bucketUnits` may also be `'off'`, `amount` and `bucketAmount` may not. */
export type ValueKind =
  | 'amount'
  | 'units'
  | 'bucketAmount'
  | 'bucketUnits'
  | 'ratePerSecond'
  | 'duration'
  | 'durationOrCalendar'
  | 'windows'
  | 'calendarWindows'
  | 'burstBucket'
  | 'segments'
  | 'flag'

/** An option, and whether a rule must have it. */
export interface RuleOption {
  readonly kind: ValueKind
  readonly isRequired: boolean
}

type Options<Name extends PropertyKey> = Readonly<Record<Name, RuleOption>>
type NameOf<R> = R extends unknown ? Exclude<keyof R, 'algorithm'> : never

type OptionsOf<A extends keyof RulesByAlgorithm> = Options<NameOf<RulesByAlgorithm[A]>>

/* @__NO_SIDE_EFFECTS__ */
function required(kind: ValueKind): RuleOption {
  return { kind, isRequired: true }
}

/* @__NO_SIDE_EFFECTS__ */
function optional(kind: ValueKind): RuleOption {
  return { kind, isRequired: false }
}

// One constant for each algorithm: a bundle keeps those of the rules that the program makes.

/** One window, or several: which of these are required depends on whether there are `windows`. */
export const WINDOW_OPTIONS: Options<'limit' | 'window' | 'burst' | 'windows'> = {
  limit: optional('units'),
  window: optional('duration'),
  burst: optional('amount'),
  windows: optional('windows'),
}

export const FIXED_WINDOW_OPTIONS: OptionsOf<'fixed-window'> = {
  ...WINDOW_OPTIONS,
  window: optional('durationOrCalendar'),
  windows: optional('calendarWindows'),
  rollover: optional('flag'),
}

export const SLIDING_WINDOW_LOG_OPTIONS: OptionsOf<'sliding-window-log'> = {
  ...WINDOW_OPTIONS,
  segments: optional('segments'),
}

export const TOKEN_BUCKET_OPTIONS: OptionsOf<'token-bucket'> = {
  capacity: required('bucketUnits'),
  refillPerSecond: required('ratePerSecond'),
  rollover: optional('flag'),
}

export const LEAKY_BUCKET_METER_OPTIONS: OptionsOf<'leaky-bucket-meter'> = {
  capacity: required('bucketUnits'),
  leakPerSecond: required('ratePerSecond'),
}

export const LEAKY_BUCKET_QUEUE_OPTIONS: OptionsOf<'leaky-bucket-queue'> = {
  capacity: required('bucketUnits'),
  ratePerSecond: required('ratePerSecond'),
}

export const HYBRID_OPTIONS: OptionsOf<'hybrid'> = {
  limit: required('units'),
  window: required('durationOrCalendar'),
  burst: required('burstBucket'),
}

export const CONCURRENCY_OPTIONS: OptionsOf<'concurrency'> = { limit: required('units'), lease: required('duration') }

/** The options of each algorithm. Any other name in a rule is an error. */
export const RULE_OPTIONS: { readonly [A in keyof RulesByAlgorithm]: OptionsOf<A> } = {
  gcra: WINDOW_OPTIONS,
  'fixed-window': FIXED_WINDOW_OPTIONS,
  'sliding-window-counter': WINDOW_OPTIONS,
  'sliding-window-log': SLIDING_WINDOW_LOG_OPTIONS,
  'token-bucket': TOKEN_BUCKET_OPTIONS,
  'leaky-bucket-meter': LEAKY_BUCKET_METER_OPTIONS,
  'leaky-bucket-queue': LEAKY_BUCKET_QUEUE_OPTIONS,
  hybrid: HYBRID_OPTIONS,
  concurrency: CONCURRENCY_OPTIONS,
}

/** The names of {@link RULE_OPTIONS}, for programs that need no more of it. */
export const ALGORITHM_NAMES: readonly (keyof RulesByAlgorithm)[] = [
  'gcra',
  'fixed-window',
  'sliding-window-counter',
  'sliding-window-log',
  'token-bucket',
  'leaky-bucket-meter',
  'leaky-bucket-queue',
  'hybrid',
  'concurrency',
]

/** The options of an entry of `windows`. */
export const WINDOW_ENTRY_OPTIONS: Options<keyof WindowSpec> = {
  limit: required('amount'),
  window: required('duration'),
  burst: optional('amount'),
}

/** The options of the `burst` of a hybrid. */
export const BURST_BUCKET_OPTIONS: Options<keyof HybridRule['burst']> = {
  capacity: required('bucketAmount'),
  refillPerSecond: required('ratePerSecond'),
}

/** The names of the options of a calendar window. */
export const CALENDAR_OPTIONS: readonly (keyof CalendarWindow)[] = ['calendar', 'timeZone', 'weekStart']

/** What is expected of a whole number, as the rest of a sentence. */
export function expectedWhole(least: number, most: number): string {
  return `a whole number from ${least} to ${most}`
}

/** The same of the units that a bucket holds, other than 0. */
export function expectedBucket(most: number): string {
  return `a number from 1 to ${most} (fractions such as 2.5 are fine)`
}

/** The same of a rate. */
export const EXPECTED_RATE: string = `units per second, above 0 (such as 0.1), at most ${LARGEST_UNITS}`

/** The same of several windows. */
export const EXPECTED_WINDOWS: string = `1 to ${MOST_WINDOWS} entries of { limit, window }`
