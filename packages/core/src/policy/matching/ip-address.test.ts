import { isIP } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { countedAddress, IpAddress, parseIp } from './ip-address.ts'

describe('an IP address', () => {
  it.each([
    ['0.0.0.0', '0.0.0.0'],
    ['1.2.3.4', '1.2.3.4'],
    ['255.255.255.255', '255.255.255.255'],
    ['::', '::'],
    ['::1', '::1'],
    ['1::', '1::'],
    ['2001:DB8::00Ff', '2001:db8::ff'],
    ['2001:db8:0:0:0:0:0:1', '2001:db8::1'],
    ['1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8'],
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
    ['::2:3:4:5:6:7:8', '0:2:3:4:5:6:7:8'],
    ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
    ['1:0:0:2:0:0:3:4', '1::2:0:0:3:4'],
    ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'],
    ['::1.2.3.4', '::102:304'],
    ['1:2:3:4:5:6:1.2.3.4', '1:2:3:4:5:6:102:304'],
    ['::ffff:1.2.3.4', '1.2.3.4'],
    ['::FFFF:102:304', '1.2.3.4'],
    ['0:0:0:0:0:ffff:1.2.3.4', '1.2.3.4'],
    ['::ffff:255.255.255.255', '255.255.255.255'],
    ['::fffe:1.2.3.4', '::fffe:102:304'],
    ['1::ffff:1.2.3.4', '1::ffff:102:304'],
  ])('%s is %s', (text, canonical) => {
    const address = parseIp(text)
    expect(address?.toString()).toBe(canonical)
    expect(address?.isIpv4).toBe(!canonical.includes(':'))
  })

  it.each([
    '',
    ' ',
    '1.2.3',
    '1.2.3.4.5',
    '1.2.3.4.',
    '.1.2.3.4',
    '1..2.3',
    '1.2.3.256',
    '1.2.3.1000',
    '01.2.3.4',
    '1.2.3.00',
    '1.2.3.4 ',
    ' 1.2.3.4',
    '1.2.3.-4',
    '1.2.3.4/32',
    '1.2.3.4:80',
    '1,2.3.4',
    '1.2.3.４',
    '0x1.2.3.4',
    '16909060',
    ':',
    ':::',
    '1:',
    ':1',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1:2:3:4:5:6:7:8::',
    '::1:2:3:4:5:6:7:8',
    '1::2::3',
    '1:::2',
    '12345::',
    '::12345',
    'g::',
    '::1%eth0',
    '[::1]',
    '::1/128',
    '::1 ',
    '::1.2.3',
    '::1.2.3.4.5',
    '::01.2.3.4',
    '1.2.3.4::',
    '::1.2.3.4:5',
    '1:2:3:4:5:6:7:1.2.3.4',
    '::ffff:1.2.3.256',
    'localhost',
    '1'.repeat(1_000_000),
    ':'.repeat(46),
  ])('is not %j', (text) => {
    expect(parseIp(text)).toBeUndefined()
  })

  it('is left as it was by a string that is none', () => {
    const address = new IpAddress()
    address.read('2001:db8::1')
    for (const text of ['1.2.3', '1:2:3:4:5:6:7', '::ffff:1.2.3.256']) expect(address.read(text)).toBe(false)
    expect(address.toString()).toBe('2001:db8::1')
  })

  it('can be reused, of the other kind too', () => {
    const address = new IpAddress()
    for (const text of ['2001:db8::1', '10.0.0.1', '::1', '10.0.0.2']) {
      expect(address.read(text)).toBe(true)
      expect(address.toString()).toBe(text)
      expect(address.equals(parseIp(text)!)).toBe(true)
    }
    expect(address.equals(parseIp('::a00:2')!)).toBe(false)
  })

  it.each([
    ['255.255.255.255', 0, '0.0.0.0'],
    ['255.255.255.255', 1, '128.0.0.0'],
    ['10.1.2.3', 8, '10.0.0.0'],
    ['10.1.2.3', 31, '10.1.2.2'],
    ['10.1.2.3', 32, '10.1.2.3'],
    ['ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 0, '::'],
    ['ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 31, 'ffff:fffe::'],
    ['ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 32, 'ffff:ffff::'],
    ['ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 33, 'ffff:ffff:8000::'],
    ['ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 64, 'ffff:ffff:ffff:ffff::'],
    ['ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 97, 'ffff:ffff:ffff:ffff:ffff:ffff:8000:0'],
    ['ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 127, 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe'],
    ['ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 128, 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ])('%s has as its first %d bits those of %s', (text, length, masked) => {
    const address = parseIp(text)!
    address.mask(length)
    expect(address.toString()).toBe(masked)
  })
})

describe('reading an IP address', () => {
  const almostAddresses = fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc.string({ unit: fc.constantFrom('0', '1', '9', 'f', 'A', 'g', ':', ':', '.', '%', '/'), maxLength: 20 }),
    fc
      .tuple(fc.oneof(fc.ipV4(), fc.ipV6()), fc.nat(40), fc.constantFrom('', ':', '::', '.', '0', 'a', ' '))
      .map(([text, at, piece]) => text.slice(0, at) + piece + text.slice(at + 1)),
  )

  it('accepts what Node accepts, without zones', () => {
    fc.assert(
      fc.property(almostAddresses, (text) => {
        fc.pre(!text.includes('%'))
        expect(parseIp(text) !== undefined).toBe(isIP(text) !== 0)
      }),
      { numRuns: 5000 },
    )
  })

  it('gives the spelling that URLs give an IPv6 address, and that spelling is the same address', () => {
    fc.assert(
      fc.property(fc.ipV6(), (text) => {
        const address = parseIp(text)!
        fc.pre(!address.isIpv4)
        expect(address.toString()).toBe(new URL(`http://[${text}]`).hostname.slice(1, -1))
        expect(parseIp(address.toString())?.equals(address)).toBe(true)
      }),
      { numRuns: 1000 },
    )
  })

  it('takes an IPv4 address for the same however it is mapped to IPv6', () => {
    fc.assert(
      fc.property(fc.ipV4(), (text) => {
        const address = parseIp(text)!
        expect(address.toString()).toBe(text)
        expect(parseIp(`::ffff:${text}`)?.equals(address)).toBe(true)
        const hex = (address.word3 >>> 0).toString(16).padStart(8, '0')
        expect(parseIp(`0:0:0::FFFF:${hex.slice(0, 4)}:${hex.slice(4)}`)?.equals(address)).toBe(true)
      }),
    )
  })
})

describe('the address that is counted', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:c000:201', '192.0.2.1'],
    ['2001:db8:0:1::5', '2001:db8:0:1::/64'],
    ['2001:0DB8:0000:0001:0:0:0:9', '2001:db8:0:1::/64'],
    ['2001:db8:0:1::/64', '2001:db8:0:1::/64'],
    ['::1', '::/64'],
    ['not:an:address', 'not:an:address'],
    ['unknown', 'unknown'],
  ])('counts %s as %s', (text, counted) => {
    expect(countedAddress(text, 64)).toBe(counted)
  })

  it('counts by the given number of bits', () => {
    expect(countedAddress('2001:db8:1:2ff::1', 56)).toBe('2001:db8:1:200::/56')
    expect(countedAddress('2001:db8:1:2ff::1', 128)).toBe('2001:db8:1:2ff::1')
  })
})
