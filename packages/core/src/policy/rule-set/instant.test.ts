import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseInstant } from './instant.ts'

describe('an instant written as a string', () => {
  it.each([
    ['1970-01-01', 0],
    ['2026-12-31', Date.UTC(2026, 11, 31)],
    ['2026-12-31T23:59Z', Date.UTC(2026, 11, 31, 23, 59)],
    ['2026-12-31T23:59:58Z', Date.UTC(2026, 11, 31, 23, 59, 58)],
    ['2026-12-31T23:59:58.7Z', Date.UTC(2026, 11, 31, 23, 59, 58, 700)],
    ['2026-12-31T23:59:58.078Z', Date.UTC(2026, 11, 31, 23, 59, 58, 78)],
    ['2027-01-01T00:30:00+01:00', Date.UTC(2026, 11, 31, 23, 30)],
    ['2026-12-31T20:00:00-03:30', Date.UTC(2026, 11, 31, 23, 30)],
    ['2028-02-29', Date.UTC(2028, 1, 29)],
  ])('%s is understood', (text, ms) => {
    expect(parseInstant(text)).toBe(ms)
  })

  it.each([
    ['without a zone', '2026-12-31T23:59:59'],
    ['on a day that does not exist', '2026-02-29'],
    ['in a month that does not exist', '2026-13-01'],
    ['at an hour that does not exist', '2026-12-31T24:00Z'],
    ['at a minute that does not exist', '2026-12-31T23:60Z'],
    ['in a zone that does not exist', '2026-12-31T23:00+24:00'],
    ['in a zone of too many minutes', '2026-12-31T23:00+01:60'],
    ['before 1970', '1969-12-31'],
    ['before 1970 by its zone', '1970-01-01T00:00+01:00'],
    ['in another form', '31.12.2026'],
    ['with something after it', '2026-12-31 '],
    ['in the year 99', '0099-01-01'],
  ])('%s is not', (_, text) => {
    expect(parseInstant(text)).toBeUndefined()
  })

  it('is the same as the platform understands, for every instant', () => {
    fc.assert(
      fc.property(
        fc.date({ min: new Date(0), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true }),
        (date) => {
          expect(parseInstant(date.toISOString())).toBe(date.getTime())
        },
      ),
    )
  })
})
