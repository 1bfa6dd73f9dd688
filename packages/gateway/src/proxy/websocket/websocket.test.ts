import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { createServer } from 'node:http2'
import type { Server } from 'node:net'
import type { Duplex } from 'node:stream'
import { memoryStore } from '@sluice/core'
import { PolicyEngine } from '@sluice/core/policy'
import { FakeClock, FakeTimers } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import type { Route } from '../../config/compiled-config.ts'
import {
  configOf,
  listen,
  RawClient,
  routeOf,
  startGateway,
  startUpstream,
  type TestGateway,
  type TestGatewayOptions,
  turns,
  until,
} from '../../gateway.test.support.ts'
import { createUpstream } from '../../upstreams/create-upstream.ts'

const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='
const HANDSHAKE = [
  'GET /chat?x=1 HTTP/1.1',
  'Host: a',
  'Connection: keep-alive, Upgrade',
  'Upgrade: websocket',
  `Sec-WebSocket-Key: ${KEY}`,
  'Sec-WebSocket-Version: 13',
  '',
  '',
].join('\r\n')

/** A masked text frame of a client; the mask is 0. */
function text(content: string): Buffer {
  return Buffer.concat([Buffer.from([0x81, 0x80 | content.length, 0, 0, 0, 0]), Buffer.from(content)])
}

function accept(request: IncomingMessage): string {
  const digest = createHash('sha1').update(
    `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`,
  )
  const lines = [
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${digest.digest('base64')}`,
    'X-App: 1',
  ]
  return ['HTTP/1.1 101 Switching Protocols', ...lines, '', ''].join('\r\n')
}

interface Sockets extends TestGateway {
  readonly opened: { request: IncomingMessage; socket: Duplex; received: () => Buffer; isClosed: () => boolean }[]
}

/** A gateway before an upstream that accepts WebSockets; `first` comes together with its 101. */
async function sockets(
  route: Partial<Route> = {},
  options: Partial<TestGatewayOptions> = {},
  first = Buffer.alloc(0),
): Promise<Sockets> {
  const app = await startUpstream()
  const opened: Sockets['opened'] = []
  app.server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const chunks = [head]
    let isClosed = false
    socket.on('data', (chunk: Buffer) => void chunks.push(chunk))
    socket.on('error', () => undefined)
    socket.on('end', () => {
      isClosed = true
      socket.end()
    })
    opened.push({ request, socket, received: () => Buffer.concat(chunks), isClosed: () => isClosed })
    socket.write(Buffer.concat([Buffer.from(accept(request)), first]))
  })
  const started = await startGateway({ config: configOf([routeOf(route)], { app: [app.url] }), ...options })
  return { ...started, opened }
}

async function open(port: number): Promise<RawClient> {
  const client = new RawClient(port)
  client.send(HANDSHAKE)
  await client.until('\r\n\r\n')
  return client
}

/** Rules that count what `ann` sends over all her connections. */
function countedBy(resource: string, limit: number): Partial<TestGatewayOptions> {
  const rule = { resource, dimension: 'user', algorithm: 'fixed-window', limit, window: '1h' } as const
  return { ruleSet: { rules: [rule] } }
}

async function openAs(port: number, user: string): Promise<RawClient> {
  const client = new RawClient(port)
  client.send(HANDSHAKE.replace('\r\n\r\n', `\r\nX-User: ${user}\r\n\r\n`))
  await client.until('\r\n\r\n')
  return client
}

const COUNTED = { rates: undefined, messageResource: undefined, byteResource: undefined }

/** Code of the close frame after a handshake. */
function closeCodeOf(received: string): number {
  const frame = Buffer.from(received.slice(received.indexOf('\r\n\r\n') + 4), 'latin1')
  return frame[0] === 0x88 ? frame.readUInt16BE(2) : 0
}

describe('messages that rules count', () => {
  it('are those of a caller over all connections; others are not affected', async () => {
    const webSocket = { ...COUNTED, messageResource: '/chat/messages' }
    const { port, opened, gateway } = await sockets({ webSocket }, countedBy('/chat/messages', 5))
    const clients = [await openAs(port, 'ann'), await openAs(port, 'ann')]
    const other = await openAs(port, 'bob')
    for (const client of clients) client.send(Buffer.concat([text('a'), text('b')]))
    await until(() => opened.filter((one) => one.received().length === 14).length === 2)
    clients[0]!.send(text('c'))
    await until(() => opened.some((one) => one.received().length === 21))
    clients[1]!.send(text('d'))
    expect((await clients[1]!.closed()).slice(-'too many messages'.length)).toBe('too many messages')
    other.send(text('e'))
    await until(() => opened[2]!.received().length === 7)
    expect(clients[0]!.isClosed).toBe(false)
    expect(Buffer.concat(opened.map((one) => one.received())).includes('d')).toBe(false)
    await until(() => gateway.inFlight === 2)
  })

  it('may be bytes, and cost nothing under other rules', async () => {
    const webSocket = { ...COUNTED, byteResource: '/chat/bytes' }
    const { port, opened } = await sockets({ webSocket }, countedBy('/chat/bytes', 20))
    const client = await openAs(port, 'ann')
    client.send(text('0123456789'))
    await until(() => opened[0]!.received().length === 16)
    client.send(text('01'))
    expect(await client.closed()).toContain('too many messages')
    expect(opened[0]!.received().length).toBe(16)
  })

  it('wait for a remote store, in order, and one at a time', async () => {
    const engine = new PolicyEngine({ store: memoryStore(), ...countedBy('/chat/messages', 1000) } as never)
    const waiting: (() => void)[] = []
    const asked: number[] = []
    const remote = {
      check: (request: { resource: string; cost?: number }) => {
        const decision = engine.check(request)
        if (request.resource !== '/chat/messages') return decision
        asked.push(request.cost ?? 1)
        return new Promise((resolve) => void waiting.push(() => resolve(decision)))
      },
    }
    const webSocket = { ...COUNTED, messageResource: '/chat/messages' }
    const { port, opened } = await sockets({ webSocket }, { engine: remote as never })
    const client = await openAs(port, 'ann')
    client.send(text('first'))
    await until(() => waiting.length === 1)
    client.send(Buffer.concat([text('second'), text('third')]))
    // What was sent before another connection was opened has arrived when that one is open.
    await openAs(port, 'bob')
    await turns(20)
    expect([asked, opened[0]!.received().length]).toEqual([[1], 0])
    waiting[0]!()
    await until(() => waiting.length === 2)
    waiting[1]!()
    await until(() => opened[0]!.received().includes('third'))
    expect(asked).toEqual([1, 2])
    expect(opened[0]!.received()).toEqual(Buffer.concat([text('first'), text('second'), text('third')]))
  })

  it.each([
    [
      'at once',
      () => {
        throw new Error('no store')
      },
    ],
    ['later', () => Promise.reject(new Error('no store'))],
  ])('end the connection with 1011 if they cannot be counted: %s', async (_when, check) => {
    const engine = new PolicyEngine({ store: memoryStore(), ruleSet: { rules: [] } })
    const failing = {
      check: (request: { resource: string }) =>
        request.resource === '/chat/messages' ? check() : engine.check(request),
    }
    const webSocket = { ...COUNTED, messageResource: '/chat/messages' }
    const { port, opened } = await sockets({ webSocket }, { engine: failing as never })
    const client = await openAs(port, 'ann')
    client.send(text('lost'))
    expect(await client.closed()).toContain('\x03\xf3limits could not be checked')
    expect(opened[0]!.received().length).toBe(0)
  })
})

describe('a WebSocket', () => {
  it('is opened, and bytes pass both ways', async () => {
    const { port, opened, gateway, upstreams } = await sockets()
    const client = await open(port)
    expect(client.text).toMatch(/^HTTP\/1\.1 101 /)
    expect(client.text).toContain('Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=')
    expect(client.text).toContain('X-Request-Id: id-1')
    const [app] = opened
    expect(app!.request.headers).toMatchObject({ upgrade: 'websocket', host: 'a', 'x-forwarded-for': '127.0.0.1' })
    client.send(text('hello'))
    await until(() => app!.received().includes('hello'))
    app!.socket.write(Buffer.from([0x81, 3, 0x61, 0x62, 0x63]))
    await client.until('abc')
    expect(gateway.inFlight).toBe(1)
    client.socket.end()
    await until(() => app!.isClosed())
    await until(() => gateway.inFlight === 0)
    expect(upstreams.get('app')!.outcomes).toMatchObject([{ kind: 'response', status: 101 }])
  })

  it('loses nothing that came together with the handshake, in either direction', async () => {
    const { port, opened } = await sockets({}, {}, Buffer.from([0x81, 5, 0x65, 0x61, 0x72, 0x6c, 0x79]))
    const client = new RawClient(port)
    client.send(Buffer.concat([Buffer.from(HANDSHAKE), text('at once')]))
    await client.until('early')
    await until(() => opened[0]!.received().includes('at once'))
    expect(opened[0]!.received()).toEqual(text('at once'))
  })

  it('that the upstream does not want gets its response, and the connection is closed', async () => {
    const app = await startUpstream()
    app.server.on('upgrade', (_request: IncomingMessage, socket: Duplex) => {
      socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nX-Why: not you\r\n\r\nno')
    })
    const { port, gateway } = await startGateway({ config: configOf([routeOf()], { app: [app.url] }) })
    const client = new RawClient(port)
    client.send(HANDSHAKE)
    const answer = await client.closed()
    expect(answer).toMatch(/^HTTP\/1\.1 403 [\s\S]*X-Why: not you[\s\S]*Connection: close[\s\S]*\r\n\r\nno$/)
    await until(() => gateway.inFlight === 0)
  })

  it('is denied by the limits like any other request', async () => {
    const { port, opened } = await sockets(
      {},
      { ruleSet: { rules: [{ resource: '/*', dimension: 'ip', algorithm: 'fixed-window', limit: 1, window: '1h' }] } },
    )
    const first = await open(port)
    expect(first.text).toContain('X-RateLimit-Remaining: 0')
    const second = new RawClient(port)
    second.send(HANDSHAKE)
    expect(await second.closed()).toMatch(/^HTTP\/1\.1 429 /)
    expect(opened).toHaveLength(1)
  })

  it.each([
    ['h2c', 'Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA'],
    ['without a key', 'Upgrade: websocket'],
    ['with a body', `Upgrade: websocket\r\nSec-WebSocket-Key: ${KEY}\r\nContent-Length: 3`],
    ['several', `Upgrade: websocket, h2c\r\nSec-WebSocket-Key: ${KEY}`],
  ])('is nothing else: an upgrade %s is an ordinary request', async (_title, lines) => {
    const app = await startUpstream()
    let upgrades = 0
    app.server.on('upgrade', () => upgrades++)
    const { port } = await startGateway({ config: configOf([routeOf()], { app: [app.url] }) })
    const client = new RawClient(port)
    client.send(`GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n${lines}\r\n\r\nabc`)
    await client.until('\r\n\r\nok')
    expect([upgrades, app.received[0]!.headers.upgrade]).toEqual([0, undefined])
  })

  it('is not opened over HTTP/2, and leaves nothing in flight', async () => {
    const server = createServer({ settings: { enableConnectProtocol: true } })
    let streams = 0
    server.on('stream', (stream) => {
      streams++
      stream.on('error', () => undefined)
      stream.respond({ ':status': 200 }, { endStream: stream.endAfterHeaders })
    })
    const url = `http://127.0.0.1:${(await listen(server as unknown as Server)).port}`
    const upstreams = new Map([['app', { instances: [{ url }], protocol: 'http2' as const }]])
    const { port, gateway } = await startGateway({
      config: { ...configOf([routeOf()], {}), upstreams },
      createUpstream: (name, config) => createUpstream(name, config),
    })
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(200)
    const client = new RawClient(port)
    client.send(HANDSHAKE)
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 502 [\s\S]*opens no WebSockets/)
    expect([streams, gateway.upstreams.get('app')!.stats().instances[0]!.inFlight]).toEqual([1, 0])
  })

  it('is no tunnel: CONNECT is answered with 405', async () => {
    const { port } = await sockets()
    const client = new RawClient(port)
    client.send('CONNECT internal:22 HTTP/1.1\r\nHost: internal:22\r\n\r\n')
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 405 /)
  })
})

describe('the slow side of a WebSocket', () => {
  /** More than the buffers of the system and of the gateway hold together. */
  const FRAMES = 40

  /** A frame of 1 MB with a mask of 0, or without a mask. */
  function largeFrame(isMasked: boolean): Buffer {
    const head = Buffer.from([0x82, (isMasked ? 0x80 : 0) | 127, 0, 0, 0, 0, 0, 0, 0, 0])
    head.writeUInt32BE(1_000_000, 6)
    return Buffer.concat([head, Buffer.alloc(isMasked ? 4 : 0), Buffer.alloc(1_000_000)])
  }

  it('may be the upstream: the client waits for it, and nothing is lost', async () => {
    const { port, opened } = await sockets()
    const client = await open(port)
    const { socket } = opened[0]!
    let bytes = 0
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length
    })
    socket.pause()
    const frame = largeFrame(true)
    for (let sent = 0; sent < FRAMES; sent++) client.send(frame)
    await turns(2000)
    expect(client.socket.writableLength).toBeGreaterThan(frame.length)
    socket.resume()
    await until(() => bytes === FRAMES * frame.length)
  })

  it('may be the client: the upstream waits for it, and nothing is lost', async () => {
    const { port, opened } = await sockets()
    const client = await open(port)
    const { socket } = opened[0]!
    const before = client.text.length
    client.socket.pause()
    const frame = largeFrame(false)
    for (let sent = 0; sent < FRAMES; sent++) socket.write(frame)
    await turns(2000)
    expect(socket.writableLength).toBeGreaterThan(frame.length)
    client.socket.resume()
    await until(() => client.text.length === before + FRAMES * frame.length)
  })
})

describe('limits of a WebSocket', () => {
  const webSocket = { ...COUNTED, rates: { messagesPerSecond: 3, bytesPerSecond: 1000, burstSeconds: 1 } }

  it('close it with 1008 when too many messages come', async () => {
    const { port, opened, metrics } = await sockets({ webSocket })
    const client = await open(port)
    client.send(Buffer.concat([text('1'), text('2'), text('3')]))
    await until(() => opened[0]!.received().includes('3'))
    client.send(text('4'))
    expect(Buffer.from(await client.closed(), 'latin1').includes(Buffer.from([0x88, 19, 0x03, 0xf0]))).toBe(true)
    await until(() => opened[0]!.isClosed())
    expect(opened[0]!.received().includes('4')).toBe(false)
    const denied = metrics.snapshot().families.find(({ name }) => name === 'sluice_gateway_denied_total')
    expect(denied?.samples).toMatchObject([{ value: 1 }])
  })

  it('close it when too many bytes come', async () => {
    const { port } = await sockets({ webSocket })
    const client = await open(port)
    const long = Buffer.concat([Buffer.from([0x82, 0xfe, 0x04, 0x00, 0, 0, 0, 0]), Buffer.alloc(1024)])
    client.send(long)
    expect(Buffer.from(await client.closed(), 'latin1').includes(Buffer.from([0x03, 0xf0]))).toBe(true)
  })

  it('close it with 1002 when it is no WebSocket', async () => {
    const { port } = await sockets({ webSocket })
    const client = await open(port)
    client.send('GET /admin HTTP/1.1\r\n\r\n')
    expect(Buffer.from(await client.closed(), 'latin1').includes(Buffer.from([0x03, 0xea]))).toBe(true)
  })

  it('complete a frame of the upstream before the close frame', async () => {
    const { port, opened } = await sockets({ webSocket })
    const client = await open(port)
    const { socket } = opened[0]!
    socket.write(Buffer.from([0x81, 4, 0x61, 0x62]))
    await client.until('ab')
    client.send(Buffer.concat([text('1'), text('2'), text('3'), text('4')]))
    await turns(20)
    socket.write(Buffer.from([0x63, 0x64, 0x81, 1, 0x65]))
    const bytes = Buffer.from((await client.closed()).split('\r\n\r\n')[1]!, 'latin1')
    expect([...bytes.subarray(0, 10)]).toEqual([0x81, 4, 0x61, 0x62, 0x63, 0x64, 0x88, 19, 0x03, 0xf0])
  })
})

describe('the end of a WebSocket', () => {
  it('comes when nothing moves for the idle time', async () => {
    const clock = new FakeClock()
    const timers = new FakeTimers(clock)
    const timeouts = { ...routeOf().timeouts, idleMs: 5000 }
    const { port, opened, gateway } = await sockets(
      { timeouts },
      { timers, monotonicMs: () => clock.nowMicros() / 1000 },
    )
    const client = await open(port)
    await timers.advance(4000)
    client.send(text('here'))
    await until(() => opened[0]!.received().includes('here'))
    await timers.advance(4500)
    expect(client.isClosed).toBe(false)
    await timers.advance(1500)
    await client.closed()
    await until(() => opened[0]!.isClosed() && gateway.inFlight === 0)
  })

  it('comes with 1001 when the time limit of its route is over, whatever moves', async () => {
    const clock = new FakeClock()
    const timers = new FakeTimers(clock)
    const timeouts = { ...routeOf().timeouts, totalMs: 4000 }
    const { port, opened, gateway } = await sockets(
      { timeouts },
      { timers, monotonicMs: () => clock.nowMicros() / 1000 },
    )
    const client = await open(port)
    await timers.advance(3900)
    client.send(text('here'))
    await until(() => opened[0]!.received().includes('here'))
    expect(client.isClosed).toBe(false)
    await timers.advance(400)
    expect(closeCodeOf(await client.closed())).toBe(1001)
    await until(() => opened[0]!.isClosed() && gateway.inFlight === 0)
  })

  it('comes with 1001 after a handshake that was under way when the gateway stopped', async () => {
    const app = await startUpstream()
    let agree: (() => void) | undefined
    app.server.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
      socket.on('error', () => undefined)
      agree = () => void socket.write(accept(request))
    })
    const { port, gateway } = await startGateway({ config: configOf([routeOf()], { app: [app.url] }) })
    const client = new RawClient(port)
    client.send(HANDSHAKE)
    await until(() => agree !== undefined)
    const stopped = gateway.stop()
    agree!()
    await stopped
    expect(closeCodeOf(await client.closed())).toBe(1001)
  })

  it('does not come while the gateway drains, and further ones are opened', async () => {
    const { port, gateway, opened } = await sockets()
    const before = await open(port)
    const drained = gateway.drain(1)
    const during = await open(port)
    for (const [index, client] of [before, during].entries()) {
      client.send(text(`to ${index}`))
      await until(() => opened[index]!.received().includes(`to ${index}`))
    }
    expect(during.text).toMatch(/^HTTP\/1\.1 101 /)
    await drained
    await gateway.stop()
    expect([closeCodeOf(await before.closed()), closeCodeOf(await during.closed())]).toEqual([1001, 1001])
  })

  it('is closed with 1001 when the gateway stops', async () => {
    const { port, gateway } = await sockets()
    const client = await open(port)
    await gateway.stop()
    expect(Buffer.from(await client.closed(), 'latin1').includes(Buffer.from([0x03, 0xe9]))).toBe(true)
  })

  it('of the upstream is the end of the client', async () => {
    const { port, opened } = await sockets()
    const client = await open(port)
    opened[0]!.socket.destroy()
    await client.closed()
  })
})
