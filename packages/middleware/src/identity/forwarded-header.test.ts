import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  ForwardedHops,
  type HeaderLines,
  type HopSyntax,
  MOST_HOPS,
  singleAddress,
  trimBlanks,
} from './forwarded-header.ts'

/** All hops from the right, as far as they can be read; `-` stands for what is no address. */
function hopsOf(lines: HeaderLines, syntax: HopSyntax): string[] {
  const hops = new ForwardedHops(lines, syntax)
  const read: string[] = []
  for (let hop = hops.next(); hop !== undefined; hop = hops.next()) read.push(hop === null ? '-' : hop.toString())
  return read
}

describe('the hops of X-Forwarded-For', () => {
  it.each<[HeaderLines, string[]]>([
    [undefined, []],
    ['', ['-']],
    ['1.2.3.4', ['1.2.3.4']],
    ['1.2.3.4, 5.6.7.8', ['5.6.7.8', '1.2.3.4']],
    ['1.2.3.4,5.6.7.8', ['5.6.7.8', '1.2.3.4']],
    ['\t1.2.3.4 \t,   5.6.7.8 ', ['5.6.7.8', '1.2.3.4']],
    [
      ['1.1.1.1, 2.2.2.2', '3.3.3.3'],
      ['3.3.3.3', '2.2.2.2', '1.1.1.1'],
    ],
    [
      ['1.1.1.1', ''],
      ['-', '1.1.1.1'],
    ],
    ['1.2.3.4:80, 1.2.3.4:65535', ['1.2.3.4', '1.2.3.4']],
    ['[2001:DB8::1]:443, [2001:db8::2], 2001:db8:0:0::3', ['2001:db8::3', '2001:db8::2', '2001:db8::1']],
    ['::ffff:1.2.3.4, [::ffff:102:304]:1', ['1.2.3.4', '1.2.3.4']],
    [',1.2.3.4', ['1.2.3.4', '-']],
    ['1.2.3.4,', ['-', '1.2.3.4']],
    ['1.2.3.4,,5.6.7.8', ['5.6.7.8', '-', '1.2.3.4']],
  ])('of %j are %j', (lines, hops) => {
    expect(hopsOf(lines, 'x-forwarded-for')).toEqual(hops)
  })

  it.each([
    'unknown',
    '_hidden',
    'localhost',
    '1.2.3',
    '1.2.3.256',
    '01.2.3.4',
    '1.2.3.4:',
    '1.2.3.4:65536',
    '1.2.3.4:123456',
    '1.2.3.4:_p',
    '1.2.3.4:-1',
    '1.2.3.4 5.6.7.8',
    '"1.2.3.4"',
    '[1.2.3.4]',
    '[2001:db8::1',
    '[2001:db8::1]x',
    '[2001:db8::1]:',
    '2001:db8::1]:80',
    'fe80::1%eth0',
    '[fe80::1%25eth0]:80',
    '2001:db8::12345',
    'for=1.2.3.4',
    '1.2.3.4/32',
    '１.2.3.4',
  ])('%j is none', (entry) => {
    expect(hopsOf(`9.9.9.9, ${entry}`, 'x-forwarded-for')).toEqual(['-', '9.9.9.9'])
  })
})

describe('the hops of Forwarded', () => {
  it.each<[HeaderLines, string[]]>([
    [undefined, []],
    ['', ['-']],
    ['for=1.2.3.4', ['1.2.3.4']],
    ['For=1.2.3.4;proto=https;by=10.0.0.1', ['1.2.3.4']],
    ['by=10.0.0.1;FOR="1.2.3.4:80" ; host="a,b;c"', ['1.2.3.4']],
    ['for="[2001:db8::1]:4711", for="[2001:db8::2]"', ['2001:db8::2', '2001:db8::1']],
    ['for="\\1.2.3.4"', ['1.2.3.4']],
    ['for="1.2.3.4:_port"', ['1.2.3.4']],
    ['host="a\\"b, for=6.6.6.6";for=1.2.3.4, for=5.6.7.8', ['5.6.7.8', '1.2.3.4']],
    [
      ['for=1.1.1.1', 'for=2.2.2.2,for=3.3.3.3'],
      ['3.3.3.3', '2.2.2.2', '1.1.1.1'],
    ],
    ['for=1.2.3.4;', ['1.2.3.4']],
  ])('of %j are %j', (lines, hops) => {
    expect(hopsOf(lines, 'forwarded')).toEqual(hops)
  })

  it.each([
    'for=unknown',
    'for="_gazonk"',
    'for=_SEVKISEK',
    'proto=https',
    'for=',
    'for=""',
    'for = 1.2.3.4',
    'for=1.2.3.4;for=5.6.7.8',
    'for=1.2.3.4 for=5.6.7.8',
    'for="[fe80::1%eth0]"',
    'for=256.1.1.1',
    '1.2.3.4',
    'xfor=1.2.3.4',
    'for="1.2.3.4"x',
    'for=1.2.3.4;;;=',
  ])('%j names none', (element) => {
    expect(hopsOf(`for=9.9.9.9, ${element}`, 'forwarded')).toEqual(['-', '9.9.9.9'])
  })

  it('are not changed by quotes that a client leaves open, or opens for the proxy to close', () => {
    for (const forged of ['for="', 'for=6.6.6.6;x="', '"', 'for="a\\', '\\"', 'x="a\\"']) {
      expect(hopsOf(`${forged}, for="[2001:db8::1]:80";proto=http`, 'forwarded')[0]).toBe('2001:db8::1')
      expect(hopsOf(`${forged}, for=1.2.3.4`, 'forwarded')[0]).toBe('1.2.3.4')
    }
  })

  it('end where a quote was never opened', () => {
    expect(hopsOf('for=1.1.1.1, for="2.2.2.2, for=3.3.3.3"', 'forwarded')).toEqual(['-', '1.1.1.1'])
    expect(hopsOf('for=1.1.1.1, for=2.2.2.2", for=3.3.3.3', 'forwarded')).toEqual(['3.3.3.3', '-'])
  })
})

describe.each<[HopSyntax, (address: string) => string]>([
  ['x-forwarded-for', (address) => address],
  ['forwarded', (address) => `for=${address}`],
])('the work for %s', (syntax, entryOf) => {
  it('ends after 50 entries', () => {
    const addresses = Array.from({ length: 200 }, (_, index) => `10.0.0.${index}`)
    const hops = hopsOf(addresses.map(entryOf).join(','), syntax)
    expect(hops).toHaveLength(MOST_HOPS)
    expect(hops).toEqual(addresses.toReversed().slice(0, MOST_HOPS))
  })

  it('ends after 8,192 characters, and does not take half of an entry for a whole one', () => {
    // The cut falls behind the first digits of 123.4.5.6, which would leave an address too.
    const genuine = entryOf('9.9.9.9')
    const cutEntry = entryOf('123.4.5.6')
    const filler = ' '.repeat(8192 - genuine.length - 1 - cutEntry.length + 2)
    const text = `${entryOf('1.1.1.1')},${cutEntry}${filler},${genuine}`
    expect(hopsOf(text, syntax)).toEqual(['9.9.9.9', '-'])
    expect(hopsOf(`${'x'.repeat(100_000)},${genuine}`, syntax)).toEqual(['9.9.9.9', '-'])
  })

  it('reads what a proxy appends whatever stands before it (property)', () => {
    const hostile = fc.string({
      unit: fc.constantFrom('"', '\\', ',', ';', '=', ' ', 'f', 'o', 'r', '[', ']', ':', '1', '.', '\t'),
    })
    fc.assert(
      fc.property(hostile, fc.ipV4(), fc.boolean(), (before, address, isOwnLine) => {
        const entry = entryOf(address)
        const lines = isOwnLine ? [before, entry] : `${before}, ${entry}`
        expect(hopsOf(lines, syntax)[0]).toBe(address)
      }),
      { numRuns: 1000 },
    )
  })

  it('never throws (property)', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary' })), (lines) => {
        expect(hopsOf(lines, syntax).length).toBeLessThanOrEqual(MOST_HOPS)
      }),
    )
  })
})

describe('a header that holds one address', () => {
  it.each([
    ['1.2.3.4', '1.2.3.4'],
    [' 2001:db8::1 ', '2001:db8::1'],
    [['[2001:db8::1]:80'], '2001:db8::1'],
  ])('%j is %s', (lines, address) => {
    expect(singleAddress(lines)?.toString()).toBe(address)
  })

  it.each<[HeaderLines]>([
    [undefined],
    [''],
    ['1.2.3.4, 5.6.7.8'],
    [['1.2.3.4', '5.6.7.8']],
    [['1.2.3.4', '1.2.3.4']],
    ['unknown'],
    [`${' '.repeat(9000)}1.2.3.4`],
  ])('%j is none', (lines) => {
    expect(singleAddress(lines)).toBeUndefined()
  })
})

it('the blanks around a string go, those inside and other characters stay', () => {
  expect(trimBlanks(' \t a \t b\u00a0 \t')).toBe('a \t b\u00a0')
  expect(trimBlanks(' \t ')).toBe('')
  expect(trimBlanks('')).toBe('')
})
