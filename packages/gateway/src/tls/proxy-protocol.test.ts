import type { Cidr } from '@sluice/core/internal'
import { parseCidr } from '@sluice/core/internal'
import { FakeClock, FakeTimers } from '@sluice/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { configOf, RawClient, routeOf, startGateway, startUpstream, turns } from '../gateway.test.support.ts'
import { readProxyHeader } from './proxy-protocol.ts'

const SIGNATURE = [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a]

function binary(command: number, family: number, payload: readonly number[]): Buffer {
  return Buffer.from([...SIGNATURE, command, family, payload.length >> 8, payload.length & 0xff, ...payload])
}

const IPV4 = [192, 0, 2, 7, 10, 0, 0, 1, 0x1f, 0x90, 0x01, 0xbb]
const IPV6 = [0x20, 0x01, 0x0d, 0xb8, ...new Array(11).fill(0), 7, ...new Array(16).fill(1), 1, 2, 3, 4]

const VALID: readonly (readonly [string, Buffer, string | undefined])[] = [
  ['text, IPv4', Buffer.from('PROXY TCP4 192.0.2.7 10.0.0.1 8080 443\r\n'), '192.0.2.7'],
  ['text, IPv6', Buffer.from('PROXY TCP6 2001:DB8::7 ::1 8080 443\r\n'), '2001:db8::7'],
  ['text, unknown', Buffer.from('PROXY UNKNOWN\r\n'), undefined],
  ['text, unknown with addresses', Buffer.from('PROXY UNKNOWN ffff:: ffff:: 65535 65535\r\n'), undefined],
  ['binary, IPv4', binary(0x21, 0x11, IPV4), '192.0.2.7'],
  ['binary, IPv4 with extensions', binary(0x21, 0x11, [...IPV4, 0x04, 0, 3, 1, 2, 3]), '192.0.2.7'],
  ['binary, IPv6', binary(0x21, 0x21, IPV6), '2001:db8::7'],
  ['binary, of the proxy itself', binary(0x20, 0x11, IPV4), undefined],
  ['binary, without an address', binary(0x21, 0x00, []), undefined],
]

describe('the header of the PROXY protocol', () => {
  it.each(VALID)('is read: %s', (_title, header, address) => {
    expect(readProxyHeader(Buffer.concat([header, Buffer.from('GET /')]))).toEqual({ address, bytes: header.length })
    for (let length = 0; length < header.length; length++) {
      expect(readProxyHeader(header.subarray(0, length))).toBe('incomplete')
    }
  })

  it.each([
    ['a request', 'GET / HTTP/1.1\r\n'],
    ['lower case', 'proxy TCP4 1.1.1.1 1.1.1.1 1 1\r\n'],
    ['another protocol', 'PROXY UDP4 1.1.1.1 1.1.1.1 1 1\r\n'],
    ['an address of another family', 'PROXY TCP4 ::1 1.1.1.1 1 1\r\n'],
    ['no address', 'PROXY TCP4 1.1.1 1.1.1.1 1 1\r\n'],
    ['no ports', 'PROXY TCP4 1.1.1.1 1.1.1.1\r\n'],
    ['no carriage return', 'PROXY UNKNOWN\n'],
    ['a line without end', `PROXY TCP4 ${'1'.repeat(120)}`],
    ['version 1 in the form of version 2', binary(0x11, 0x11, IPV4).toString('latin1')],
    ['too short for its family', binary(0x21, 0x21, IPV4).toString('latin1')],
    ['a socket file', binary(0x21, 0x31, new Array(216).fill(0)).toString('latin1')],
  ])('is not read: %s', (_title, text) => {
    expect(readProxyHeader(Buffer.from(text, 'latin1'))).toBe('invalid')
  })

  it('is never read beyond what is there, whatever comes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), fc.boolean(), (bytes, isSigned) => {
        const all = Buffer.from(isSigned ? [...SIGNATURE, ...bytes] : bytes)
        const header = readProxyHeader(all)
        if (typeof header === 'object') expect(header.bytes).toBeLessThanOrEqual(all.length)
      }),
    )
  })
})

describe('a gateway behind a proxy that speaks it', () => {
  const LOCAL = [parseCidr('127.0.0.0/8') as Cidr]
  const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

  async function behindProxy(networks: readonly Cidr[], parts: object = {}) {
    const app = await startUpstream()
    const config = configOf([routeOf()], { app: [app.url] }, { proxyProtocolFrom: networks })
    return { app, ...(await startGateway({ config, ...parts })) }
  }

  it.each(VALID.map(([title, header, address]) => [title, header, address ?? '127.0.0.1'] as const))(
    'knows the client, in one piece and byte by byte: %s',
    async (_title, header, address) => {
      const { app, port } = await behindProxy(LOCAL)
      const whole = new RawClient(port)
      whole.send(Buffer.concat([header, Buffer.from(GET)]))
      await whole.until('\r\n\r\nok')
      const pieces = new RawClient(port)
      for (const byte of header) {
        pieces.send(Buffer.of(byte))
        await turns(1)
      }
      pieces.send(GET)
      await pieces.until('\r\n\r\nok')
      expect(app.received.map(({ headers }) => headers['x-forwarded-for'])).toEqual([address, address])
    },
  )

  it('closes connections of the proxy without the header, and counts them', async () => {
    const { app, port, metrics } = await behindProxy(LOCAL)
    const client = new RawClient(port)
    client.send(GET)
    expect(await client.closed()).toBe('')
    expect(app.received).toEqual([])
    const rejected = metrics.snapshot().families.find(({ name }) => name === 'sluice_gateway_rejected_total')
    expect(rejected?.samples).toContainEqual({ values: ['proxy-protocol'], value: 1 })
  })

  it('does not believe a header from anywhere else', async () => {
    const { app, port } = await behindProxy([parseCidr('10.0.0.0/8') as Cidr])
    const liar = new RawClient(port)
    liar.send(`PROXY TCP4 192.0.2.7 10.0.0.1 8080 443\r\n${GET}`)
    expect(await liar.closed()).toMatch(/^HTTP\/1\.1 400 /)
    const plain = new RawClient(port)
    plain.send(GET)
    await plain.until('ok')
    expect(app.received.map(({ headers }) => headers['x-forwarded-for'])).toEqual(['127.0.0.1'])
  })

  it('does not wait for a header without end', async () => {
    const timers = new FakeTimers(new FakeClock())
    const { port, gateway } = await behindProxy(LOCAL, { timers })
    const client = new RawClient(port)
    client.send('PROXY TCP4 ')
    while (gateway.connections === 0) await turns(1)
    await timers.advance(10_000)
    await client.closed()
  })

  it('limits the connections of the client, not of the proxy', async () => {
    const open: string[] = []
    const connectionLimit = {
      open: (address: string) => {
        open.push(address)
        return address === '192.0.2.7' ? undefined : () => undefined
      },
    }
    const { port } = await behindProxy(LOCAL, { connectionLimit })
    const client = new RawClient(port)
    client.send(`PROXY TCP4 192.0.2.7 10.0.0.1 8080 443\r\n${GET}`)
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 503 /)
    expect(open).toEqual(['192.0.2.7'])
  })
})
