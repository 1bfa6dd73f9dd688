import { systemClock, systemTimers } from '@sluice/core'
import { seededRandom } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import type { CompiledConfig } from '../config/compiled-config.ts'
import {
  configOf,
  openIdentifier,
  RawClient,
  type ReceivedRequest,
  routeOf,
  startGateway,
  startUpstream,
} from '../gateway.test.support.ts'
import { CredentialIdentifier } from '../identity/identifier.ts'

const IDENTIFIER_PARTS = { clock: systemClock, random: seededRandom(1), timers: systemTimers }

/** What the upstream gets for these header lines. Callers are identified by `config.options`, if it has any. */
async function received(lines: readonly string[], config: Partial<CompiledConfig> = {}): Promise<ReceivedRequest> {
  const app = await startUpstream()
  const identifier = config.options && new CredentialIdentifier(config.options, IDENTIFIER_PARTS)
  const { port } = await startGateway({
    config: configOf([routeOf()], { app: [app.url] }, config),
    ...(identifier && { identifier }),
  })
  const client = new RawClient(port)
  client.send(['GET /a HTTP/1.1', 'Host: api.example:8080', ...lines, '', ''].join('\r\n'))
  await client.until('ok')
  return app.received[0]!
}

const TRUSTED = { trustedProxies: ['127.0.0.0/8'] }

describe('headers to the upstream', () => {
  it('pass as they came, in order and spelling', async () => {
    const { rawHeaders } = await received(['X-One: 1', 'Accept: a', 'accept: b', 'X-Two: \xe9'])
    expect(rawHeaders.join('|')).toContain('X-One|1|Accept|a|accept|b|X-Two|\xe9')
  })

  it.each([
    'Keep-Alive: timeout=5',
    'Proxy-Connection: keep-alive',
    'Proxy-Authorization: Basic eA==',
    'Upgrade: foo',
    'HTTP2-Settings: AAMAAABk',
    'Trailer: X-A',
    'TE: gzip',
    'X-Original-URL: /admin',
  ])('are without "%s"', async (line) => {
    const { headers } = await received([line])
    expect(Object.keys(headers)).not.toContain(line.slice(0, line.indexOf(':')).toLowerCase())
  })

  it('keep "TE: trailers", which gRPC needs', async () => {
    expect((await received(['TE: gzip, trailers;q=0.5'])).headers['te']).toBe('trailers')
  })

  it('are without those that Connection names, and those of the gateway are added afterwards', async () => {
    const { headers } = await received([
      'Connection: close, X-Secret, Authorization, X-Forwarded-For, Forwarded, Host, Via, X-Request-Id',
      'X-Secret: 1',
      'Authorization: Bearer x',
      'X-Forwarded-For: 6.6.6.6',
    ])
    expect(headers).toMatchObject({
      host: 'api.example:8080',
      'x-forwarded-for': '127.0.0.1',
      forwarded: 'for=127.0.0.1;host="api.example:8080";proto=http',
      via: '1.1 sluice',
      'x-request-id': 'id-1',
    })
    expect(headers.authorization).toBeUndefined()
    expect(headers['x-secret']).toBeUndefined()
  })

  it('tell who calls, whatever a client says', async () => {
    const { headers, rawHeaders } = await received([
      'X-Forwarded-For: 1.1.1.1',
      'x-forwarded-for: 2.2.2.2',
      'X_Forwarded_For: 3.3.3.3',
      'X-Forwarded-Host: evil',
      'X-Forwarded-Proto: https',
      'X-Forwarded-Port: 443',
      'X-Real-IP: 4.4.4.4',
      'Forwarded: for=5.5.5.5',
      'X-Request-Id: mine',
      'X-User: forged',
    ])
    expect(rawHeaders.join('|')).not.toMatch(/1\.1\.1\.1|2\.2\.2\.2|3\.3\.3\.3|4\.4\.4\.4|5\.5\.5\.5|evil|mine|forged/)
    expect(headers).toMatchObject({
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-host': 'api.example:8080',
      'x-forwarded-proto': 'http',
      'x-request-id': 'id-1',
    })
  })

  it('continue what a trusted proxy says', async () => {
    const lines = [
      'X-Forwarded-For: 1.1.1.1',
      'X-Forwarded-For: 2.2.2.2',
      'X-Forwarded-Host: shop.example',
      'X-Forwarded-Proto: https',
      'X-Real-IP: 1.1.1.1',
      'Forwarded: for=1.1.1.1',
      'X-Request-Id: given-1',
    ]
    expect((await received(lines, TRUSTED)).headers).toMatchObject({
      'x-forwarded-for': '1.1.1.1, 2.2.2.2, 127.0.0.1',
      'x-forwarded-host': 'shop.example',
      'x-forwarded-proto': 'https',
      forwarded: 'for=127.0.0.1;host="api.example:8080";proto=http',
      'x-request-id': 'given-1',
    })
  })

  it.each([
    ['X-Forwarded-For', { 'x-forwarded-for': '6.6.6.6, 1.1.1.1, 127.0.0.1', forwarded: 'for=1.1.1.1, ' }],
    ['Forwarded', { 'x-forwarded-for': '2001:db8::2, 127.0.0.1', forwarded: 'for=6.6.6.6, for="[2001:db8::2]", ' }],
    ['X-Real-IP', { 'x-forwarded-for': '3.3.3.3, 127.0.0.1', forwarded: 'for=3.3.3.3, ', 'x-real-ip': '3.3.3.3' }],
    ['X-Own', { 'x-forwarded-for': '4.4.4.4, 127.0.0.1', forwarded: 'for=4.4.4.4, ', 'x-own': '4.4.4.4' }],
  ])('tell the address that a proxy says in %s, and no other that it passes through', async (believed, expected) => {
    const lines = [
      'X-Forwarded-For: 6.6.6.6, 1.1.1.1',
      'Forwarded: for=6.6.6.6, for="[2001:db8::2]"',
      'X-Real-IP: 3.3.3.3',
      'X-Own: 4.4.4.4',
      'Client-IP: 5.5.5.5',
    ]
    const options = { trustedProxies: ['127.0.0.0/8'], forwardedHeader: believed }
    const { headers } = await received(lines, { ...TRUSTED, options })
    expect(headers['client-ip']).toBeUndefined()
    expect(headers['x-real-ip']).toBe(believed === 'X-Real-IP' ? '3.3.3.3' : undefined)
    const own = 'for=127.0.0.1;host="api.example:8080";proto=http'
    expect(headers).toMatchObject({ ...expected, forwarded: `${expected.forwarded}${own}` })
  })

  it('have no header of a client in which proxies would tell an address', async () => {
    const options = { trustedProxies: ['192.0.2.1'], forwardedHeader: 'X-Own' }
    const { headers } = await received(['X-Own: 4.4.4.4', 'X-Real-IP: 3.3.3.3', 'Client-IP: 5.5.5.5'], { options })
    expect([headers['x-own'], headers['x-real-ip'], headers['client-ip']]).toEqual([undefined, undefined, undefined])
  })

  it('do not take a request id over that could break a log', async () => {
    expect((await received(['X-Request-Id: a b"c'], TRUSTED)).headers['x-request-id']).toBe('id-1')
  })

  it('continue a trace, and begin one without a usable traceparent', async () => {
    const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    expect((await received([`traceparent: ${trace}`, 'tracestate: a=b'])).headers).toMatchObject({
      traceparent: trace,
      tracestate: 'a=b',
    })
    for (const bad of ['00-00000000000000000000000000000000-b7ad6b7169203331-01', 'nonsense', `ff${trace.slice(2)}`]) {
      const { headers } = await received([`traceparent: ${bad}`])
      expect(headers['traceparent']).toMatch(/^00-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-00$/)
    }
  })

  it('tell about the caller what identity says', async () => {
    const app = await startUpstream()
    const identifier = {
      ...openIdentifier,
      removedHeaders: new Set(['x-consumer']),
      identify: () => ({
        ip: '9.9.9.9',
        user: 'ann',
        apiKey: undefined,
        tenant: undefined,
        tier: undefined,
        upstreamHeaders: ['X-Consumer', 'ann'],
      }),
    }
    const { port } = await startGateway({ config: configOf([routeOf()], { app: [app.url] }), identifier })
    const client = new RawClient(port)
    client.send('GET / HTTP/1.1\r\nHost: a\r\nX-Consumer: root\r\nx_consumer: root\r\n\r\n')
    await client.until('ok')
    expect(app.received[0]!.headers['x-consumer']).toBe('ann')
    expect(app.received[0]!.rawHeaders).not.toContain('root')
  })
})

describe('headers to the client', () => {
  async function answered(lines: readonly string[], limits = false): Promise<string> {
    const app = await startUpstream((request, response) => {
      request.resume()
      const { socket } = response
      socket!.end(['HTTP/1.1 200 OK', 'Content-Length: 2', ...lines, '', 'ok'].join('\r\n'), 'latin1')
    })
    const { port } = await startGateway({
      config: configOf([routeOf()], { app: [app.url] }),
      headers: 'both',
      ...(limits && {
        ruleSet: { rules: [{ resource: '/*', dimension: 'ip', algorithm: 'fixed-window', limit: 10, window: '1h' }] },
      }),
    })
    const client = new RawClient(port)
    client.send('GET /a HTTP/1.1\r\nHost: a\r\n\r\n')
    return await client.until('\r\n\r\nok')
  }

  it('are without hop-by-hop ones and those that Connection names', async () => {
    const text = await answered(['Connection: close, X-Hop', 'X-Hop: 1', 'Keep-Alive: timeout=9', 'X-End: \xe9'])
    expect(text).toContain('X-End: \xe9')
    expect(text).not.toMatch(/X-Hop|timeout=9|Connection: close/)
  })

  it('keep narrower limits of the upstream', async () => {
    const text = await answered(['X-RateLimit-Limit: 5', 'X-RateLimit-Remaining: 3', 'X-RateLimit-Reset: 77'], true)
    expect(text).toContain('X-RateLimit-Limit: 5\r\nX-RateLimit-Remaining: 3\r\nX-RateLimit-Reset: 77\r\n')
    expect(text.match(/X-RateLimit-Remaining/g)).toHaveLength(1)
    expect(text).not.toContain('X-RateLimit-Reset-After')
  })

  it('announce narrower limits of the gateway, and keep those of the upstream under another name', async () => {
    const text = await answered(['x-ratelimit-limit: 500', 'x-ratelimit-remaining: 300'], true)
    expect(text).toContain('X-RateLimit-Limit: 10\r\nX-RateLimit-Remaining: 9\r\n')
    expect(text).toContain('X-Upstream-ratelimit-limit: 500\r\nX-Upstream-ratelimit-remaining: 300\r\n')
  })

  it('leave limits alone that cannot be compared', async () => {
    const text = await answered(['X-RateLimit-Remaining: 3;w=1, 7;w=60'], true)
    expect(text.match(/X-RateLimit-[A-Z]\S*/g)).toEqual(['X-RateLimit-Remaining:'])
  })

  it('have both lists of RateLimit fields', async () => {
    const text = await answered(['RateLimit: "app";r=3;t=5', 'RateLimit-Policy: "app";q=5;w=5'], true)
    expect(text).toContain('RateLimit: "app";r=3;t=5')
    expect(text.match(/^RateLimit: /gm)).toHaveLength(2)
    expect(text.match(/^RateLimit-Policy: /gm)).toHaveLength(2)
  })
})

describe('the request target', () => {
  async function statusOf(head: string): Promise<readonly [string, readonly ReceivedRequest[]]> {
    const app = await startUpstream()
    const { port } = await startGateway({ config: configOf([routeOf()], { app: [app.url] }) })
    const client = new RawClient(port)
    client.send(`${head}\r\n\r\n`)
    return [(await client.until('\r\n\r\n')).slice(9, 12), app.received]
  }

  it.each([
    ['GET / HTTP/1.1'],
    ['GET / HTTP/1.1\r\nHost: a\r\nHost: a'],
    ['GET / HTTP/1.1\r\nHost: a\r\nhost: b'],
    ['GET / HTTP/1.1\r\nHost: '],
    ['GET / HTTP/1.1\r\nHost: a b'],
    ['GET / HTTP/1.1\r\nHost: a/b'],
    ['GET / HTTP/1.1\r\nHost: user@a'],
    ['GET / HTTP/1.1\r\nHost: a, b'],
    ['GET / HTTP/1.1\r\nHost: a:99999999'],
    ['GET http://b/ HTTP/1.1\r\nHost: a'],
    ['GET http://a@b/ HTTP/1.1\r\nHost: a'],
    ['GET http://a:81/ HTTP/1.1\r\nHost: a'],
    ['GET https://a:80/ HTTP/1.1\r\nHost: a'],
    ['GET ftp://a/ HTTP/1.1\r\nHost: a'],
    ['OPTIONS * HTTP/1.1\r\nHost: a'],
    ['GET /a#b HTTP/1.1\r\nHost: a'],
    ['GET /\xff HTTP/1.1\r\nHost: a'],
  ])('%j is answered with 400', async (head) => {
    expect(await statusOf(head)).toEqual(['400', []])
  })

  it.each([
    ['GET http://a/b?c HTTP/1.1\r\nHost: a', '/b?c'],
    ['GET HTTP://A:80?c HTTP/1.1\r\nHost: a', '/?c'],
    ['GET http://a HTTP/1.1\r\nHost: a', '/'],
    ['GET //b/c HTTP/1.1\r\nHost: a', '//b/c'],
    ['GET /http://b/ HTTP/1.1\r\nHost: a', '/http://b/'],
    ['GET / HTTP/1.1\r\nHost: [::1]:8080', '/'],
  ])('%j is sent on in origin form', async (head, url) => {
    const [status, [request]] = await statusOf(head)
    expect([status, request?.url]).toEqual(['200', url])
  })

  it('of HTTP/1.0 needs no host', async () => {
    const [status, [request]] = await statusOf('GET /old HTTP/1.0')
    expect([status, request?.headers.host]).toEqual(['200', expect.stringMatching(/^127\.0\.0\.1:\d+$/)])
  })
})
