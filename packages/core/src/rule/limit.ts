import { MICROS_PER_MS } from '../system/clock-and-timers.ts'
import type { CalendarPeriod } from './calendar.ts'
import type { Rate } from './rate.ts'
import type { FailureMode } from './rule.ts'

/**
 * A rule as the algorithms see it: validated, in whole units and microseconds, frozen. One rule with several windows
 * makes several limits. Made by `compileRule`; nothing else builds one.
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

/** What every limit has. */
interface LimitBase {
  /**
   * Unique among the limits of a store: the rule's name, which of its windows, and the form of its states. Counters
   * belong to it: a rule that gets another limit goes on with them, a rule that gets another kind of algorithm starts
   * afresh.
   */
  readonly id: string
  /** The rule's name, as the caller wrote it. */
  readonly rule: string
  /** Units announced to callers as "the limit", whole. */
  readonly limit: number
  /** The most values a state of this limit has. */
  readonly stateSize: number
  /** Whether every state but the empty one has exactly that many. */
  readonly fixedSize: boolean
  /** Name space of the id for fingerprints, two int32. */
  readonly space0: number
  readonly space1: number
  /** The most units that can be taken at one instant, whole; a larger cost is answered `never`. 0 denies all. */
  readonly capacity: number
  /** What to answer while the store cannot be asked; undefined leaves it to the store. */
  readonly failureMode: FailureMode | undefined
}

/**
 * A level that flows off at a constant rate: token bucket, leaky bucket (meter) and GCRA are three ways to state one.
 */
export interface MeterLimit extends LimitBase {
  readonly algorithm: 'token-bucket' | 'leaky-bucket-meter' | 'gcra'
  readonly rate: Rate
  /** What it holds when full, in micro-units, whole. More than `capacity` units where that was rounded down. */
  readonly full: number
}

/** A token bucket that keeps tokens beyond its capacity for a time. */
export interface RolloverLimit extends LimitBase {
  readonly algorithm: 'token-bucket-rollover'
  readonly rate: Rate
  /** What it holds without what has rolled over, in micro-units, whole. */
  readonly full: number
  /** Most that can roll over, in micro-units, whole. */
  readonly rolloverFull: number
}

/** A meter whose level is a queue: the answer says how long to wait for one's turn. */
export interface QueueLimit extends LimitBase {
  readonly algorithm: 'leaky-bucket-queue'
  readonly rate: Rate
  /** What it holds when full, in micro-units, whole. */
  readonly full: number
}

/** A count that starts again with every window. */
export interface FixedWindowLimit extends LimitBase {
  readonly algorithm: 'fixed-window'
  /** Length, or a period of the calendar. */
  readonly window: number | CalendarPeriod
  /** Most units carried over from the window before; 0 without rollover. */
  readonly rolloverMax: number
}

/** Two counts, the older one weighted by how much of its window is still in view. */
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

/** A window for all, with a token bucket on top for those entitled to it. */
export interface OverlayLimit extends LimitBase {
  readonly algorithm: 'hybrid'
  readonly base: FixedWindowLimit | SlidingCounterLimit | LogLimit | SegmentLimit
  readonly burst: MeterLimit
}

/** Slots that are held and given back. */
export interface ConcurrencyLimit extends LimitBase {
  readonly algorithm: 'concurrency'
  readonly leaseMicros: number
}

const DAY_MS = 86_400_000

/** Periods of the calendar, as long as they usually are. */
const PERIOD_MS: Readonly<Record<CalendarPeriod['period'], number>> = {
  minute: 60_000,
  hour: 3_600_000,
  day: DAY_MS,
  week: 7 * DAY_MS,
  month: 30 * DAY_MS,
}

/**
 * The time that a limit is meant for, in milliseconds: its window; for a rate without one, how long the whole limit
 * takes, rounded up; for slots their lease. A period of the calendar has its usual length.
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
