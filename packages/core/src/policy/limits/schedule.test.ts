import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Weekday } from '../../rule/rule.ts'
import type { ScheduleEntry } from '../rule-set/rule-set.ts'
import { Schedule } from './schedule.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const WEEKDAYS: readonly Weekday[] = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday']

/** The multiplier at each instant, looked up one after the other. */
function multipliers(entries: readonly ScheduleEntry[], instants: readonly string[]): number[] {
  const schedule = new Schedule(entries)
  return instants.map((iso) => schedule.multiplierAt(Date.parse(iso)))
}

describe('a span of the day', () => {
  it('has its first instant and not its last', () => {
    const entry: ScheduleEntry = { from: '09:30', to: '17:00', multiplier: 2 }
    const instants = [
      '2030-01-01T09:29:59.999Z',
      '2030-01-01T09:30:00.000Z',
      '2030-01-01T16:59:59.999Z',
      '2030-01-01T17:00Z',
    ]
    expect(multipliers([entry], instants)).toEqual([1, 2, 2, 1])
  })

  it('goes on into the next day when it ends before it begins, by the day it begins on', () => {
    // 2030-01-04 is a Friday.
    const entry: ScheduleEntry = { days: ['friday'], from: '22:00', to: '06:00', multiplier: 3 }
    expect(
      multipliers(
        [entry],
        ['2030-01-04T05:00Z', '2030-01-04T21:59Z', '2030-01-04T22:00Z', '2030-01-05T05:59Z', '2030-01-05T06:00Z'],
      ),
    ).toEqual([1, 1, 3, 3, 1])
    expect(multipliers([entry], ['2030-01-05T22:00Z', '2030-01-06T05:00Z'])).toEqual([1, 1])
  })

  it('lasts a whole day when it ends at the time it begins', () => {
    const entry: ScheduleEntry = { days: ['saturday'], from: '08:00', to: '08:00', multiplier: 3 }
    expect(
      multipliers([entry], ['2030-01-05T07:59Z', '2030-01-05T08:00Z', '2030-01-06T07:59Z', '2030-01-06T08:00Z']),
    ).toEqual([1, 3, 3, 1])
  })

  it('may end with the day', () => {
    const entry: ScheduleEntry = { days: ['friday'], from: '18:00', to: '24:00', multiplier: 3 }
    expect(multipliers([entry], ['2030-01-04T23:59:59.999Z', '2030-01-05T00:00Z'])).toEqual([3, 1])
  })

  it('counts days in its own time zone', () => {
    const entry: ScheduleEntry = {
      days: ['monday'],
      from: '00:00',
      to: '24:00',
      timeZone: 'Asia/Kolkata',
      multiplier: 2,
    }
    expect(
      multipliers([entry], ['2030-01-06T18:29Z', '2030-01-06T18:30Z', '2030-01-07T18:29Z', '2030-01-07T18:30Z']),
    ).toEqual([1, 2, 2, 1])
  })

  it('the first of several that cover an instant counts', () => {
    const entries: ScheduleEntry[] = [
      { days: ['saturday', 'sunday'], from: '00:00', to: '24:00', multiplier: 4 },
      { from: '20:00', to: '08:00', multiplier: 2 },
    ]
    expect(multipliers(entries, ['2030-01-05T21:00Z', '2030-01-07T21:00Z', '2030-01-07T12:00Z'])).toEqual([4, 2, 1])
  })

  it('nothing changes without one', () => {
    const schedule = new Schedule([])
    expect(schedule.multiplierAt(0)).toBe(1)
    expect(schedule.validUntil(0)).toBe(Number.POSITIVE_INFINITY)
  })
})

describe('where the clocks change', () => {
  const night: ScheduleEntry = { from: '02:00', to: '03:00', timeZone: 'Europe/Berlin', multiplier: 5 }

  it('a span inside the hour that is skipped does not come', () => {
    const schedule = new Schedule([night])
    const midnight = Date.parse('2030-03-30T23:00Z')
    for (let minute = 0; minute < 23 * 60; minute++)
      expect(schedule.multiplierAt(midnight + minute * MINUTE_MS)).toBe(1)
  })

  it('a span inside the hour that is repeated comes twice', () => {
    expect(
      multipliers(
        [night],
        ['2030-10-26T23:59Z', '2030-10-27T00:00Z', '2030-10-27T00:59Z', '2030-10-27T01:59Z', '2030-10-27T02:00Z'],
      ),
    ).toEqual([1, 5, 5, 5, 1])
    const half: ScheduleEntry = { ...night, to: '02:30' }
    expect(
      multipliers([half], ['2030-10-27T00:29Z', '2030-10-27T00:30Z', '2030-10-27T01:00Z', '2030-10-27T01:30Z']),
    ).toEqual([5, 1, 5, 1])
  })

  it('a span around the change ends by the clock, not by its length', () => {
    const around: ScheduleEntry = { ...night, from: '01:00', to: '04:00' }
    expect(
      multipliers([around], ['2030-03-31T00:00Z', '2030-03-31T01:59Z', '2030-03-31T02:00Z', '2030-10-27T02:59Z']),
    ).toEqual([5, 5, 1, 5])
  })
})

describe('the answer is kept', () => {
  it('until the next time at which it may change', () => {
    const schedule = new Schedule([{ from: '09:00', to: '17:00', multiplier: 2 }])
    const at = (iso: string): string => new Date(schedule.validUntil(Date.parse(iso))).toISOString()
    expect(at('2030-01-01T08:00Z')).toBe('2030-01-01T09:00:00.000Z')
    expect(at('2030-01-01T09:00Z')).toBe('2030-01-01T17:00:00.000Z')
    expect(at('2030-01-01T18:00Z')).toBe('2030-01-02T00:00:00.000Z')
  })

  it('until the clocks change, when they do before', () => {
    const schedule = new Schedule([{ from: '09:00', to: '17:00', timeZone: 'Europe/Berlin', multiplier: 2 }])
    expect(schedule.validUntil(Date.parse('2030-03-31T00:10Z'))).toBe(Date.parse('2030-03-31T01:00Z'))
  })

  it('and computed again when a clock is set back', () => {
    const entry: ScheduleEntry = { from: '09:00', to: '17:00', multiplier: 2 }
    expect(multipliers([entry], ['2030-01-01T10:00Z', '2030-01-01T08:00Z', '2030-01-01T10:00Z'])).toEqual([2, 1, 2])
  })
})

describe('a schedule that cannot be read', () => {
  it.each<[string, ScheduleEntry]>([
    ['"from"', { from: '9:00', to: '17:00', multiplier: 2 }],
    ['"from"', { from: '24:01', to: '17:00', multiplier: 2 }],
    ['"to"', { from: '09:00', to: '17:60', multiplier: 2 }],
    ['"timeZone"', { from: '09:00', to: '17:00', timeZone: 'Mars/Olympus', multiplier: 2 }],
  ])('is rejected for its %s: %j', (part, entry) => {
    const make = (): Schedule => new Schedule([{ from: '00:00', to: '01:00', multiplier: 1 }, entry])
    expect(make).toThrow(`entry 1 of a schedule has an unusable ${part}`)
    expect(make).toThrow(expect.objectContaining({ code: 'SLUICE_INVALID_RULE_SET' }))
  })
})

const formats = new Map<string, Intl.DateTimeFormat>()

/** What a clock on a wall in the zone shows: weekday, and minutes since midnight. */
function wallClock(ms: number, timeZone: string): { weekday: Weekday; minutes: number } {
  let format = formats.get(timeZone)
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en-GB', { timeZone, weekday: 'long', hour: '2-digit', minute: '2-digit' })
    formats.set(timeZone, format)
  }
  const parts = Object.fromEntries(format.formatToParts(ms).map(({ type, value }) => [type, value]))
  return {
    weekday: parts['weekday']!.toLowerCase() as Weekday,
    minutes: Number(parts['hour']) * 60 + Number(parts['minute']),
  }
}

function minutesOf(time: string): number {
  const [hours, minutes] = time.split(':').map(Number)
  return hours! * 60 + minutes!
}

/** The multiplier as the words of {@link ScheduleEntry} say it, by looking at the clock on the wall. */
function naiveMultiplier(entries: readonly ScheduleEntry[], ms: number): number {
  for (const { days = WEEKDAYS, from, to, timeZone = 'UTC', multiplier } of entries) {
    const { weekday, minutes } = wallClock(ms, timeZone)
    const yesterday = WEEKDAYS[(WEEKDAYS.indexOf(weekday) + 6) % 7]!
    const [begin, end] = [minutesOf(from), minutesOf(to)]
    const begunToday = days.includes(weekday) && minutes >= begin && (end <= begin || minutes < end)
    const begunYesterday = days.includes(yesterday) && end <= begin && minutes < end
    if (begunToday || begunYesterday) return multiplier
  }
  return 1
}

/** Days on which clocks change in some of the zones, and some on which none do. */
const DAYS = [
  '2030-03-31',
  '2030-10-27',
  '2030-03-10',
  '2030-11-03',
  '2030-10-06',
  '2030-04-07',
  '2030-01-01',
  '2028-02-29',
].map((day) => Date.parse(`${day}T00:00Z`))

const anyTime = fc
  .record({ hour: fc.integer({ min: 0, max: 23 }), minute: fc.constantFrom(0, 1, 15, 30, 59) })
  .map(({ hour, minute }) => `${String(hour).padStart(2, '0')}:${String(minute).padStart(2, '0')}`)

const anyEntry: fc.Arbitrary<ScheduleEntry> = fc
  .record({
    days: fc.option(fc.subarray([...WEEKDAYS], { minLength: 1 }), { nil: undefined }),
    from: anyTime,
    to: anyTime,
    timeZone: fc.constantFrom('Europe/Berlin', 'America/St_Johns', 'Australia/Lord_Howe', 'Asia/Kolkata', 'UTC'),
    multiplier: fc.integer({ min: 2, max: 9 }),
  })
  .map(({ days, ...entry }) => (days === undefined ? entry : { ...entry, days }))

describe('property: minute by minute', () => {
  it('a schedule says what a clock on the wall says, in every zone, also where clocks change', () => {
    fc.assert(
      fc.property(
        fc.array(anyEntry, { minLength: 1, maxLength: 3 }),
        fc.constantFrom(...DAYS),
        fc.integer({ min: -24, max: 24 }),
        (entries, dayMs, hours) => {
          const schedule = new Schedule(entries)
          const startMs = dayMs + hours * HOUR_MS
          for (let minute = 0; minute < 26 * 60; minute++) {
            const nowMs = startMs + minute * MINUTE_MS
            if (schedule.multiplierAt(nowMs) !== naiveMultiplier(entries, nowMs)) {
              expect({ at: new Date(nowMs).toISOString(), multiplier: schedule.multiplierAt(nowMs) }).toEqual({
                at: new Date(nowMs).toISOString(),
                multiplier: naiveMultiplier(entries, nowMs),
              })
            }
          }
        },
      ),
      { numRuns: 60 },
    )
  })

  it('asked once in a while, it says the same as when asked every time', () => {
    fc.assert(
      fc.property(
        fc.array(anyEntry, { minLength: 1, maxLength: 4 }),
        fc.constantFrom(...DAYS),
        fc.array(fc.integer({ min: -48 * HOUR_MS, max: 48 * HOUR_MS }), { minLength: 1, maxLength: 40 }),
        (entries, dayMs, distances) => {
          const schedule = new Schedule(entries)
          for (const distance of distances) {
            const nowMs = dayMs + distance
            expect(schedule.multiplierAt(nowMs)).toBe(naiveMultiplier(entries, nowMs))
            const untilMs = schedule.validUntil(nowMs)
            expect(untilMs).toBeGreaterThan(nowMs)
            expect(naiveMultiplier(entries, untilMs - 1)).toBe(schedule.multiplierAt(nowMs))
          }
        },
      ),
    )
  })
})
