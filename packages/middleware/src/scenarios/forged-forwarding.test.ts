import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { HttpRequest } from '../http/http-request.ts'
import { clientAddress, compileTrust, type TrustedProxies } from '../identity/client-address.ts'

// Whatever a client writes into the header that proxies append to, it must not get another address than its own; and
// whatever it writes when it comes directly, it must not get any but that of its connection. The proxies here are made
// up of what real ones do: append to the last line, or add a line of their own.

/** Proxies before the server, the nearest to the client first; the last one opens the connection. */
const PROXIES = ['10.1.0.1', '2001:db8:ffff::1', '10.1.0.2'] as const
const TRUSTED: readonly string[] = ['10.1.0.0/16', '2001:db8:ffff::/48']

type Header = 'x-forwarded-for' | 'forwarded'

const ipv4Client = fc.ipV4().filter((address) => !address.startsWith('10.1.'))
/** Without zeros, so that there is one spelling only. */
const ipv6Client = fc
  .array(fc.integer({ min: 0x10_00, max: 0xff_fe }), { minLength: 8, maxLength: 8 })
  .map((groups) => groups.map((group) => group.toString(16)).join(':'))
  .filter((address) => !address.startsWith('2001:db8:'))
const client = fc.oneof(ipv4Client, ipv6Client)

const port = fc.integer({ min: 1, max: 65_535 })
const garbage = fc.oneof(
  fc.constantFrom(
    'unknown',
    '_hidden',
    '',
    '-',
    '127.0.0.1',
    '::1',
    '10.1.0.1',
    '2001:db8:ffff::9',
    '999.1.1.1',
    '::ffff:1.2.3.4%0',
  ),
  fc.constantFrom(
    'for="',
    'for=6.6.6.6;by="',
    '"',
    '\\"',
    'for="[::1',
    '"for=1.2.3.4"',
    ';;',
    '=',
    'for=for=',
    '[',
    '[]',
    ']:1',
  ),
  fc.string({ unit: 'grapheme-ascii', maxLength: 30 }),
)

/** An address as a client may write it in a header. */
function written(header: Header): fc.Arbitrary<string> {
  const spelled = fc.tuple(client, port, fc.nat(2)).map(([address, number, form]) => {
    const isIpv6 = address.includes(':')
    if (form === 0) return isIpv6 ? `[${address}]` : address
    if (form === 1) return isIpv6 ? `[${address}]:${number}` : `${address}:${number}`
    return address
  })
  return header === 'forwarded' ? spelled.map((node) => `for="${node}"`) : spelled
}

/** What a client sends before any proxy adds to it: 1 to 50 entries, in some lines. */
function forgery(header: Header): fc.Arbitrary<string[]> {
  const entry = fc.oneof({ weight: 2, arbitrary: written(header) }, { weight: 1, arbitrary: garbage })
  const line = fc
    .tuple(fc.array(entry, { minLength: 1, maxLength: 17 }), fc.constantFrom(',', ', ', ' ,\t'))
    .map(([entries, separator]) => entries.join(separator))
  return fc.array(line, { minLength: 0, maxLength: 3 })
}

/** What a proxy makes of the lines it was given, when `from` connected to it. */
function appended(
  lines: readonly string[],
  from: string,
  options: { readonly header: Header; readonly style: number },
): string[] {
  const isIpv6 = from.includes(':')
  const node = isIpv6 ? `[${from}]` : from
  const noted = [isIpv6 ? from : node, node, `${node}:4711`][options.style % 3]!
  const quoted = [`for="${node}"`, `for="${node}:4711";proto=https`, `by=_p;for=${isIpv6 ? `"${node}"` : node}`][
    options.style % 3
  ]!
  const entry = options.header === 'forwarded' ? quoted : noted
  if (lines.length === 0) return [entry]
  if (options.style >= 3) return [...lines, entry]
  return [...lines.slice(0, -1), `${lines.at(-1)}, ${entry}`]
}

function requestFrom(peerAddress: string, header: Header, lines: readonly string[] | string): HttpRequest {
  return {
    method: 'GET',
    url: '/',
    route: undefined,
    peerAddress,
    header: (name) => (name === header && lines.length > 0 ? lines : undefined),
  }
}

function bothForms(lines: readonly string[]): (readonly string[] | string)[] {
  return [lines, lines.join(', ')]
}

describe.each<Header>(['x-forwarded-for', 'forwarded'])('forged entries of %s', (header) => {
  const chain = fc.record({
    forged: forgery(header),
    from: client,
    count: fc.integer({ min: 1, max: PROXIES.length }),
    styles: fc.array(fc.nat(5), { minLength: PROXIES.length, maxLength: PROXIES.length }),
  })

  it.each<[string, (count: number) => TrustedProxies]>([
    ['by their addresses', () => ({ proxies: TRUSTED, header })],
    ['by their number', (count) => ({ proxies: count, header })],
  ])('do not reach past proxies that are trusted %s (property)', (_name, trustOf) => {
    fc.assert(
      fc.property(chain, ({ forged, from, count, styles }) => {
        let lines = forged
        for (let index = 0; index < count; index++) {
          const sender = index === 0 ? from : PROXIES[index - 1]!
          lines = appended(lines, sender, { header, style: styles[index]! })
        }
        const trust = compileTrust(trustOf(count))
        for (const form of bothForms(lines)) {
          expect(clientAddress(requestFrom(PROXIES[count - 1]!, header, form), trust)).toBe(from)
        }
      }),
      { numRuns: 2000 },
    )
  })

  it('are nothing without a trusted peer (property)', () => {
    fc.assert(
      fc.property(forgery(header), client, (forged, from) => {
        for (const proxies of [false, TRUSTED] as const) {
          const trust = compileTrust({ proxies, header })
          expect(clientAddress(requestFrom(from, header, forged), trust)).toBe(from)
        }
      }),
    )
  })

  it('are nothing in the header that the proxies do not write (property)', () => {
    const other = header === 'forwarded' ? 'x-forwarded-for' : 'forwarded'
    fc.assert(
      fc.property(forgery(other), (forged) => {
        const trust = compileTrust({ proxies: TRUSTED, header })
        expect(clientAddress(requestFrom(PROXIES[0], other, forged), trust)).toBe(PROXIES[0])
      }),
    )
  })

  it.each(Array.from({ length: 50 }, (_, index) => index + 1))('%i of them change nothing', (count) => {
    const entryOf = (address: string) => (header === 'forwarded' ? `for="${address}"` : address)
    const forged = Array.from({ length: count }, (_, index) =>
      entryOf(index % 2 === 0 ? `6.6.6.${index}` : `[2001:db8:6::${index}]:${index}`),
    )
    const lines = [forged.join(', '), `${entryOf('192.0.2.7')}, ${entryOf('10.1.0.1')}`]
    const request = requestFrom('10.1.0.2', header, lines)
    expect(clientAddress(request, compileTrust({ proxies: TRUSTED, header }))).toBe('192.0.2.7')
    expect(clientAddress(request, compileTrust({ proxies: 2, header }))).toBe('192.0.2.7')
  })
})

describe('over a real connection', () => {
  let server: Server
  let received: IncomingMessage | undefined

  beforeAll(async () => {
    server = createServer((request, response) => {
      received = request
      response.end()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
  })

  afterAll(async () => {
    server.close()
    await once(server, 'close')
  })

  /** Sends lines of a header just so, and shows what the server was given, in both forms in which Node has it. */
  async function arrived(header: Header, lines: readonly string[]): Promise<HttpRequest[]> {
    const { port: listening } = server.address() as AddressInfo
    const headers = { [header]: [...lines] }
    const sent = send({ host: '127.0.0.1', port: listening, agent: false, headers })
    sent.end()
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    response.resume()
    await once(response, 'close')
    const { headers: joined, headersDistinct: apart, socket } = received!
    const base = { method: 'GET', url: '/', route: undefined, peerAddress: socket.remoteAddress ?? '127.0.0.1' }
    return [
      { ...base, header: (name) => joined[name] },
      { ...base, header: (name) => apart[name] },
    ]
  }

  it.each<[Header, string[], string]>([
    ['x-forwarded-for', ['6.6.6.6', '7.7.7.7, 192.0.2.7'], '192.0.2.7'],
    ['x-forwarded-for', ['6.6.6.6, 192.0.2.7', '127.0.0.2'], '192.0.2.7'],
    ['x-forwarded-for', ['6.6.6.6', 'garbage'], '127.0.0.1'],
    ['forwarded', ['for="', 'for=6.6.6.6, for="[2001:db8::7]:80";proto=https'], '2001:db8::7'],
    ['forwarded', ['for=6.6.6.6', 'for=_hidden'], '127.0.0.1'],
  ])('lines of %s: %j come from %s', async (header, lines, address) => {
    const requests = await arrived(header, lines)
    expect(requests).toHaveLength(2)
    for (const request of requests) {
      expect(clientAddress(request, compileTrust({ proxies: 'loopback', header }))).toBe(address)
      expect(clientAddress(request, compileTrust(false))).toBe('127.0.0.1')
    }
  })
})
