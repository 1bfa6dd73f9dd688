import { describe, expect, it } from 'vitest'
import { parseCidr } from './cidr.ts'

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
