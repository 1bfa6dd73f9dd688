import { createLimiter } from '@sluice/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { HttpRequest } from '../http/http-request.ts'
import { compileIpv6 } from '../identity/address-tiers.ts'
import { clientAddress, compileTrust } from '../identity/client-address.ts'
import { identityOf } from '../identity/identity.ts'

// One caller has one counter, however its address is written, and one network has one, however many addresses it owns.

const PROXY = '10.0.0.1'
const trust = compileTrust([PROXY])

function requestFrom(peerAddress: string, forwarded?: string): HttpRequest {
  const header = (name: string) => (name === 'x-forwarded-for' ? forwarded : undefined)
  return { method: 'GET', url: '/', route: undefined, peerAddress, header }
}

/** The counter of an address, as a connection has it and as a proxy writes it. */
function keysOf(address: string): string[] {
  const tiers = compileIpv6()
  return [requestFrom(address), requestFrom(PROXY, address)].map((request) =>
    tiers.keyOf(identityOf(undefined, clientAddress(request, trust))),
  )
}

describe('the counter of an address', () => {
  it.each([
    ['IPv4 in its three forms', ['1.2.3.4', '::ffff:1.2.3.4', '::ffff:102:304', '0:0:0:0:0:FFFF:0102:0304']],
    ['IPv6 in its forms', ['2001:db8::1', '2001:DB8:0:0:0:0:0:1', '2001:0db8::0001', '2001:db8::0.0.0.1']],
    ['addresses of one /64', ['2001:db8:1:2::', '2001:db8:1:2:ffff:ffff:ffff:ffff', '2001:db8:1:2::1.2.3.4']],
  ])('is one for %s', (_name, addresses) => {
    expect(new Set(addresses.flatMap(keysOf)).size).toBe(1)
  })

  it.each([
    ['two IPv4 addresses', ['1.2.3.4', '1.2.3.5']],
    ['two IPv4 addresses in IPv6 form', ['::ffff:1.2.3.4', '::ffff:1.2.3.5']],
    ['an IPv4 address and an IPv6 one with the same last bits', ['1.2.3.4', '2001:db8::1.2.3.4', '::1.2.3.4']],
    ['two neighbours of a /63', ['2001:db8:1:2::1', '2001:db8:1:3::1']],
  ])('is different for %s', (_name, addresses) => {
    for (const place of [0, 1]) {
      expect(new Set(addresses.map((address) => keysOf(address)[place])).size).toBe(addresses.length)
    }
  })

  it.each([
    'fe80::1%eth0',
    '1.2.3.256',
    '256.2.3.4',
    '1.2.3.4.5',
    '01.2.3.4',
    '::ffff:1.2.3.256',
    '2001:db8::12345',
    '0x7f.1',
  ])('does not exist for %s: the proxy that wrote it counts', (address) => {
    expect(clientAddress(requestFrom(PROXY, address), trust)).toBe(PROXY)
  })

  it('is that of the IPv4 address for every IPv4 address in IPv6 form (property)', () => {
    fc.assert(
      fc.property(fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255)), ([a, b, c, d]) => {
        const hex = `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
        const dotted = `${a}.${b}.${c}.${d}`
        fc.pre(dotted !== PROXY)
        const forms = [dotted, `::ffff:${dotted}`, `::ffff:${hex}`, `::FFFF:${hex}`]
        expect(new Set(forms.flatMap(keysOf)).size).toBe(1)
      }),
    )
  })
})

describe('a caller that changes its address', () => {
  const tiers = compileIpv6({
    tiers: [
      { prefixLength: 56, multiply: 4 },
      { prefixLength: 48, multiply: 16 },
    ],
  })
  const limit = 5

  function admitted(addresses: Iterable<string>): number {
    const limiter = createLimiter({ rules: tiers.rulesOf('default', { limit, window: '1h' }) })
    let count = 0
    for (const address of addresses) {
      const identity = identityOf(undefined, clientAddress(requestFrom(address), compileTrust(false)))
      if (limiter.checkAll(tiers.requestsOf('default', identity, 1)).allowed) count++
    }
    return count
  }

  const hex = (value: number) => value.toString(16)

  it.each([
    ['inside a /64 has one limit', (index: number) => `2001:db8:1:2::${hex(index)}`, limit],
    ['inside a /56 has four', (index: number) => `2001:db8:1:${hex(0x2_00 + (index % 256))}::${hex(index)}`, limit * 4],
    ['inside a /48 has sixteen', (index: number) => `2001:db8:1:${hex((index * 257) % 65_536)}::1`, limit * 16],
    ['to another IPv4 address has one for each', (index: number) => `192.0.${index >> 8}.${index & 255}`, 1000],
  ])('%s', (_name, addressOf, expected) => {
    expect(admitted(Array.from({ length: 1000 }, (_, index) => addressOf(index)))).toBe(expected)
  })

  it('inside one /56 leaves others of the /48 what is theirs', () => {
    const greedy = Array.from({ length: 1000 }, (_, index) => `2001:db8:1:2${hex(index % 256).padStart(2, '0')}::1`)
    const modest = Array.from({ length: limit }, () => '2001:db8:1:300::1')
    expect(admitted([...greedy, ...modest])).toBe(limit * 4 + limit)
  })
})
