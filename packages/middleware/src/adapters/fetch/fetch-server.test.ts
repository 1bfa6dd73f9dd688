import { describe, expect, it } from 'vitest'
import { pathOf, peerAddressFrom } from './fetch-server.ts'

const request = new Request('http://localhost/')

describe('the address at the other end', () => {
  const node = { incoming: { socket: { remoteAddress: '192.0.2.1' } } }
  const deno = { remoteAddr: { transport: 'tcp', hostname: '192.0.2.2', port: 4711 } }
  const bun = { requestIP: (of: Request) => (of === request ? { address: '192.0.2.3', port: 4711 } : null) }

  it.each([
    ['@hono/node-server', node, '192.0.2.1'],
    ['Deno.serve', deno, '192.0.2.2'],
    ['Bun.serve', bun, '192.0.2.3'],
    ['a server among other bindings', { server: node, database: {} }, '192.0.2.1'],
  ])('comes from %s', (_, server, address) => {
    expect(peerAddressFrom(server, request)).toBe(address)
  })

  it.each([
    [undefined],
    [null],
    ['192.0.2.1'],
    [{}],
    [{ incoming: null, remoteAddr: 'unix', requestIP: true }],
    [{ incoming: { socket: { remoteAddress: undefined } } }],
    [{ requestIP: () => null }],
  ])('is not known from %j', (server) => {
    expect(peerAddressFrom(server, request)).toBeUndefined()
  })
})

it.each([
  ['http://localhost/orders/7?full=1', '/orders/7?full=1'],
  ['https://example.com:8443/', '/'],
  ['http://localhost/a://b/c', '/a://b/c'],
  ['http://localhost', '/'],
])('the path of %s is %s', (url, path) => {
  expect(pathOf(url)).toBe(path)
})
