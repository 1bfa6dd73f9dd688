import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isIpAddress } from './body-parser.ts'

// The sources are compiled without the types of Node, so that they cannot use it; the cast keeps it so.
const { isIP } = (await import('node:net' as string)) as { isIP(text: string): number }

describe('isIpAddress', () => {
  it.each(['1.2.3.4', '255.255.255.255', '::', '::1', '2001:db8::1', '1:2:3:4:5:6:7:8', '::ffff:1.2.3.4', '1::'])(
    'takes %s',
    (text) => expect(isIpAddress(text)).toBe(true),
  )

  it.each([
    ...['', ' ', '1.2.3', '1.2.3.4.5', '1.2.3.4.', '.1.2.3.4', '1.2.3.256', '01.2.3.4', '1.2.3.4 ', '1.2.3.4:80'],
    ...[':', ':::', '1::2::3', '1:2:3:4:5:6:7', '1:2:3:4:5:6:7:8:9', '1:2:3:4:5:6:7:8::', '12345::', 'g::', '[::1]'],
    ...['fe80::1%eth0', '2001:db8::/64', '1.2.3.4::', '::1.2.3.4:1', '1:2:3:4:5:6:7:1.2.3.4', 'localhost'],
  ])('refuses %j', (text) => expect(isIpAddress(text)).toBe(false))

  it('property: agrees with Node on addresses and on near misses, zones apart', () => {
    const pieces = fc.constantFrom('0', '1', '255', '256', 'ab', 'ffff', '12345', '.', ':', '::', '1.2.3.4')
    const nearMiss = fc.array(pieces, { maxLength: 17 }).map((parts) => parts.join(''))
    const grouped = fc
      .array(fc.constantFrom('', '0', 'db8', 'FFFF', '1.2.3.4'), { minLength: 2, maxLength: 9 })
      .map((groups) => groups.join(':'))
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6(), nearMiss, grouped), (text) => {
        expect([text, isIpAddress(text)]).toEqual([text, isIP(text) !== 0])
      }),
      { numRuns: 5000 },
    )
  })
})
