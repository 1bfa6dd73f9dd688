import { MICROS_PER_MS } from '../system/clock-and-timers.ts'

/** A period of the civil calendar in a time zone, as a window. */
export interface CalendarPeriod {
  readonly period: 'minute' | 'hour' | 'day' | 'week' | 'month'
  /** IANA name, such as `Europe/Berlin`. */
  readonly timeZone: string
  /** First day of a week: 0 Sunday ... 6 Saturday. */
  readonly weekStart: number
}

/** The window that contains an instant: `startAt` belongs to it, `endAt` to the next one. Microseconds since 1970. */
export interface WindowBounds {
  readonly startAt: number
  readonly endAt: number
}

/** A civil date and time, as a clock in some zone shows it. Months count from 1. */
interface Civil {
  readonly year: number
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
}

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

const formats = new Map<string, Intl.DateTimeFormat>()

/** True when the platform knows the time zone. */
export function isTimeZone(name: string): boolean {
  try {
    formatFor(name)
    return true
  } catch {
    return false
  }
}

/** The last computed window: most lookups are in the same one, and computing it is expensive. */
const lastWindows = new WeakMap<CalendarPeriod, WindowBounds>()

/**
 * The period around `nowMicros`. Days last 23 or 25 hours where the clocks change, and repeated hours count once each;
 * months and leap days follow the calendar. The windows of a period are adjacent, without gaps or overlaps.
 */
export function calendarWindow(calendar: CalendarPeriod, nowMicros: number): WindowBounds {
  const last = lastWindows.get(calendar)
  if (last !== undefined && nowMicros >= last.startAt && nowMicros < last.endAt) return last
  const nowMs = Math.floor(nowMicros / MICROS_PER_MS)
  const isShort = calendar.period === 'minute' || calendar.period === 'hour'
  const [startMs, endMs] = isShort ? clockWindow(calendar, nowMs) : dateWindow(calendar, nowMs)
  const window = { startAt: startMs * MICROS_PER_MS, endAt: endMs * MICROS_PER_MS }
  lastWindows.set(calendar, window)
  return window
}

/** Days, weeks and months begin when the clocks first show midnight of their first day. */
function dateWindow(calendar: CalendarPeriod, nowMs: number): [number, number] {
  const [first, next] = civilBounds(calendar, civilAt(nowMs, calendar.timeZone))
  const endMs = instantOf(next, calendar.timeZone)
  if (nowMs < endMs) return [instantOf(first, calendar.timeZone), endMs]
  // The clocks were set back over midnight: the next period has already begun, and continues.
  const [, following] = civilBounds(calendar, civilAt(next, 'UTC'))
  return [endMs, instantOf(following, calendar.timeZone)]
}

/** Minutes and hours are aligned by the zone's offset at that instant, so a repeated hour is a separate window. */
function clockWindow({ period, timeZone }: CalendarPeriod, nowMs: number): [number, number] {
  const lengthMs = period === 'minute' ? MINUTE_MS : 60 * MINUTE_MS
  const offsetMs = offsetAt(nowMs, timeZone)
  const startMs = Math.floor((nowMs + offsetMs) / lengthMs) * lengthMs - offsetMs
  const endMs = startMs + lengthMs
  // Where clocks change by half an hour, the windows on both sides end at the change.
  return [
    offsetAt(startMs, timeZone) === offsetMs ? startMs : changeBetween(startMs, nowMs, timeZone),
    offsetAt(endMs - 1, timeZone) === offsetMs ? endMs : changeBetween(nowMs, endMs - 1, timeZone),
  ]
}

function civilBounds(calendar: CalendarPeriod, civil: Civil): [number, number] {
  const today = Date.UTC(civil.year, civil.month - 1, civil.day)
  if (calendar.period === 'day') return [today, today + DAY_MS]
  if (calendar.period === 'week') {
    const weekday = new Date(today).getUTCDay()
    const first = today - ((weekday - calendar.weekStart + 7) % 7) * DAY_MS
    return [first, first + 7 * DAY_MS]
  }
  return [Date.UTC(civil.year, civil.month - 1, 1), Date.UTC(civil.year, civil.month, 1)]
}

/**
 * The instant at which clocks in the zone first show `localMs` (a civil time as if it were UTC), or have just passed
 * it.
 */
function instantOf(localMs: number, timeZone: string): number {
  const before = localMs - offsetAt(localMs - DAY_MS, timeZone)
  if (before + offsetAt(before, timeZone) === localMs) return before
  const after = localMs - offsetAt(localMs + DAY_MS, timeZone)
  if (after + offsetAt(after, timeZone) === localMs) return after
  // The clocks skip this time: use the instant of the change.
  return changeBetween(Math.min(before, after), Math.max(before, after), timeZone)
}

/**
 * The first instant with the offset of `highMs`, between `lowMs`, which has another, and `highMs`. Milliseconds since
 * 1970.
 */
export function changeBetween(lowMs: number, highMs: number, timeZone: string): number {
  const offsetAfter = offsetAt(highMs, timeZone)
  let [low, high] = [lowMs, highMs]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (offsetAt(middle, timeZone) === offsetAfter) high = middle
    else low = middle
  }
  return high
}

/**
 * How far clocks in the zone are ahead of UTC at `ms` (milliseconds since 1970), in milliseconds; below 0 if behind.
 */
export function offsetAt(ms: number, timeZone: string): number {
  const civil = civilAt(ms, timeZone)
  const shown = Date.UTC(civil.year, civil.month - 1, civil.day, civil.hour, civil.minute)
  return shown - Math.floor(ms / MINUTE_MS) * MINUTE_MS
}

function civilAt(ms: number, timeZone: string): Civil {
  const parts = { year: 0, month: 0, day: 0, hour: 0, minute: 0 }
  for (const part of formatFor(timeZone).formatToParts(ms)) {
    if (part.type in parts) parts[part.type as keyof typeof parts] = Number(part.value)
  }
  return parts
}

function formatFor(timeZone: string): Intl.DateTimeFormat {
  let format = formats.get(timeZone)
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
    })
    formats.set(timeZone, format)
  }
  return format
}
