import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseHttpDate } from './http-date.ts'

const NOW = Date.UTC(2026, 10, 16)
const EXAMPLE = Date.UTC(1994, 10, 6, 8, 49, 37)

describe('an HTTP date', () => {
  it.each([
    ['Sun, 06 Nov 1994 08:49:37 GMT', EXAMPLE],
    ['Sunday, 06-Nov-94 08:49:37 GMT', EXAMPLE],
    ['Sun Nov  6 08:49:37 1994', EXAMPLE],
    ['Sat, 29 Feb 2028 00:00:00 GMT', Date.UTC(2028, 1, 29)],
    ['Tuesday, 30-Jun-76 23:59:60 GMT', Date.UTC(2076, 6, 1)],
    ['Friday, 31-Dec-77 00:00:00 GMT', Date.UTC(1977, 11, 31)],
  ])('such as "%s" is understood', (text, instant) => {
    expect(parseHttpDate(text, NOW)).toBe(instant)
  })

  it.each([
    '',
    '2026-11-16T00:00:00Z',
    'Sun, 06 Nov 1994 08:49:37',
    'Sun, 06 Nov 1994 08:49:37 CET',
    'Sun, 06 Nix 1994 08:49:37 GMT',
    'Sun, 06 anF 1994 08:49:37 GMT',
    'Sun, 31 Apr 2026 08:49:37 GMT',
    'Sun, 06 Nov 1994 24:00:00 GMT',
    'Sun, 06 Nov 1994 08:60:00 GMT',
    'sun, 06 nov 1994 08:49:37 gmt',
  ])('is not what "%s" is', (text) => {
    expect(parseHttpDate(text, NOW)).toBeUndefined()
  })

  it('is every date that the platform writes', () => {
    const seconds = fc.integer({ min: 0, max: 4_102_444_799 })
    fc.assert(
      fc.property(seconds, (second) => {
        expect(parseHttpDate(new Date(second * 1000).toUTCString(), NOW)).toBe(second * 1000)
      }),
    )
  })
})
