import { describe, expect, it } from 'vitest'
import { LOOPBACK_NETWORKS } from '../address-network.ts'
import { ConnectionLimit } from './connection-limit.ts'

/** How many of four connections from each address are accepted by a limit of 2. */
function accepted(addresses: readonly string[], exempt: readonly string[] = []): number {
  const limit = new ConnectionLimit({ perAddress: 2, exempt })
  const opened = addresses.flatMap((address) => [1, 2, 3, 4].map(() => limit.open(address)))
  return opened.filter((closed) => closed !== undefined).length
}

describe('a connection limit', () => {
  it.each([
    ['one address', ['192.0.2.1'], 2],
    ['two addresses', ['192.0.2.1', '192.0.2.2'], 4],
    ['one address in two forms', ['192.0.2.1', '::ffff:192.0.2.1'], 2],
    ['one network of IPv6', ['2001:db8::1', '2001:db8::ffff:1'], 2],
    ['two networks of IPv6', ['2001:db8::1', '2001:db8:0:1::1'], 4],
    ['no address, as of a socket that is gone', [''], 2],
  ])('counts %s', (_, addresses, count) => {
    expect(accepted(addresses)).toBe(count)
  })

  it.each(['127.0.0.1', '127.3.2.1', '::1', '::ffff:127.0.0.1'])('never counts %s of this machine', (address) => {
    expect(accepted([address], LOOPBACK_NETWORKS)).toBe(4)
  })

  it('never counts trusted proxies', () => {
    expect(accepted(['10.1.2.3', 'fd00::1'], ['10.0.0.0/8', 'fd00::1'])).toBe(8)
    expect(accepted(['11.1.2.3', 'fd00::2'], ['10.0.0.0/8', 'fd00::1'])).toBe(4)
  })

  it('has room again when a connection is closed, and forgets addresses without any', () => {
    const limit = new ConnectionLimit({ perAddress: 1, exempt: [] })
    for (let round = 0; round < 3; round++) {
      const closed = limit.open('192.0.2.1')
      expect(limit.open('192.0.2.1')).toBeUndefined()
      closed!()
    }
  })
})
