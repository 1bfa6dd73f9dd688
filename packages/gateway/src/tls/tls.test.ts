import { once } from 'node:events'
import { copyFileSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { type ClientHttp2Session, connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2'
import { request as httpsRequest } from 'node:https'
import type { Duplex } from 'node:stream'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { type Cidr, parseCidr } from '@sluice/core/internal'
import { FakeClock, FakeTimers } from '@sluice/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { CompiledConfig } from '../config/compiled-config.ts'
import {
  configOf,
  openIdentifier,
  RawClient,
  routeOf,
  startGateway,
  startUpstream,
  type TestGatewayOptions,
  turns,
  until,
} from '../gateway.test.support.ts'
import { CERTIFICATES_EVERY_MS } from './certificates.ts'
import { makeCertificate, type TestCertificate, temporaryFolder } from './tls.test.support.ts'

interface SecureOptions extends Partial<TestGatewayOptions> {
  readonly certificates?: readonly (TestCertificate & { names?: readonly string[] })[]
  readonly fields?: Partial<CompiledConfig>
}

async function startSecure({ certificates, fields, ...options }: SecureOptions = {}) {
  const app = await startUpstream()
  const tls = { certificates: certificates ?? [makeCertificate(temporaryFolder(), 'default', ['default.example'])] }
  const config = configOf([routeOf()], { app: [app.url] }, { options: { tls }, ...fields })
  return { app, config, ...(await startGateway({ config, ...options })) }
}

/** Name of the certificate that a client gets that asks for `servername`. */
async function certificateFor(port: number, servername: string | undefined): Promise<string> {
  const socket: TLSSocket = connectTls({
    port,
    host: '127.0.0.1',
    rejectUnauthorized: false,
    ...(servername && { servername }),
  })
  await once(socket, 'secureConnect')
  const { subject } = socket.getPeerCertificate()
  socket.destroy()
  return String(subject.CN)
}

async function session(port: number): Promise<ClientHttp2Session> {
  const client = connectHttp2(`https://127.0.0.1:${port}`, { rejectUnauthorized: false })
  client.on('error', () => undefined)
  onTestFinished(() => client.destroy())
  await once(client, 'connect')
  return client
}

interface Reply {
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly trailers: IncomingHttpHeaders | undefined
}

async function ask(client: ClientHttp2Session, headers: Record<string, string>, body?: string): Promise<Reply> {
  const stream = client.request({ ':path': '/', ...headers }, { endStream: body === undefined })
  if (body !== undefined) stream.end(body)
  let trailers: IncomingHttpHeaders | undefined
  let text = ''
  stream.on('trailers', (fields) => {
    trailers = fields
  })
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  const [answered] = (await once(stream, 'response')) as [IncomingHttpHeaders]
  if (!stream.readableEnded) await once(stream, 'end')
  return { headers: answered, body: text, trailers }
}

describe('certificates', () => {
  it('are chosen by the name that the client asks for', async () => {
    const folder = temporaryFolder()
    const certificates = [
      makeCertificate(folder, 'default', ['default.example']),
      makeCertificate(folder, 'shop', ['shop.example', '*.shop.example']),
      { ...makeCertificate(folder, 'named', ['unused.example']), names: ['API.example'] },
    ]
    const { port } = await startSecure({ certificates })
    expect(await certificateFor(port, 'shop.example')).toBe('shop.example')
    expect(await certificateFor(port, 'EU.shop.example')).toBe('shop.example')
    expect(await certificateFor(port, 'a.eu.shop.example')).toBe('default.example')
    expect(await certificateFor(port, 'api.example')).toBe('unused.example')
    expect(await certificateFor(port, 'unused.example')).toBe('default.example')
    expect(await certificateFor(port, undefined)).toBe('default.example')
  })

  it('are read again when their files change; a bad pair changes nothing and is reported once', async () => {
    const folder = temporaryFolder()
    const first = makeCertificate(folder, 'first', ['first.example'])
    const timers = new FakeTimers(new FakeClock())
    const { port, logged } = await startSecure({ certificates: [first], timers })
    const next = makeCertificate(folder, 'next', ['next.example'])
    const refreshed = async (line: string): Promise<void> => {
      await timers.advance(CERTIFICATES_EVERY_MS)
      await until(() => logged.some((text) => text.includes(line)))
    }
    // The certificate without its key.
    copyFileSync(next.cert, first.cert)
    await refreshed('the previous one stays in use')
    expect(await certificateFor(port, undefined)).toBe('first.example')
    copyFileSync(next.key, first.key)
    await until(() => timers.pending > 0)
    await refreshed('was read again')
    expect(await certificateFor(port, undefined)).toBe('next.example')
    expect(await certificateFor(port, 'next.example')).toBe('next.example')
    writeFileSync(first.cert, 'nonsense')
    await until(() => timers.pending > 0)
    await timers.advance(CERTIFICATES_EVERY_MS)
    await until(() => logged.filter((text) => text.includes('stays in use')).length === 2)
    expect(await certificateFor(port, undefined)).toBe('next.example')
  })

  it('that cannot be used at the start are an error', async () => {
    const folder = temporaryFolder()
    const one = makeCertificate(folder, 'one', ['one.example'])
    const other = makeCertificate(folder, 'other', ['other.example'])
    await expect(startSecure({ certificates: [{ cert: one.cert, key: other.key }] })).rejects.toThrow(/key/)
  })

  it('change with the configuration', async () => {
    const { port, gateway, config } = await startSecure()
    const folder = temporaryFolder()
    const tls = { certificates: [makeCertificate(folder, 'new', ['new.example'])] }
    await gateway.use({ ...config, options: { tls } })
    expect(await certificateFor(port, undefined)).toBe('new.example')
    const other = makeCertificate(folder, 'other', ['other.example'])
    const broken = { certificates: [{ cert: other.cert, key: tls.certificates[0]!.key }] }
    await expect(gateway.use({ ...config, options: { tls: broken } })).rejects.toThrow(/key/)
    expect(await certificateFor(port, undefined)).toBe('new.example')
  })

  it('are not shown to those that speak no TLS', async () => {
    const { port, metrics } = await startSecure()
    const client = new RawClient(port)
    client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    expect(await client.closed()).not.toContain('HTTP/')
    const rejected = metrics.snapshot().families.find(({ name }) => name === 'sluice_gateway_rejected_total')
    expect(rejected?.samples).toContainEqual({ values: ['tls'], value: 1 })
  })
})

describe('TLS that is added or removed while the gateway runs', () => {
  it('is for new connections; open ones end after their next answer', async () => {
    const { port, gateway, config, app } = await startSecure({ fields: { options: {} } })
    const plain = new RawClient(port)
    plain.send('GET /1 HTTP/1.1\r\nHost: a\r\n\r\n')
    await plain.until('ok')
    const tls = { certificates: [makeCertificate(temporaryFolder(), 'added', ['added.example'])] }
    await gateway.use({ ...config, options: { tls } })
    expect(await certificateFor(port, undefined)).toBe('added.example')
    const client = await session(port)
    expect((await ask(client, { ':path': '/2' })).body).toBe('ok')
    plain.send('GET /3 HTTP/1.1\r\nHost: a\r\n\r\n')
    expect(await plain.closed()).toMatch(/200 OK[\s\S]*200 OK[\s\S]*Connection: close/)
    const late = new RawClient(port)
    late.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    expect(await late.closed()).not.toContain('HTTP/')
    const goaway = once(client, 'goaway')
    await gateway.use({ ...config, options: {} })
    await goaway
    const again = new RawClient(port)
    again.send('GET /4 HTTP/1.1\r\nHost: a\r\n\r\n')
    await again.until('ok')
    expect(app.received.map(({ url, headers }) => [url, headers['x-forwarded-proto']])).toEqual([
      ['/1', 'http'],
      ['/2', 'https'],
      ['/3', 'http'],
      ['/4', 'http'],
    ])
  })

  it('does not end requests in flight', async () => {
    const { port, gateway, config, app } = await startSecure()
    const held: ServerResponse[] = []
    app.server.removeAllListeners('request')
    app.server.on('request', (_request, response) => void held.push(response))
    const client = await session(port)
    const overTls = ask(client, {})
    await until(() => held.length === 1)
    await gateway.use({ ...config, options: {} })
    const plain = new RawClient(port)
    plain.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await until(() => held.length === 2)
    await gateway.use(config)
    for (const response of held) response.end('late')
    expect((await overTls).body).toBe('late')
    await plain.until('late')
    await gateway.stop()
    await until(() => gateway.connections === 0)
  })

  it('drops clients that come slowly, as from the start', async () => {
    const { port, gateway, config } = await startSecure({ fields: { options: {} }, bounds: { headersMs: 500 } })
    const tls = { certificates: [makeCertificate(temporaryFolder(), 'added', ['added.example'])] }
    await gateway.use({ ...config, options: { tls } })
    const secure = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
    secure.on('error', () => undefined)
    await once(secure, 'secureConnect')
    secure.write('GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ')
    secure.resume()
    await once(secure, 'close')
    await until(() => gateway.connections === 0)
  })

  it('stays as it is when the rest of a configuration cannot be used', async () => {
    const { port, gateway, config } = await startSecure({ fields: { options: {} } })
    const tls = { certificates: [makeCertificate(temporaryFolder(), 'added', ['added.example'])] }
    const identifier = { ...openIdentifier, start: () => Promise.reject(new Error('no keys')) }
    await expect(gateway.use({ ...config, options: { tls } }, identifier)).rejects.toThrow('no keys')
    const plain = new RawClient(port)
    plain.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await plain.until('ok')
  })
})

describe('requests over TLS', () => {
  it('may be HTTP/1.1', async () => {
    const { port, app } = await startSecure()
    const sent = httpsRequest({
      port,
      host: '127.0.0.1',
      rejectUnauthorized: false,
      path: '/a',
      headers: { host: 'a' },
    })
    sent.end()
    const [response] = await once(sent, 'response')
    response.resume()
    await once(response, 'end')
    expect(response.statusCode).toBe(200)
    expect(app.received[0]!.headers).toMatchObject({
      'x-forwarded-proto': 'https',
      forwarded: 'for=127.0.0.1;host="a";proto=https',
    })
  })

  it('may be HTTP/2, many at once', async () => {
    const { port, app } = await startSecure()
    const client = await session(port)
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, index) => ask(client, { ':path': `/${index}`, cookie: 'a=1', 'x-n': `${index}` })),
    )
    expect(replies.map((reply) => [reply.headers[':status'], reply.body])).toEqual(new Array(20).fill([200, 'ok']))
    expect(app.received).toHaveLength(20)
    const { headers, rawHeaders } = app.received[0]!
    expect(headers).toMatchObject({ host: `127.0.0.1:${port}`, via: '2.0 sluice', cookie: 'a=1' })
    expect(rawHeaders.filter((name) => name.startsWith(':'))).toEqual([])
  })

  it('carry bodies, cookies in several lines become one', async () => {
    const { port, app } = await startSecure()
    const client = await session(port)
    const stream = client.request([':method', 'POST', ':path', '/', 'cookie', 'a=1', 'cookie', 'b=2'] as never)
    stream.end('x'.repeat(100_000))
    await once(stream, 'response')
    stream.resume()
    await once(stream, 'end')
    expect(app.received[0]!.body).toHaveLength(100_000)
    expect(app.received[0]!.headers).toMatchObject({ cookie: 'a=1; b=2', 'transfer-encoding': 'chunked' })
  })

  it('must not name two authorities', async () => {
    const { port, app } = await startSecure()
    const client = await session(port)
    const { headers } = await ask(client, { ':authority': 'a', host: 'b' })
    expect([headers[':status'], app.received]).toEqual([400, []])
  })

  it('over HTTP/2 are denied, and answered when their body is too long', async () => {
    const { port, gateway } = await startSecure({
      ruleSet: { rules: [{ resource: '/*', dimension: 'ip', algorithm: 'fixed-window', limit: 2, window: '1h' }] },
    })
    const client = await session(port)
    const long = client.request({ ':method': 'POST', ':path': '/', 'content-length': '2000000' })
    long.on('error', () => undefined)
    const [early] = (await once(long, 'response')) as [IncomingHttpHeaders]
    expect(early[':status']).toBe(413)
    // The stream ends although the body never comes.
    long.resume()
    await once(long, 'close')
    await until(() => gateway.inFlight === 0)
    expect((await ask(client, {})).headers).toMatchObject({ ':status': 200, 'x-ratelimit-remaining': '0' })
    expect((await ask(client, {})).headers[':status']).toBe(429)
  })

  it('that the upstream breaks off end with an error', async () => {
    const { app, port } = await startSecure()
    app.server.removeAllListeners('request')
    app.server.on('request', (_request, response) => response.write('half', () => response.socket!.destroy()))
    const client = await session(port)
    const stream = client.request({ ':path': '/' })
    stream.resume()
    const [error] = await once(stream, 'error')
    expect(error.message).toMatch(/INTERNAL_ERROR/)
  })

  it('that the client resets are given up at the upstream', async () => {
    const { app, port, gateway, upstreams } = await startSecure()
    let isClosed = false
    app.server.removeAllListeners('request')
    app.server.on('request', (request) => {
      request.socket.on('close', () => {
        isClosed = true
      })
    })
    const client = await session(port)
    const stream = client.request({ ':path': '/' })
    stream.on('error', () => undefined)
    await until(() => upstreams.get('app')!.asked.length === 1)
    await turns(20)
    stream.close(8)
    await until(() => isClosed && gateway.inFlight === 0)
  })

  it('that are reset by the hundred leave nothing behind', async () => {
    const { port, gateway, upstreams } = await startSecure()
    const client = await session(port)
    for (let index = 0; index < 500; index++) {
      const stream = client.request({ ':path': '/' })
      stream.on('error', () => undefined)
      stream.close(8)
      if (index % 50 === 0) await turns(5)
    }
    expect((await ask(await session(port), {})).body).toBe('ok')
    await until(() => gateway.inFlight === 0)
    const { asked, outcomes } = upstreams.get('app')!
    expect(outcomes).toHaveLength(asked.length)
  })

  it('are no tunnels', async () => {
    const { port } = await startSecure()
    const client = await session(port)
    const stream = client.request({ ':method': 'CONNECT', ':authority': 'internal:22' })
    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders]
    expect(headers[':status']).toBe(405)
  })

  it('that come slowly are dropped in time, in the handshake and in the headers', async () => {
    const { port, gateway } = await startSecure({ bounds: { headersMs: 500 } })
    const silent = new RawClient(port)
    silent.send(Buffer.from([0x16, 0x03, 0x01]))
    const secure = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
    secure.on('error', () => undefined)
    await once(secure, 'secureConnect')
    secure.write('GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ')
    secure.resume()
    await Promise.all([silent.closed(), once(secure, 'close')])
    await until(() => gateway.connections === 0)
  })

  it('may open a WebSocket', async () => {
    const { app, port } = await startSecure()
    app.server.on('upgrade', (_request, socket: Duplex) => {
      socket.on('error', () => undefined)
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
      socket.on('data', (chunk: Buffer) => socket.write(chunk))
    })
    const secure = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
    onTestFinished(() => void secure.destroy())
    secure.on('error', () => undefined)
    let text = ''
    secure.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk
    })
    secure.write(
      'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n',
    )
    await until(() => text.includes('\r\n\r\n'))
    expect(text).toMatch(/^HTTP\/1\.1 101 /)
    secure.write(Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69]))
    await until(() => text.includes('hi'))
  })

  it('know the client behind a proxy', async () => {
    const { app, port } = await startSecure({ fields: { proxyProtocolFrom: [parseCidr('127.0.0.0/8') as Cidr] } })
    const raw = new RawClient(port)
    await once(raw.socket, 'connect')
    raw.socket.removeAllListeners('data')
    raw.send('PROXY TCP4 192.0.2.7 10.0.0.1 8080 443\r\n')
    const secure = connectTls({ socket: raw.socket, rejectUnauthorized: false })
    await once(secure, 'secureConnect')
    secure.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    secure.resume()
    await once(secure, 'end')
    expect(app.received[0]!.headers['x-forwarded-for']).toBe('192.0.2.7')
  })

  it('end before a session does when the gateway drains', async () => {
    const { app, port, gateway } = await startSecure()
    let answer: (() => void) | undefined
    app.server.removeAllListeners('request')
    app.server.on('request', (_request, response) => {
      answer = () => response.end('late')
    })
    const client = await session(port)
    const late = ask(client, {})
    await until(() => answer !== undefined)
    const goaway = once(client, 'goaway')
    const draining = gateway.drain(1)
    await goaway
    answer!()
    expect((await late).body).toBe('late')
    await draining
  })
})
