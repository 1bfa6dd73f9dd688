import { MICROS_PER_MS } from '../system/clock-and-timers.ts'
import type { CalendarPeriod } from './calendar.ts'
import type { Rate } from './rate.ts'
import type { FailureMode } from './rule.ts'

/**
 * A compiled rule: validated, in whole units and microseconds, frozen. A rule with several windows has several limits.
 * Only `compileRule` creates one.
 */
export type Limit =
  | MeterLimit
  | RolloverLimit
  | QueueLimit
  | FixedWindowLimit
  | SlidingCounterLimit
  | LogLimit
  | SegmentLimit
  | OverlayLimit
  | ConcurrencyLimit

/** Fields of every limit. */
interface LimitBase {
  /**
   * Unique among the limits of a store: the rule's name, its window, and the format of its states. Counters belong to
   * the id: if the limit of a rule changes, its counters stay; if its kind of algorithm changes, they start afresh.
   */
  readonly id: string
  /** The rule's name, as the caller wrote it. */
  readonly rule: string
  /** Units announced to callers as "the limit", whole. */
  readonly limit: number
  /** Maximum number of values in a state of this limit. */
  readonly stateSize: number
  /** Whether every state except the empty one has exactly that many. */
  readonly fixedSize: boolean
  /** Name space of the id for fingerprints, two int32. */
  readonly space0: number
  readonly space1: number
  /** Maximum units that can be charged at one instant, whole; a larger cost is denied with `never`. 0 denies all. */
  readonly capacity: number
  /** Failure mode; undefined uses that of the store. */
  readonly failureMode: FailureMode | undefined
}

/**
 * A level that drains at a constant rate: token bucket, leaky bucket (meter) and GCRA are three ways to configure one.
 */
export interface MeterLimit extends LimitBase {
  readonly algorithm: 'token-bucket' | 'leaky-bucket-meter' | 'gcra'
  readonly rate: Rate
  /** Its size in micro-units, whole. More than `capacity` units if that was rounded down. */
  readonly full: number
}

/** A token bucket that keeps tokens beyond its capacity for a time. */
export interface RolloverLimit extends LimitBase {
  readonly algorithm: 'token-bucket-rollover'
  readonly rate: Rate
  /** Its size without rolled-over tokens, in micro-units, whole. */
  readonly full: number
  /** Maximum of rolled-over tokens, in micro-units, whole. */
  readonly rolloverFull: number
}

/** A meter whose level is a queue: the decision has the delay. */
export interface QueueLimit extends LimitBase {
  readonly algorithm: 'leaky-bucket-queue'
  readonly rate: Rate
  /** Its size in micro-units, whole. */
  readonly full: number
}

/** A count that restarts with every window. */
export interface FixedWindowLimit extends LimitBase {
  readonly algorithm: 'fixed-window'
  /** Length, or a period of the calendar. */
  readonly window: number | CalendarPeriod
  /** Maximum units carried over from the previous window; 0 without rollover. */
  readonly rolloverMax: number
}

/** Two counts, the older one weighted by how much of its window still overlaps. */
export interface SlidingCounterLimit extends LimitBase {
  readonly algorithm: 'sliding-window-counter'
  readonly windowMicros: number
}

/** Every admitted call, with its time. */
export interface LogLimit extends LimitBase {
  readonly algorithm: 'sliding-window-log'
  readonly windowMicros: number
}

/** Counts per sub-window. */
export interface SegmentLimit extends LimitBase {
  readonly algorithm: 'sliding-window-segments'
  readonly windowMicros: number
  readonly segments: number
}

/** A window for all, and a token bucket on top for entitled callers. */
export interface OverlayLimit extends LimitBase {
  readonly algorithm: 'hybrid'
  readonly base: FixedWindowLimit | SlidingCounterLimit | LogLimit | SegmentLimit
  readonly burst: MeterLimit
}

/** Slots that are held and released. */
export interface ConcurrencyLimit extends LimitBase {
  readonly algorithm: 'concurrency'
  readonly leaseMicros: number
}

const DAY_MS = 86_400_000

/** Usual length of calendar periods. */
const PERIOD_MS: Readonly<Record<CalendarPeriod['period'], number>> = {
  minute: 60_000,
  hour: 3_600_000,
  day: DAY_MS,
  week: 7 * DAY_MS,
  month: 30 * DAY_MS,
}

/**
 * The window of a limit in milliseconds; for a rate without a window, the time to refill the whole limit, rounded up;
 * for slots their lease. A calendar period has its usual length.
 */
export function windowMsOf(limit: Limit): number {
  switch (limit.algorithm) {
    case 'token-bucket':
    case 'token-bucket-rollover':
    case 'leaky-bucket-meter':
    case 'leaky-bucket-queue':
    case 'gcra':
      // The rate is units / micros in every second.
      return Math.ceil((1000 * limit.limit * limit.rate.micros) / limit.rate.units)
    case 'fixed-window':
      return typeof limit.window === 'number' ? limit.window / MICROS_PER_MS : PERIOD_MS[limit.window.period]
    case 'hybrid':
      return windowMsOf(limit.base)
    case 'concurrency':
      return limit.leaseMicros / MICROS_PER_MS
    default:
      return limit.windowMicros / MICROS_PER_MS
  }
}

/** What the units of a limit are. */
export function quotaUnitOf(limit: Limit): 'requests' | 'concurrent-requests' {
  return limit.algorithm === 'concurrency' ? 'concurrent-requests' : 'requests'
}
