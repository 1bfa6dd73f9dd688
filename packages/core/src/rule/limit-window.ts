import { MICROS_PER_MS } from '../system/clock.ts'
import type { CalendarPeriod } from './calendar.ts'
import type { Limit } from './limit.ts'

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
