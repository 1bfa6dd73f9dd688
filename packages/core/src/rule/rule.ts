import type { CalendarPeriod } from './calendar.ts'
import type { Duration } from './duration.ts'

/** How to decide while the store is unavailable: allow, deny, or decide here with this node's share of what remains. */
export type FailureMode = 'open' | 'closed' | 'local'

/** The day a calendar week begins with. */
export type Weekday = 'sunday' | 'monday' | 'tuesday' | 'wednesday' | 'thursday' | 'friday' | 'saturday'

/** A window that follows the calendar: the month of the 1st to the last, the day from midnight to midnight. */
export interface CalendarWindow {
  readonly calendar: CalendarPeriod['period']
  /** IANA name of the time zone. Default: `UTC`. */
  readonly timeZone?: string
  /** First day of the week. Default: `monday`. */
  readonly weekStart?: Weekday
}

/** Number of units: whole, 0 to 9,000,000,000. `0` denies all. `'off'` does not limit at all. */
export type Units = number | 'off'

/** One of several windows of a rule, decided together. */
export interface WindowSpec<W = Duration> {
  readonly limit: number
  readonly window: W
  /** Maximum units at one instant; see the algorithm. */
  readonly burst?: number
}

/** Either one limit and window, or several windows at once. */
type OneOrMoreWindows<W> =
  | { readonly limit: Units; readonly window: W; readonly burst?: number; readonly windows?: never }
  | {
      readonly windows: readonly WindowSpec<W>[]
      readonly limit?: never
      readonly window?: never
      readonly burst?: never
    }

/**
 * Size of a bucket in units: 0, or 1 to 9,000,000,000. Fractions such as 2.5 are kept to the millionth of a unit. `0`
 * denies all. `'off'` does not limit at all.
 */
export type BucketUnits = number | 'off'

/** A bucket that refills to `capacity` at `refillPerSecond` (may be fractional); a call takes tokens by its cost. */
export interface TokenBucketRule {
  readonly algorithm: 'token-bucket'
  readonly capacity: BucketUnits
  readonly refillPerSecond: number
  /**
   * Tokens that exceed the capacity roll over, up to twice the capacity in total. They expire if the key is unused for
   * the time of two full refills since the bucket was full. Default: false.
   */
  readonly rollover?: boolean
}

/** A bucket that leaks at a constant rate; a call that does not fit is denied. */
export interface LeakyBucketMeterRule {
  readonly algorithm: 'leaky-bucket-meter'
  readonly capacity: BucketUnits
  readonly leakPerSecond: number
}

/** A queue that releases `ratePerSecond`; the decision has `delayMs`. A full queue denies. */
export interface LeakyBucketQueueRule {
  readonly algorithm: 'leaky-bucket-queue'
  readonly capacity: BucketUnits
  readonly ratePerSecond: number
}

/** A count for each window; index = timestamp / window. Up to twice the limit can pass around a boundary. */
export type FixedWindowRule = {
  readonly algorithm: 'fixed-window'
  /** Unused units carry over to the next window, up to twice the limit in total. */
  readonly rollover?: boolean
} & OneOrMoreWindows<Duration | CalendarWindow>

/** Two weighted counts. Cheap, smooth, and not exact: see the page of the algorithm for its worst case. */
export type SlidingWindowCounterRule = { readonly algorithm: 'sliding-window-counter' } & OneOrMoreWindows<Duration>

/** Never more than the limit in any window. Exact by default; with `segments`, approximate in that many numbers. */
export type SlidingWindowLogRule = {
  readonly algorithm: 'sliding-window-log'
  readonly segments?: number
} & OneOrMoreWindows<Duration>

/** The default: a smooth rate of `limit` per `window`, with at most `burst` units at once. Default burst: `limit`. */
export type GcraRule = { readonly algorithm?: 'gcra' } & OneOrMoreWindows<Duration>

/** A fixed window for all, and a token bucket on top for entitled callers. */
export interface HybridRule {
  readonly algorithm: 'hybrid'
  readonly limit: Units
  readonly window: Duration | CalendarWindow
  readonly burst: { readonly capacity: number; readonly refillPerSecond: number }
}

/** At most `limit` slots held at once; a slot that is not renewed within `lease` is released automatically. */
export interface ConcurrencyRule {
  readonly algorithm: 'concurrency'
  readonly limit: Units
  readonly lease: Duration
}

/**
 * An algorithm with its numbers: plain data, so you can store, send and display it. `Rule<'hybrid'>` is the type of one
 * algorithm.
 */
export type Rule<A extends keyof RulesByAlgorithm = keyof RulesByAlgorithm> = RulesByAlgorithm[A] & RuleSettings

/** Settings of every rule besides its algorithm. */
export interface RuleSettings {
  /**
   * How to decide while the store is unavailable: allow all (`open`), deny all (`closed`), or decide on this node with
   * its share of the limit (`local`). Default: the failure mode of the store. Local stores never need it.
   */
  readonly failureMode?: FailureMode
}

/** The rules of each algorithm, without the common settings. */
export interface RulesByAlgorithm {
  readonly 'token-bucket': TokenBucketRule
  readonly 'leaky-bucket-meter': LeakyBucketMeterRule
  readonly 'leaky-bucket-queue': LeakyBucketQueueRule
  readonly 'fixed-window': FixedWindowRule
  readonly 'sliding-window-counter': SlidingWindowCounterRule
  readonly 'sliding-window-log': SlidingWindowLogRule
  readonly gcra: GcraRule
  readonly hybrid: HybridRule
  readonly concurrency: ConcurrencyRule
}

/** A rule without the common settings. */
export type AlgorithmRule = RulesByAlgorithm[keyof RulesByAlgorithm]

/** A rule without the name of its algorithm, as the builder functions take it; a union stays a union. */
type Options<A extends keyof RulesByAlgorithm> = Unnamed<RulesByAlgorithm[A]> & RuleSettings
type Unnamed<R> = R extends unknown ? Omit<R, 'algorithm'> : never

/** Builds a {@link TokenBucketRule}. */
export const tokenBucket = (options: Options<'token-bucket'>): Rule<'token-bucket'> => ({
  ...options,
  algorithm: 'token-bucket',
})

/** Builds a {@link LeakyBucketMeterRule}. */
export const leakyBucketMeter = (options: Options<'leaky-bucket-meter'>): Rule<'leaky-bucket-meter'> => ({
  ...options,
  algorithm: 'leaky-bucket-meter',
})

/** Builds a {@link LeakyBucketQueueRule}. */
export const leakyBucketQueue = (options: Options<'leaky-bucket-queue'>): Rule<'leaky-bucket-queue'> => ({
  ...options,
  algorithm: 'leaky-bucket-queue',
})

/** Builds a {@link FixedWindowRule}. */
export const fixedWindow = (options: Options<'fixed-window'>): Rule<'fixed-window'> => ({
  ...options,
  algorithm: 'fixed-window',
})

/** Builds a {@link SlidingWindowCounterRule}. */
export const slidingWindowCounter = (options: Options<'sliding-window-counter'>): Rule<'sliding-window-counter'> => ({
  ...options,
  algorithm: 'sliding-window-counter',
})

/** Builds a {@link SlidingWindowLogRule}. */
export const slidingWindowLog = (options: Options<'sliding-window-log'>): Rule<'sliding-window-log'> => ({
  ...options,
  algorithm: 'sliding-window-log',
})

/** Builds a {@link GcraRule}. */
export const gcra = (options: Options<'gcra'>): Rule<'gcra'> => ({ ...options, algorithm: 'gcra' })

/** Builds a {@link HybridRule}. */
export const hybrid = (options: Options<'hybrid'>): Rule<'hybrid'> => ({ ...options, algorithm: 'hybrid' })

/** Builds a {@link ConcurrencyRule}. */
export const concurrency = (options: Options<'concurrency'>): Rule<'concurrency'> => ({
  ...options,
  algorithm: 'concurrency',
})
