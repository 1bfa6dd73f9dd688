import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type CalendarPeriod, calendarWindow, isTimeZone } from './calendar.ts'

type Period = CalendarPeriod['period']

const HOUR_MS = 3_600_000

/** The window around an instant, as ISO texts and its length in hours. */
function windowAt(iso: string, calendar: { period: Period; timeZone?: string; weekStart?: number }) {
  const { startAt, endAt } = calendarWindow({ timeZone: 'UTC', weekStart: 1, ...calendar }, Date.parse(iso) * 1000)
  const text = (micros: number): string => new Date(micros / 1000).toISOString().replace(':00.000Z', 'Z')
  return { from: text(startAt), to: text(endAt), hours: (endAt - startAt) / 1000 / HOUR_MS }
}

describe('a calendar window', () => {
  it.each<[string, Period, string, string]>([
    ['2030-01-31T23:59:59.999Z', 'month', '2030-01-01T00:00Z', '2030-02-01T00:00Z'],
    ['2030-02-15T00:00Z', 'month', '2030-02-01T00:00Z', '2030-03-01T00:00Z'],
    ['2028-02-29T12:00Z', 'month', '2028-02-01T00:00Z', '2028-03-01T00:00Z'],
    ['2030-04-30T12:00Z', 'month', '2030-04-01T00:00Z', '2030-05-01T00:00Z'],
    ['2030-12-31T23:00Z', 'month', '2030-12-01T00:00Z', '2031-01-01T00:00Z'],
    ['2028-02-29T12:00Z', 'day', '2028-02-29T00:00Z', '2028-03-01T00:00Z'],
    ['2030-12-31T23:59Z', 'day', '2030-12-31T00:00Z', '2031-01-01T00:00Z'],
    ['2030-01-01T10:59:59.999Z', 'hour', '2030-01-01T10:00Z', '2030-01-01T11:00Z'],
    ['2030-01-01T10:59:59.999Z', 'minute', '2030-01-01T10:59Z', '2030-01-01T11:00Z'],
  ])('of %s by the %s runs from %s to %s', (now, period, from, to) => {
    expect(windowAt(now, { period })).toMatchObject({ from, to })
  })

  it('ends where the next begins: its last microsecond is in, the next is not', () => {
    const day = { period: 'day', timeZone: 'UTC', weekStart: 1 } as const
    const midnight = Date.UTC(2030, 0, 2) * 1000
    expect(calendarWindow(day, midnight - 1).endAt).toBe(midnight)
    expect(calendarWindow(day, midnight).startAt).toBe(midnight)
  })

  it.each<[number, string]>([
    [0, '2029-12-30T00:00Z'],
    [1, '2029-12-31T00:00Z'],
    [2, '2030-01-01T00:00Z'],
    [3, '2029-12-26T00:00Z'],
    [6, '2029-12-29T00:00Z'],
  ])('of a week that starts with day %d and holds Tuesday 2030-01-01 begins at %s', (weekStart, from) => {
    expect(windowAt('2030-01-01T12:00Z', { period: 'week', weekStart })).toMatchObject({ from, hours: 168 })
  })
})

describe('where the clocks change', () => {
  it.each<[string, string, string, string, string, number]>([
    ['spring', 'Europe/Berlin', '2030-03-31T12:00Z', '2030-03-30T23:00Z', '2030-03-31T22:00Z', 23],
    ['autumn', 'Europe/Berlin', '2030-10-27T12:00Z', '2030-10-26T22:00Z', '2030-10-27T23:00Z', 25],
    ['spring', 'America/New_York', '2030-03-10T12:00Z', '2030-03-10T05:00Z', '2030-03-11T04:00Z', 23],
    ['autumn', 'America/New_York', '2030-11-03T12:00Z', '2030-11-03T04:00Z', '2030-11-04T05:00Z', 25],
    ['spring', 'Australia/Lord_Howe', '2030-10-06T00:00Z', '2030-10-05T13:30Z', '2030-10-06T13:00Z', 23.5],
    ['autumn', 'Australia/Lord_Howe', '2030-04-07T00:00Z', '2030-04-06T13:00Z', '2030-04-07T13:30Z', 24.5],
    ['never', 'Asia/Kathmandu', '2030-03-31T12:00Z', '2030-03-30T18:15Z', '2030-03-31T18:15Z', 24],
  ])('in %s, a day in %s that holds %s runs from %s to %s: %d hours', (_season, timeZone, now, from, to, hours) => {
    expect(windowAt(now, { period: 'day', timeZone })).toEqual({ from, to, hours })
  })

  it('a month is as long as its hours', () => {
    expect(windowAt('2030-03-15T00:00Z', { period: 'month', timeZone: 'Europe/Berlin' }).hours).toBe(31 * 24 - 1)
    expect(windowAt('2030-10-15T00:00Z', { period: 'month', timeZone: 'Europe/Berlin' }).hours).toBe(31 * 24 + 1)
  })

  it('a week is as long as its hours', () => {
    expect(windowAt('2030-03-30T00:00Z', { period: 'week', timeZone: 'America/New_York' }).hours).toBe(168)
    expect(windowAt('2030-03-09T00:00Z', { period: 'week', timeZone: 'America/New_York' }).hours).toBe(167)
  })

  it('an hour that is repeated is two windows', () => {
    const hour = { period: 'hour', timeZone: 'Europe/Berlin' } as const
    expect(windowAt('2030-10-27T00:30Z', hour)).toMatchObject({ from: '2030-10-27T00:00Z', to: '2030-10-27T01:00Z' })
    expect(windowAt('2030-10-27T01:30Z', hour)).toMatchObject({ from: '2030-10-27T01:00Z', to: '2030-10-27T02:00Z' })
  })

  it('an hour that half an hour of change cuts in two is two windows', () => {
    const hour = { period: 'hour', timeZone: 'Australia/Lord_Howe' } as const
    // 02:00 becomes 01:30 again.
    expect(windowAt('2030-04-06T14:45Z', hour)).toEqual({
      from: '2030-04-06T14:00Z',
      to: '2030-04-06T15:00Z',
      hours: 1,
    })
    expect(windowAt('2030-04-06T15:15Z', hour)).toEqual({
      from: '2030-04-06T15:00Z',
      to: '2030-04-06T15:30Z',
      hours: 0.5,
    })
    // 02:00 becomes 02:30.
    expect(windowAt('2030-10-05T15:45Z', hour)).toEqual({
      from: '2030-10-05T15:30Z',
      to: '2030-10-05T16:00Z',
      hours: 0.5,
    })
  })

  it('an hour begins at the quarter where the zone says so', () => {
    const hour = { period: 'hour', timeZone: 'Asia/Kathmandu' } as const
    expect(windowAt('2030-01-01T12:00Z', hour)).toMatchObject({ from: '2030-01-01T11:15Z', to: '2030-01-01T12:15Z' })
  })

  it('a day whose midnight is skipped begins at the change', () => {
    // 2018-11-04 began at 01:00 in Brazil.
    expect(windowAt('2018-11-04T12:00Z', { period: 'day', timeZone: 'America/Sao_Paulo' })).toEqual({
      from: '2018-11-04T03:00Z',
      to: '2018-11-05T02:00Z',
      hours: 23,
    })
  })

  it('a day that does not exist is in no window', () => {
    const day = { period: 'day', timeZone: 'Pacific/Apia' } as const
    // Samoa went from 2011-12-29 to 2011-12-31, over the date line.
    const before = windowAt('2011-12-30T09:59Z', day)
    const after = windowAt('2011-12-30T10:00Z', day)
    expect(before).toEqual({ from: '2011-12-29T10:00Z', to: '2011-12-30T10:00Z', hours: 24 })
    expect(after).toEqual({ from: '2011-12-30T10:00Z', to: '2011-12-31T10:00Z', hours: 24 })
    expect(windowAt('2011-12-31T00:00Z', { ...day, period: 'week' }).hours).toBe(144)
    expect(windowAt('2011-12-31T00:00Z', { ...day, period: 'month' }).hours).toBe(30 * 24)
  })

  it('a day that the clocks fall back into is over all the same', () => {
    // In Newfoundland, 00:01 of 2010-11-07 became 23:01 of the day before.
    const day = { period: 'day', timeZone: 'America/St_Johns' } as const
    expect(windowAt('2010-11-07T02:29Z', day).to).toBe('2010-11-07T02:30Z')
    expect(windowAt('2010-11-07T02:30Z', day)).toMatchObject({ from: '2010-11-07T02:30Z', hours: 25 })
    expect(windowAt('2010-11-07T02:45Z', day)).toEqual(windowAt('2010-11-07T02:30Z', day))
    expect(windowAt('2010-11-07T12:00Z', day)).toEqual(windowAt('2010-11-07T02:30Z', day))
  })
})

describe('the windows of any period and zone', () => {
  const zones = [
    'UTC',
    'Europe/Berlin',
    'America/New_York',
    'Asia/Kathmandu',
    'Australia/Lord_Howe',
    'Pacific/Apia',
    'America/St_Johns',
    'America/Sao_Paulo',
    'America/Havana',
    'Africa/Casablanca',
    'Antarctica/Troll',
    'Asia/Gaza',
    'America/Nuuk',
  ]
  const calendars = fc.record({
    period: fc.constantFrom<Period>('minute', 'hour', 'day', 'week', 'month'),
    timeZone: fc.constantFrom(...zones),
    weekStart: fc.nat(6),
  })
  // Whole minutes, where clocks change, and any microsecond.
  const instants = fc.oneof(
    fc
      .integer({ min: Date.UTC(2000, 0, 1) / 60_000, max: Date.UTC(2037, 0, 1) / 60_000 })
      .map((minute) => minute * 60e6),
    fc.integer({ min: Date.UTC(2000, 0, 1) * 1000, max: Date.UTC(2037, 0, 1) * 1000 }),
  )

  it('follow one another without gap or overlap', () => {
    fc.assert(
      fc.property(calendars, instants, (calendar, now) => {
        const window = calendarWindow({ ...calendar }, now)
        expect(window.startAt).toBeLessThanOrEqual(now)
        expect(window.endAt).toBeGreaterThan(now)
        // A copy of the calendar: the window is computed again, not remembered.
        expect(calendarWindow({ ...calendar }, window.startAt)).toEqual(window)
        expect(calendarWindow({ ...calendar }, window.endAt - 1)).toEqual(window)
        expect(calendarWindow({ ...calendar }, window.startAt - 1).endAt).toBe(window.startAt)
        expect(calendarWindow({ ...calendar }, window.endAt).startAt).toBe(window.endAt)
      }),
      {
        numRuns: 300,
        examples: [
          [{ period: 'day', timeZone: 'America/St_Johns', weekStart: 1 }, Date.UTC(2010, 10, 7, 2, 45) * 1000],
          [{ period: 'hour', timeZone: 'Australia/Lord_Howe', weekStart: 1 }, Date.UTC(2030, 3, 6, 15, 15) * 1000],
          [{ period: 'day', timeZone: 'Pacific/Apia', weekStart: 1 }, Date.UTC(2011, 11, 30, 10) * 1000],
        ],
      },
    )
  })

  it('are the same from memory', () => {
    fc.assert(
      fc.property(calendars, fc.array(instants, { minLength: 2, maxLength: 6 }), (calendar, times) => {
        for (const now of [...times, ...times]) {
          expect(calendarWindow(calendar, now)).toEqual(calendarWindow({ ...calendar }, now))
        }
      }),
      { numRuns: 50 },
    )
  })
})

describe('isTimeZone', () => {
  it('knows the zones of the platform', () => {
    expect(['UTC', 'Europe/Berlin', 'Asia/Kathmandu'].map(isTimeZone)).toEqual([true, true, true])
    expect(['Europe/Atlantis', '', 'Berlin'].map(isTimeZone)).toEqual([false, false, false])
  })
})
