import { expect, it } from 'vitest'
import { countedAddress } from './counted-address.ts'

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

it('counts by as many bits as it is told', () => {
  expect(countedAddress('2001:db8:1:2ff::1', 56)).toBe('2001:db8:1:200::/56')
  expect(countedAddress('2001:db8:1:2ff::1', 128)).toBe('2001:db8:1:2ff::1')
})
