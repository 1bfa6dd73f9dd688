import { memoryStore } from '@sluice/core'
import { PolicyEngine } from '@sluice/core/policy'
import { FakeClock, seededRandom } from '@sluice/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { addressNetwork } from './address-network.ts'

describe('addressNetwork', () => {
  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['2001:db8:0:1:2:3:4:5', '2001:db8:0:1::/64'],
    ['2001:DB8::1', '2001:db8::/64'],
    ['::1', '::/64'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['::ffff:cb00:7107', '203.0.113.7'],
    ['fe80::1%eth0', 'fe80::1%eth0'],
    ['not an address', 'not an address'],
    ['1:2', '1:2'],
    ['', ''],
  ])('counts %s as %s', (address, network) => {
    expect(addressNetwork(address)).toBe(network)
  })

  it('names callers as limits and blocks do (property)', () => {
    const clock = new FakeClock()
    const random = seededRandom(1)
    const engine = new PolicyEngine({ store: memoryStore({ clock, random }), clock, random })
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (address) => {
        expect(addressNetwork(address)).toBe(engine.block('ip', address, { duration: '1m' }).entity)
      }),
    )
  })
})
