import { BlockList } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Cidr, CidrTable, parseCidr } from './cidr.ts'
import { IpAddress, parseIp } from './ip-address.ts'

describe('a block of addresses', () => {
  it.each([
    ['10.0.0.0/8', '10.0.0.0', 8],
    ['10.1.2.3', '10.1.2.3', 32],
    ['10.1.2.3/32', '10.1.2.3', 32],
    ['0.0.0.0/0', '0.0.0.0', 0],
    ['2001:DB8::/32', '2001:db8::', 32],
    ['::/0', '::', 0],
    ['::1', '::1', 128],
    ['::1/128', '::1', 128],
    ['::ffff:10.0.0.0/104', '10.0.0.0', 8],
    ['::ffff:0:0/96', '0.0.0.0', 0],
    ['::ffff:1.2.3.4', '1.2.3.4', 32],
    ['::ffff:1.2.3.4/128', '1.2.3.4', 32],
  ])('%s begins with %s and has a prefix of %d bits', (text, address, length) => {
    const cidr = parseCidr(text)
    expect(cidr).not.toHaveProperty('problem')
    expect(cidr).toMatchObject({ length })
    expect('address' in cidr && cidr.address.toString()).toBe(address)
  })

  it.each([
    ['', 'it is no IP address; write one, or a block such as 10.0.0.0/8 or 2001:db8::/32'],
    ['10.0.0/8', 'it is no IP address; write one, or a block such as 10.0.0.0/8 or 2001:db8::/32'],
    ['/8', 'it is no IP address; write one, or a block such as 10.0.0.0/8 or 2001:db8::/32'],
    ['fe80::1%eth0', 'it is no IP address; write one, or a block such as 10.0.0.0/8 or 2001:db8::/32'],
    ['10.0.0.0/', '"" is no length of a prefix; write 0 to 32 after the slash'],
    ['10.0.0.0/33', '"33" is no length of a prefix; write 0 to 32 after the slash'],
    ['10.0.0.0/08', '"08" is no length of a prefix; write 0 to 32 after the slash'],
    ['10.0.0.0/-1', '"-1" is no length of a prefix; write 0 to 32 after the slash'],
    ['10.0.0.0/8.0', '"8.0" is no length of a prefix; write 0 to 32 after the slash'],
    ['10.0.0.0/8/9', '"8/9" is no length of a prefix; write 0 to 32 after the slash'],
    ['10.0.0.0/255.0.0.0', '"255.0.0.0" is no length of a prefix; write 0 to 32 after the slash'],
    ['::/129', '"129" is no length of a prefix; write 0 to 128 after the slash'],
    ['::ffff:0:0/95', '"95" is no length of a prefix; write 96 to 128 after the slash'],
    ['10.1.2.3/8', 'it has bits set after the first 8; write 10.0.0.0/8 for the block, or 10.1.2.3 for the address'],
    [
      '2001:db8::1/32',
      'it has bits set after the first 32; write 2001:db8::/32 for the block, or 2001:db8::1 for the address',
    ],
    [
      '::ffff:10.1.2.3/104',
      'it has bits set after the first 8; write 10.0.0.0/8 for the block, or 10.1.2.3 for the address',
    ],
  ])('is not %j: %s', (text, problem) => {
    expect(parseCidr(text)).toEqual({ problem })
  })
})

function cidrOf(text: string): Cidr {
  const cidr = parseCidr(text)
  if ('problem' in cidr) throw new Error(`${text}: ${cidr.problem}`)
  return cidr
}

function tableOf(...texts: readonly string[]): CidrTable<string> {
  return new CidrTable(texts.map((text) => ({ cidr: cidrOf(text), value: text })))
}

/** Addresses and blocks that have much in common. */
const addresses = fc.oneof(
  fc.tuple(fc.constantFrom(10, 11, 138), fc.constantFrom(0, 128), fc.nat(1), fc.nat(3)).map((parts) => parts.join('.')),
  fc
    .tuple(fc.constantFrom('2001:db8', '2001:db9', '::'), fc.constantFrom('0', '8000'), fc.constantFrom('1', '2'))
    .map(([first, middle, last]) => (first === '::' ? `::${middle}:${last}` : `${first}:${middle}::${last}`)),
)

const blocks = fc.tuple(addresses, fc.nat(128)).map(([text, bits]) => {
  const address = parseIp(text)!
  const length = address.isIpv4 ? bits % 33 : bits
  address.mask(length)
  return `${address}/${length}`
})

describe('a table of address blocks', () => {
  it('finds every block that holds an address, the narrowest first', () => {
    const table = tableOf('10.0.0.0/8', '0.0.0.0/0', '10.1.0.0/16', '10.2.0.0/16', '10.1.2.3', '2001:db8::/32')
    expect(table.find(parseIp('10.1.2.3')!)).toEqual(['10.1.2.3', '10.1.0.0/16', '10.0.0.0/8', '0.0.0.0/0'])
    expect(table.find(parseIp('10.2.2.3')!)).toEqual(['10.2.0.0/16', '10.0.0.0/8', '0.0.0.0/0'])
    expect(table.find(parseIp('11.1.2.3')!)).toEqual(['0.0.0.0/0'])
    expect(table.find(parseIp('2001:db8:1::')!)).toEqual(['2001:db8::/32'])
    expect(table.find(parseIp('2001:db9::')!)).toEqual([])
  })

  it('keeps IPv4 and IPv6 apart, and takes a mapped address for the IPv4 one', () => {
    const table = tableOf('::/0', '0.0.0.0/0', '::ffff:10.0.0.0/104')
    expect(table.find(parseIp('::ffff:10.1.2.3')!)).toEqual(['::ffff:10.0.0.0/104', '0.0.0.0/0'])
    expect(table.find(parseIp('10.1.2.3')!)).toEqual(['::ffff:10.0.0.0/104', '0.0.0.0/0'])
    expect(table.find(parseIp('::a01:203')!)).toEqual(['::/0'])
  })

  it('gives every value of a block, and none twice', () => {
    const entry = (text: string, value: string): { cidr: Cidr; value: string } => ({ cidr: cidrOf(text), value })
    const table = new CidrTable([
      entry('10.0.0.0/8', 'a'),
      entry('10.0.0.0/8', 'b'),
      entry('10.1.0.0/16', 'a'),
      entry('10.0.0.0/8', 'a'),
      entry('11.0.0.0/8', 'c'),
      entry('11.0.0.0/8', 'c'),
    ])
    expect(table.find(parseIp('10.2.0.0')!)).toEqual(['a', 'b'])
    expect(table.find(parseIp('10.1.0.0')!)).toEqual(['a', 'b'])
    expect(table.find(parseIp('11.0.0.0')!)).toEqual(['c'])
  })

  it('says whether there is anything in it', () => {
    expect(tableOf().isEmpty).toBe(true)
    expect(tableOf().find(new IpAddress())).toEqual([])
    expect(tableOf('::/0').isEmpty).toBe(false)
  })

  it('finds what a list of blocks that is gone through one by one finds', () => {
    fc.assert(
      fc.property(fc.uniqueArray(blocks, { maxLength: 40 }), fc.array(addresses, { minLength: 1 }), (texts, asked) => {
        const table = tableOf(...texts)
        for (const text of asked) {
          const family = text.includes(':') ? 'ipv6' : 'ipv4'
          const holding = texts.filter((block) => {
            const [first, length] = block.split('/')
            const list = new BlockList()
            list.addSubnet(first!, Number(length), block.includes(':') ? 'ipv6' : 'ipv4')
            return block.includes(':') === text.includes(':') && list.check(text, family)
          })
          const found = table.find(parseIp(text)!)
          expect(found.toSorted()).toEqual(holding.toSorted())
          const lengths = found.map((block) => Number(block.split('/')[1]))
          expect(lengths).toEqual(lengths.toSorted((one, other) => other - one))
        }
      }),
      { numRuns: 500 },
    )
  })

  it('finds each of 20,000 blocks', () => {
    const textOf = (index: number): string => `10.${index >> 8}.${index & 255}.0/24`
    const table = tableOf(...Array.from({ length: 20_000 }, (_, index) => textOf(index)))
    for (let index = 0; index < 20_000; index++) {
      expect(table.find(parseIp(`10.${index >> 8}.${index & 255}.77`)!)).toEqual([textOf(index)])
    }
    expect(table.find(parseIp('10.200.0.0')!)).toEqual([])
  })
})
