import { createLimiter, type Rule } from '@sluice/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileIpv6, type Ipv6Options } from './address-tiers.ts'
import { identityOf } from './identity.ts'

const rule: Rule = { limit: 10, window: '1h' }
const wide: Ipv6Options = {
  tiers: [
    { prefixLength: 56, multiply: 4 },
    { prefixLength: 48, multiply: 16 },
  ],
}

describe('the networks that an address counts on', () => {
  it('are its /64 when nothing is said', () => {
    const tiers = compileIpv6()
    expect(tiers.prefixLength).toBe(64)
    expect(tiers.rulesOf('default', rule)).toEqual({ default: rule })
    expect(tiers.requestsOf('default', identityOf(undefined, '2001:db8:0:1::9'), 2)).toEqual([
      { rule: 'default', key: '2:ip17:2001:db8:0:1::/64', cost: 2 },
    ])
  })

  it('are wider ones too, with multiples of the limit', () => {
    const tiers = compileIpv6(wide)
    expect(tiers.rulesOf('login', { limit: 10, window: '1h', burst: 5 })).toEqual({
      login: { limit: 10, window: '1h', burst: 5 },
      'login/56': { limit: 40, window: '1h', burst: 20 },
      'login/48': { limit: 160, window: '1h', burst: 80 },
    })
    expect(tiers.requestsOf('login', identityOf(undefined, '2001:db8:1:2345::9'), 1)).toEqual([
      { rule: 'login', key: '2:ip20:2001:db8:1:2345::/64', cost: 1 },
      { rule: 'login/56', key: '2:ip20:2001:db8:1:2300::/56', cost: 1 },
      { rule: 'login/48', key: '2:ip15:2001:db8:1::/48', cost: 1 },
    ])
  })

  it('are not those of IPv4, nor of other identities', () => {
    const tiers = compileIpv6(wide)
    for (const identity of [
      identityOf(undefined, '192.0.2.1'),
      identityOf({ kind: 'ip', value: '::ffff:192.0.2.1' }, undefined),
      { kind: 'user', value: '2001:db8::1' },
      identityOf(undefined, undefined),
    ]) {
      expect(tiers.requestsOf('default', identity, 1)).toHaveLength(1)
    }
    expect(tiers.keyOf(identityOf(undefined, '192.0.2.1'))).toBe('2:ip9:192.0.2.1')
    expect(tiers.keyOf({ kind: 'user', value: '2001:db8::1' })).toBe('4:user11:2001:db8::1')
  })

  it('are the same when asked again, also after thousands of others', () => {
    const tiers = compileIpv6(wide)
    const ask = (group: number) =>
      tiers.requestsOf('login', identityOf(undefined, `2001:db8:1:${group.toString(16)}::9`), 1)
    const first = ask(0x23_45)
    expect(ask(0x23_45)).toEqual(first)
    for (let group = 1; group < 10_000; group++) {
      expect(ask(group)[0]!.key).toContain(`2001:db8:1:${group.toString(16)}::/64`)
    }
    expect(ask(0x23_45)).toEqual(first)
  })

  it('is the address itself at 128 bits', () => {
    expect(compileIpv6({ prefixLength: 128 }).keyOf(identityOf(undefined, '2001:db8::1'))).toBe('2:ip11:2001:db8::1')
  })

  it('have one key for all addresses inside, and another outside (property)', () => {
    const group = fc.integer({ min: 0, max: 0xff_ff })
    const groups = fc.array(group, { minLength: 8, maxLength: 8 })
    const textOf = (address: readonly number[]) => address.map((each) => each.toString(16)).join(':')
    const keyOf = (address: readonly number[], prefixLength: number) =>
      compileIpv6({ prefixLength }).keyOf(identityOf({ kind: 'ip', value: textOf(address) }, undefined))
    fc.assert(
      fc.property(groups, groups, fc.integer({ min: 16, max: 128 }), (one, other, prefixLength) => {
        const bits = (address: readonly number[]) =>
          address
            .map((each) => each.toString(2).padStart(16, '0'))
            .join('')
            .slice(0, prefixLength)
        // Close together, so that prefixes are often the same.
        const near = one.map((each, index) => (index * 16 < prefixLength - 16 ? each : other[index]!))
        const isMapped = textOf(one).startsWith('0:0:0:0:0:ffff') || textOf(near).startsWith('0:0:0:0:0:ffff')
        fc.pre(!isMapped)
        expect(keyOf(one, prefixLength) === keyOf(near, prefixLength)).toBe(bits(one) === bits(near))
      }),
      { numRuns: 500 },
    )
  })
})

describe('one decision over all of them', () => {
  it('denies when any is used up, and charges nothing then', () => {
    const tiers = compileIpv6({ tiers: [{ prefixLength: 56, multiply: 2 }] })
    const limiter = createLimiter({ rules: tiers.rulesOf('default', { limit: 2, window: '1h' }) })
    const ask = (address: string) => limiter.checkAll(tiers.requestsOf('default', identityOf(undefined, address), 1))
    // Two networks of one /56 take two each, which is all that it has.
    expect([1, 1, 2, 2].map((network) => ask(`2001:db8:0:${network}::1`).allowed)).toEqual([true, true, true, true])
    const denied = ask('2001:db8:0:3::1')
    expect(denied).toMatchObject({ allowed: false, rule: 'default/56' })
    expect(ask('2001:db8:0:1::2')).toMatchObject({ allowed: false })
    expect(limiter.limiter('default').peek(tiers.keyOf(identityOf(undefined, '2001:db8:0:3::1'))).remaining).toBe(2)
    // The next /56 has its own.
    expect(ask('2001:db8:0:101::1').allowed).toBe(true)
  })
})

describe('what is said of IPv6', () => {
  it.each<[unknown, string]>([
    [
      { prefixLength: 15 },
      '"ipv6.prefixLength" cannot be used; received 15; expected a whole number of bits, 16 to 128',
    ],
    [{ prefixLength: 129 }, 'received 129'],
    [{ prefixLength: 63.5 }, 'received 63.5'],
    [{ prefixLenght: 64 }, '"ipv6" has no such option; received "prefixLenght"'],
    [{ prefixLenght: 64 }, 'did you mean "prefixLength"?'],
    [64, '"ipv6" cannot be used; received 64; expected an object'],
    [{ tiers: 56 }, '"ipv6.tiers" cannot be used; received 56'],
    [{ tiers: [56] }, '"ipv6.tiers[0]" cannot be used; received 56'],
    [
      { tiers: [{ prefixLength: 64, multiply: 2 }] },
      '"ipv6.tiers[0].prefixLength" cannot be used; received 64; expected a whole number of bits, 16 to 63',
    ],
    [
      { tiers: [{ prefixLength: 56 }] },
      '"ipv6.tiers[0].multiply" cannot be used; received undefined; expected a number above 1',
    ],
    [{ tiers: [{ prefixLength: 56, multiply: 1 }] }, 'received 1'],
    [
      {
        tiers: [
          { prefixLength: 56, multiply: 4 },
          { prefixLength: 56, multiply: 8 },
        ],
      },
      '"ipv6.tiers[1].prefixLength"',
    ],
    [
      {
        tiers: [
          { prefixLength: 56, multiply: 4 },
          { prefixLength: 48, multiply: 4 },
        ],
      },
      'expected a number above 4',
    ],
    [{ tiers: [{ prefixLength: 56, multiply: 4, limit: 4 }] }, '"ipv6.tiers[0]" has no such option; received "limit"'],
  ])('is rejected: %j', (options, message) => {
    expect(() => compileIpv6(options as Ipv6Options)).toThrow(
      expect.objectContaining({ code: 'SLUICE_INVALID_OPTION', message: expect.stringContaining(message) }),
    )
  })

  it('may be nothing', () => {
    expect(compileIpv6(undefined).tiers).toEqual([])
  })
})
