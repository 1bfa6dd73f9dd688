import { SluiceError } from '../../errors.ts'
import { changeBetween, isTimeZone, offsetAt } from '../../rule/calendar.ts'
import { WEEKDAYS } from '../../rule/rule-options.ts'
import type { ScheduleEntry } from '../rule-set/rule-set.ts'

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

/** In the order of days since 1970-01-01, a Thursday. */
const DAYS = [...WEEKDAYS.slice(4), ...WEEKDAYS.slice(0, 4)]

const TIME = /^(?:([01]\d|2[0-3]):([0-5]\d)|24:00)$/

/** An entry with its times in milliseconds since midnight, and its days by their index in {@link DAYS}. */
interface Span {
  readonly zone: Zone
  readonly days: readonly boolean[]
  readonly fromMs: number
  readonly toMs: number
  readonly multiplier: number
}

/** A time zone with the times of its day at which something may change, ascending; the last is the end of the day. */
interface Zone {
  readonly timeZone: string
  readonly boundaries: readonly number[]
  /** The local time, as milliseconds since 1970 as if it were UTC; set when the multiplier is looked up. */
  localMs: number
}

/**
 * The times of a week at which a rule has other limits. Local time of the entry's zone counts: a span inside a skipped
 * hour does not occur, one inside a repeated hour occurs twice.
 */
export class Schedule {
  readonly #spans: readonly Span[]
  readonly #zones: readonly Zone[]
  #multiplier = 1
  #validFrom = Number.POSITIVE_INFINITY
  #validUntil = Number.NEGATIVE_INFINITY

  /** Throws `SLUICE_INVALID_RULE_SET` for an invalid time or time zone. */
  constructor(entries: readonly ScheduleEntry[]) {
    const boundaries = new Map<string, Set<number>>()
    for (const [index, entry] of entries.entries()) {
      checkEntry(entry, index)
      const times = boundaries.get(zoneOf(entry)) ?? new Set([DAY_MS])
      boundaries.set(zoneOf(entry), times.add(timeOf(entry.from)).add(timeOf(entry.to)))
    }
    const zones = new Map<string, Zone>()
    for (const [timeZone, times] of boundaries) {
      zones.set(timeZone, { timeZone, boundaries: [...times].sort((a, b) => a - b), localMs: 0 })
    }
    this.#zones = [...zones.values()]
    this.#spans = entries.map((entry) => ({
      zone: zones.get(zoneOf(entry))!,
      days: DAYS.map((day) => entry.days?.includes(day) ?? true),
      fromMs: timeOf(entry.from),
      toMs: timeOf(entry.to),
      multiplier: entry.multiplier,
    }))
  }

  /** The multiplier of the first entry that covers `nowMs` (milliseconds since 1970); 1 if none does. */
  multiplierAt(nowMs: number): number {
    if (nowMs < this.#validFrom || nowMs >= this.#validUntil) this.#lookUp(nowMs)
    return this.#multiplier
  }

  /**
   * The instant until which the multiplier at `nowMs` certainly stays; it may stay longer. `Infinity` without entries.
   */
  validUntil(nowMs: number): number {
    this.multiplierAt(nowMs)
    return this.#validUntil
  }

  #lookUp(nowMs: number): void {
    this.#validFrom = nowMs
    this.#validUntil = Number.POSITIVE_INFINITY
    for (const zone of this.#zones) {
      const offsetMs = offsetAt(nowMs, zone.timeZone)
      zone.localMs = nowMs + offsetMs
      this.#validUntil = Math.min(this.#validUntil, nextChange(zone, nowMs, offsetMs))
    }
    this.#multiplier = this.#spans.find(covers)?.multiplier ?? 1
  }
}

/** The next boundary of the zone's day, or the next change of its clocks, whichever comes first. */
function nextChange({ timeZone, boundaries, localMs }: Zone, nowMs: number, offsetMs: number): number {
  const timeMs = timeOfDay(localMs)
  const next = boundaries.find((boundary) => boundary > timeMs)!
  const changeMs = nowMs + next - timeMs
  return offsetAt(changeMs - 1, timeZone) === offsetMs ? changeMs : changeBetween(nowMs, changeMs - 1, timeZone)
}

function covers({ zone, days, fromMs, toMs }: Span): boolean {
  const timeMs = timeOfDay(zone.localMs)
  const today = weekdayOf(zone.localMs)
  if (fromMs < toMs) return days[today]! && timeMs >= fromMs && timeMs < toMs
  return (days[today]! && timeMs >= fromMs) || (days[(today + 6) % 7]! && timeMs < toMs)
}

function timeOfDay(localMs: number): number {
  return localMs - Math.floor(localMs / DAY_MS) * DAY_MS
}

function weekdayOf(localMs: number): number {
  const day = Math.floor(localMs / DAY_MS) % 7
  return day < 0 ? day + 7 : day
}

function zoneOf({ timeZone = 'UTC' }: ScheduleEntry): string {
  return timeZone
}

function timeOf(text: string): number {
  return (Number(text.slice(0, 2)) * 60 + Number(text.slice(3))) * MINUTE_MS
}

function checkEntry(entry: ScheduleEntry, index: number): void {
  for (const option of ['from', 'to'] as const) {
    if (!TIME.test(entry[option])) throw invalid(`"${option}"`, { index, received: entry[option], expected: 'HH:MM' })
  }
  if (isTimeZone(zoneOf(entry))) return
  const expected = 'an IANA name such as "Europe/Berlin"'
  throw invalid('"timeZone"', { index, received: entry.timeZone, expected })
}

function invalid(
  part: string,
  { index, received, expected }: { index: number; received: unknown; expected: string },
): SluiceError {
  return new SluiceError('SLUICE_INVALID_RULE_SET', {
    problem: `entry ${index} of a schedule has an unusable ${part}`,
    received,
    expected,
  })
}
