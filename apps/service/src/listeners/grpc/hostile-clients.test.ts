// Clients that send what is no call, or no message, or nothing: each gets a clean error, and the next call an answer.
import type { ClientHttp2Session, OutgoingHttpHeaders } from 'node:http2'
import { connect, constants } from 'node:http2'
import { connect as connectTcp } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RunningService } from '../../service.fixture.ts'
import { MAX_MESSAGE_BYTES, MAX_MESSAGE_FRAMES, MessageMemory, MessageReader } from './grpc-call.ts'
import type { GrpcClient } from './grpc-client.test.support.ts'
import { shop, startShop } from './grpc-node.test.support.ts'
import { encodedMessage, GrpcError } from './grpc-status.ts'
import { peerBytes } from './protobuf-peer.test.support.ts'

const CALL: OutgoingHttpHeaders = {
  ':method': 'POST',
  ':path': '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
  'content-type': 'application/grpc',
  te: 'trailers',
}

/** How a stream ended. */
interface Ended {
  readonly http: unknown
  readonly status: unknown
  readonly message: unknown
  readonly reset: number | undefined
}

function framed(message: Buffer, flag = 0): Buffer {
  const prefix = Buffer.alloc(5)
  prefix[0] = flag
  prefix.writeUInt32BE(message.length, 1)
  return Buffer.concat([prefix, message])
}

const REQUEST = framed(peerBytes('RateLimitRequest', shop('user=staff')))

function sessionTo({ grpcPort }: RunningService): ClientHttp2Session {
  const session = connect(`http://127.0.0.1:${grpcPort}`)
  session.on('error', () => undefined)
  onTestFinished(() => session.destroy())
  return session
}

/** Sends headers and parts of a body, and ends the stream. */
function send(session: ClientHttp2Session, headers: OutgoingHttpHeaders, parts: readonly Buffer[]): Promise<Ended> {
  return new Promise((resolve) => {
    const stream = session.request({ ...CALL, ...headers })
    let http: unknown
    let trailers: Readonly<Record<string, unknown>> = {}
    stream.on('response', (answered) => {
      http = answered[':status']
      if ('grpc-status' in answered) trailers = answered
    })
    stream.on('trailers', (sent) => {
      trailers = sent
    })
    stream.on('error', () => undefined)
    stream.on('close', () =>
      resolve({ http, status: trailers['grpc-status'], message: trailers['grpc-message'], reset: stream.rstCode }),
    )
    stream.resume()
    for (const part of parts) stream.write(part)
    stream.end()
  })
}

async function expectAnswers(node: RunningService, client: GrpcClient): Promise<void> {
  expect((await client.ask(shop('user=staff'))).overallCode).toBe('OK')
  expect((await fetch(`${node.origin}/livez`)).status).toBe(200)
  expect(node.errors).toEqual([])
}

describe('a stream that is no call', () => {
  it.each<[string, OutgoingHttpHeaders, Partial<Ended>]>([
    ['GET', { ':method': 'GET' }, { http: 405 }],
    ['JSON', { 'content-type': 'application/json' }, { http: 415 }],
    ['gRPC-Web', { 'content-type': 'application/grpc-web+proto' }, { http: 415 }],
    ['an unknown method', { ':path': '/a.B/C' }, { http: 200, status: '12' }],
    ['an unknown compression', { 'grpc-encoding': 'gzip' }, { http: 200, status: '12' }],
    ['a malformed timeout', { 'grpc-timeout': '1x' }, { http: 200, status: '3' }],
    ['a subtype and parameters', { 'content-type': 'application/grpc+proto;charset=utf-8' }, { status: '0' }],
    ['identity', { 'grpc-encoding': 'identity', 'grpc-timeout': '20m' }, { status: '0' }],
  ])('%s', async (_, headers, ended) => {
    const { node, client } = await startShop()
    expect(await send(sessionTo(node), headers, [REQUEST])).toMatchObject(ended)
    await expectAnswers(node, client)
  })
})

describe('a body that is no message', () => {
  const zeros = Buffer.alloc(MAX_MESSAGE_BYTES + 6)
  it.each<[string, readonly Buffer[], string]>([
    ['nothing', [], '12'],
    ['a cut prefix', [Buffer.from([0, 0])], '13'],
    ['a cut message', [REQUEST.subarray(0, -1)], '13'],
    ['two messages', [REQUEST, REQUEST], '12'],
    ['a compressed message', [framed(Buffer.from('x'), 1)], '12'],
    ['an unknown flag', [framed(Buffer.from('x'), 7)], '13'],
    ['a length of 4 GB', [Buffer.from([0, 255, 255, 255, 255, 1])], '8'],
    ['more than the largest message', [zeros], '8'],
    ['no protobuf', [framed(Buffer.from([0xff, 0xff]))], '13'],
    ['no request', [framed(Buffer.from(''))], '3'],
    ['a message in many frames', [...REQUEST].map((byte) => Buffer.from([byte])), '0'],
  ])('%s', async (_, parts, status) => {
    const { node, client } = await startShop()
    const ended = await send(sessionTo(node), {}, parts)
    expect(ended).toMatchObject({ http: 200, status })
    if (status !== '0') expect(decodeURIComponent(String(ended.message))).toMatch(/expected/i)
    await expectAnswers(node, client)
  })

  it('is read up to a number of frames', () => {
    const reader = new MessageReader()
    const byte = Buffer.from([0])
    for (let frame = 0; frame < MAX_MESSAGE_FRAMES; frame++) reader.add(byte)
    expect(() => reader.add(byte)).toThrow(GrpcError)
  })

  it('holds no more memory than all calls together may', () => {
    const memory = new MessageMemory(100)
    memory.take(60)
    expect(() => memory.take(41)).toThrow(GrpcError)
    memory.take(40)
    memory.release(60)
    memory.take(60)
  })

  it('is answered with a status, whatever its bytes are (property)', async () => {
    const { node, client } = await startShop()
    const session = sessionTo(node)
    const bytes = fc.uint8Array({ maxLength: 200 })
    const body = fc.oneof(
      bytes.map((message) => [framed(Buffer.from(message))]),
      fc.array(
        bytes.map((part) => Buffer.from(part)),
        { maxLength: 5 },
      ),
      fc.tuple(fc.nat(REQUEST.length - 1), fc.nat(255)).map(([at, to]) => {
        const changed = Buffer.from(REQUEST)
        changed[at] = to
        return [changed]
      }),
    )
    const text = fc.string({ maxLength: 20 }).map((value) => value.replaceAll(/[^\x21-\x7e]/g, ''))
    const headers = fc.record(
      { 'grpc-timeout': text, 'grpc-encoding': text, authorization: text },
      { requiredKeys: [] },
    )
    await fc.assert(
      fc.asyncProperty(headers, body, async (sent, parts) => {
        const { http, status } = await send(session, sent, parts)
        expect([http, String(status)]).toEqual([200, expect.stringMatching(/^(?:0|3|8|12|13)$/)])
      }),
    )
    expect(session.destroyed).toBe(false)
    await expectAnswers(node, client)
  })

  it('does not come: the call ends after some seconds', async () => {
    const { node, client } = await startShop()
    const session = sessionTo(node)
    const stream = session.request(CALL)
    const answered = new Promise<Readonly<Record<string, unknown>>>((resolve) => stream.on('response', resolve))
    stream.on('error', () => undefined)
    stream.write(Buffer.from([0]))
    // Streams of a connection are begun in their order.
    expect((await send(session, {}, [REQUEST])).status).toBe('0')
    node.advance(11_000_000)
    await node.endWaits(1000)
    expect((await answered)['grpc-status']).toBe('4')
    await expectAnswers(node, client)
  })
})

describe('a connection', () => {
  it('keeps open when the client resets thousands of streams, as Envoy does when a store is slow', async () => {
    const { node, client } = await startShop()
    const session = sessionTo(node)
    for (let round = 0; round < 50; round++) {
      const streams = Array.from({ length: 100 }, () => session.request(CALL))
      const closed = streams.map((stream) => new Promise((resolve) => stream.on('error', resolve).on('close', resolve)))
      for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL)
      await Promise.all(closed)
    }
    expect(await send(session, {}, [REQUEST])).toMatchObject({ http: 200, status: '0' })
    await expectAnswers(node, client)
  })

  it.each<[string, Buffer]>([
    ['HTTP/1.1', Buffer.from('POST / HTTP/1.1\r\nHost: x\r\n\r\n')],
    ['bytes without meaning', Buffer.alloc(100, 0xff)],
    ['a frame that is too long', Buffer.concat([Buffer.from(constants.HTTP2_METHOD_GET), Buffer.alloc(20, 0xee)])],
    [
      'a frame with an invalid stream',
      Buffer.concat([
        Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
        Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]),
        Buffer.from([0, 0, 4, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]),
      ]),
    ],
  ])('with %s is closed', async (_, bytes) => {
    const { node, client } = await startShop()
    const socket = connectTcp(node.grpcPort, '127.0.0.1')
    const closed = new Promise((resolve) => socket.on('error', () => undefined).on('close', resolve))
    socket.resume()
    socket.write(bytes)
    await closed
    await expectAnswers(node, client)
  })

  it('with any frames after its preface leaves the service answering, also half closed (property)', async () => {
    const { node, client } = await startShop()
    const frame = fc
      .record({
        type: fc.nat(12),
        flags: fc.nat(255),
        stream: fc.oneof(fc.nat(9), fc.nat(2 ** 31 - 1)),
        payload: fc.uint8Array({ maxLength: 60 }),
        missing: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.nat(20_000)),
      })
      .map(({ type, flags, stream, payload, missing }) => {
        const head = Buffer.alloc(9)
        head.writeUIntBE(payload.length + missing, 0, 3)
        head.writeUInt8(type, 3)
        head.writeUInt8(flags, 4)
        head.writeUInt32BE(stream, 5)
        return Buffer.concat([head, payload])
      })
    const session = sessionTo(node)
    await fc.assert(
      fc.asyncProperty(fc.array(frame, { maxLength: 12 }), fc.boolean(), async (frames, isHalfClosed) => {
        const socket = connectTcp({ port: node.grpcPort, host: '127.0.0.1', allowHalfOpen: true })
        const heard = new Promise((resolve) => socket.on('error', resolve).once('data', resolve).once('close', resolve))
        const noSettings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])
        socket.write(Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), noSettings, ...frames]))
        if (isHalfClosed) socket.end()
        await heard
        expect((await send(session, {}, [REQUEST])).status).toBe('0')
        socket.destroy()
      }),
      { numRuns: 200 },
    )
    expect(session.destroyed).toBe(false)
    await expectAnswers(node, client)
  })

  it('that says nothing, or is half closed, is closed in time', async () => {
    const { node, client } = await startShop()
    const silent = connectTcp(node.grpcPort, '127.0.0.1')
    const half = connectTcp({ port: node.grpcPort, host: '127.0.0.1', allowHalfOpen: true })
    const closed = [silent, half].map(
      (socket) =>
        new Promise((resolve) =>
          socket
            .on('error', () => undefined)
            .on('close', resolve)
            .resume(),
        ),
    )
    half.on('end', () => half.end())
    half.end('PRI * HT')
    await expect.poll(() => node.service.ports.grpc).toBe(node.grpcPort)
    await new Promise((resolve) => silent.once('data', resolve))
    node.advance(11_000_000)
    await node.endWaits(1000)
    await Promise.all(closed)
    await expectAnswers(node, client)
  })
})

it('writes messages as gRPC has them: percent-encoded unless they are printable ASCII', () => {
  expect(encodedMessage('100% of "a"\nü\ud800')).toBe('100%25 of "a"%0A%C3%BC%EF%BF%BD')
  expect(encodedMessage(PRINTABLE)).toBe(PRINTABLE.replace('%', '%25'))
})

const PRINTABLE = String.fromCharCode(...Array.from({ length: 95 }, (_, index) => 32 + index))
