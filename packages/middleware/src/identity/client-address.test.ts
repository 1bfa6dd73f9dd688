import { describe, expect, it } from 'vitest'
import type { HttpRequest } from '../http/http-request.ts'
import { clientAddress, compileTrust, entriesPresent, isNearby, type TrustedProxies } from './client-address.ts'

/** A request from `peerAddress` with these headers. */
function requestFrom(
  peerAddress: string | undefined,
  headers: Readonly<Record<string, string | readonly string[]>> = {},
): HttpRequest {
  return { method: 'GET', url: '/', route: undefined, peerAddress, header: (name) => headers[name] }
}

const forwardedFor = (value: string | readonly string[]) => ({ 'x-forwarded-for': value })

function addressOf(trustProxy: TrustedProxies | undefined, request: HttpRequest): string | undefined {
  return clientAddress(request, compileTrust(trustProxy))
}

describe('the client address without trusted proxies', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::ffff:c000:201', '192.0.2.1'],
    ['2001:DB8:0:0::1', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['', undefined],
    ['unix:', undefined],
    ['1.2.3.256', undefined],
    [undefined, undefined],
  ])('of the peer %j is %j', (peerAddress, address) => {
    const headers = { ...forwardedFor('6.6.6.6'), forwarded: 'for=6.6.6.6', 'cf-connecting-ip': '6.6.6.6' }
    for (const trustProxy of [undefined, false, 0, []] as const) {
      expect(addressOf(trustProxy, requestFrom(peerAddress, headers))).toBe(address)
    }
  })
})

describe('the client address behind a number of proxies', () => {
  it.each([
    [1, '1.1.1.1, 2.2.2.2, 3.3.3.3', '3.3.3.3'],
    [2, '1.1.1.1, 2.2.2.2, 3.3.3.3', '2.2.2.2'],
    [3, '1.1.1.1, 2.2.2.2, 3.3.3.3', '1.1.1.1'],
    [4, '1.1.1.1, 2.2.2.2, 3.3.3.3', '1.1.1.1'],
    [2, '1.1.1.1, garbage, 3.3.3.3', '3.3.3.3'],
    [3, '1.1.1.1, garbage, 3.3.3.3', '3.3.3.3'],
    [1, 'garbage', '10.0.0.1'],
    [1, '', '10.0.0.1'],
  ])('%i of %j is %s', (hops, header, address) => {
    expect(addressOf(hops, requestFrom('10.0.0.1', forwardedFor(header)))).toBe(address)
  })

  it('is that of the peer without the header', () => {
    expect(addressOf(2, requestFrom('10.0.0.1'))).toBe('10.0.0.1')
  })

  it('is known over a Unix socket too', () => {
    expect(addressOf(1, requestFrom(undefined, forwardedFor('6.6.6.6, 1.2.3.4')))).toBe('1.2.3.4')
    expect(addressOf(1, requestFrom(undefined))).toBeUndefined()
  })
})

describe('the client address behind proxies with known addresses', () => {
  const proxies = ['loopback', '10.0.0.0/8', '2001:db8:ffff::/48']

  it.each([
    ['10.0.0.1', '6.6.6.6, 1.2.3.4', '1.2.3.4'],
    ['10.0.0.1', '6.6.6.6, 1.2.3.4, 10.0.0.2', '1.2.3.4'],
    ['::ffff:10.0.0.1', '6.6.6.6, 1.2.3.4, 10.0.0.2, ::1', '1.2.3.4'],
    ['2001:db8:ffff::1', '6.6.6.6, 2001:db8::7, [2001:db8:ffff::2]:80', '2001:db8::7'],
    ['10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
    ['10.0.0.1', '6.6.6.6, unknown, 10.0.0.2', '10.0.0.2'],
    ['10.0.0.1', '6.6.6.6, unknown', '10.0.0.1'],
    ['11.0.0.1', '6.6.6.6, 10.0.0.2', '11.0.0.1'],
    ['192.168.0.1', '6.6.6.6', '192.168.0.1'],
  ])('from %s with %j is %s', (peerAddress, header, address) => {
    expect(addressOf(proxies, requestFrom(peerAddress, forwardedFor(header)))).toBe(address)
  })

  it('is not known when the connection has no address', () => {
    expect(addressOf(proxies, requestFrom(undefined, forwardedFor('1.2.3.4')))).toBeUndefined()
  })

  it('takes one name, and those of networks that are not on the Internet', () => {
    const from = (peerAddress: string, proxy: string) =>
      addressOf(proxy, requestFrom(peerAddress, forwardedFor('1.2.3.4')))
    expect(from('127.9.9.9', 'loopback')).toBe('1.2.3.4')
    expect(from('::1', 'loopback')).toBe('1.2.3.4')
    expect(from('172.31.0.1', 'private')).toBe('1.2.3.4')
    expect(from('fd00::1', 'private')).toBe('1.2.3.4')
    expect(from('fe80::1%eth0', 'linklocal')).toBe('1.2.3.4')
    expect(from('172.32.0.1', 'private')).toBe('172.32.0.1')
    expect(from('127.0.0.1', 'private')).toBe('127.0.0.1')
  })

  it('looks at no more than 50 proxies', () => {
    const header = ['1.2.3.4', ...Array.from({ length: 60 }, (_, index) => `10.0.1.${index}`)].join(', ')
    expect(addressOf(proxies, requestFrom('10.0.0.1', forwardedFor(header)))).toBe('10.0.1.10')
  })
})

describe('the header that proxies write', () => {
  const headers = {
    'x-forwarded-for': '1.1.1.1',
    forwarded: 'for=2.2.2.2',
    'cf-connecting-ip': '3.3.3.3',
  }

  it.each([
    [undefined, '1.1.1.1'],
    ['X-Forwarded-For', '1.1.1.1'],
    ['Forwarded', '2.2.2.2'],
    ['CF-Connecting-IP', '3.3.3.3'],
    ['true-client-ip', '127.0.0.1'],
  ])('%s is the only one looked at', (header, address) => {
    for (const proxies of [1, 'loopback', ['127.0.0.1']] as const) {
      const trustProxy = header === undefined ? { proxies } : { proxies, header }
      expect(addressOf(trustProxy, requestFrom('127.0.0.1', headers))).toBe(address)
    }
  })

  it('is not believed from others, also when it holds one address', () => {
    for (const header of ['x-forwarded-for', 'forwarded', 'cf-connecting-ip']) {
      expect(addressOf({ proxies: ['10.0.0.1'], header }, requestFrom('10.0.0.2', headers))).toBe('10.0.0.2')
      expect(addressOf({ proxies: false, header }, requestFrom('10.0.0.2', headers))).toBe('10.0.0.2')
    }
  })

  it('is not believed when one that holds one address was sent twice', () => {
    const twice = { 'cf-connecting-ip': ['6.6.6.6', '3.3.3.3'] }
    expect(addressOf({ proxies: 1, header: 'cf-connecting-ip' }, requestFrom('10.0.0.1', twice))).toBe('10.0.0.1')
  })
})

describe('what is said of trusted proxies', () => {
  it.each<[unknown, RegExp]>([
    [true, /received true; expected false, a number of proxies from 0 to 50.*say how many proxies there are/],
    [-1, /received -1/],
    [1.5, /received 1.5/],
    [51, /received 51/],
    [Number.NaN, /received NaN/],
    ['lopback', /received "lopback".*Did you mean "loopback"\?/],
    [['10.0.0.1/8'], /write 10\.0\.0\.0\/8 for the block/],
    [['10.0.0.0/33'], /write 0 to 32 after the slash/],
    [[7], /it is no text; received 7/],
    [{ proxies: 1, headers: 'x' }, /has no "headers".*Did you mean "header"\?/],
    [{ hops: 1 }, /has no "hops"; expected proxies and header\.$/],
    [{ header: 'forwarded' }, /received undefined/],
    [{ proxies: 1, header: 'a b' }, /"header" of "trustProxy" cannot be used; received "a b"/],
    [{ proxies: 1, header: 7 }, /received 7/],
    [null, /received null/],
  ])('is rejected when it is %j', (trustProxy, message) => {
    expect(() => compileTrust(trustProxy as TrustedProxies)).toThrow(
      expect.objectContaining({ code: 'SLUICE_INVALID_OPTION', message: expect.stringMatching(message) }),
    )
  })

  it.each<[TrustedProxies, string | undefined]>([
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['::/0', '::/0'],
    [['10.0.0.0/8', '0.0.0.0/1', '128.0.0.0/1'], '0.0.0.0/1'],
    ['2000::/3', '2000::/3'],
    [['loopback', 'private', 'linklocal'], undefined],
    [1, undefined],
  ])('%j is too wide at %j', (trustProxy, tooWide) => {
    expect(compileTrust(trustProxy).tooWide).toBe(tooWide)
  })
})

describe('entries of the header', () => {
  it.each([
    [3, undefined, 0],
    [3, '1.1.1.1', 1],
    [3, '1.1.1.1, garbage', 2],
    [3, '1.1.1.1, 2.2.2.2, 3.3.3.3, 4.4.4.4', 3],
  ])('for %i proxies in %j are %i', (hops, header, entries) => {
    const request = requestFrom('10.0.0.1', header === undefined ? {} : forwardedFor(header))
    expect(entriesPresent(request, compileTrust(hops))).toBe(entries)
  })

  it('are none or one where it holds one address', () => {
    const trust = compileTrust({ proxies: 2, header: 'cf-connecting-ip' })
    expect(entriesPresent(requestFrom('10.0.0.1'), trust)).toBe(0)
    expect(entriesPresent(requestFrom('10.0.0.1', { 'cf-connecting-ip': '1.1.1.1' }), trust)).toBe(1)
  })
})

it.each([
  ['127.0.0.1', true],
  ['::ffff:10.1.2.3', true],
  ['fe80::1%eth0', true],
  ['fd12::1', true],
  ['1.2.3.4', false],
  ['2001:db8::1', false],
  ['garbage', false],
  [undefined, false],
])('%j is nearby: %j', (address, nearby) => {
  expect(isNearby(address)).toBe(nearby)
})
