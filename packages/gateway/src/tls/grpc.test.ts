import { once } from 'node:events'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Server } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { configOf, listen, routeOf, startGateway } from '../gateway.test.support.ts'
import { createUpstream } from '../upstreams/create-upstream.ts'
import { makeCertificate, temporaryFolder } from './tls.test.support.ts'

type Call = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void

/** A gateway with TLS before a gRPC server that speaks HTTP/2 without TLS. */
async function grpcGateway(call: Call): Promise<ClientHttp2Session> {
  const server = createServer()
  server.on('stream', (stream, headers) => {
    stream.on('error', () => undefined)
    call(stream, headers)
  })
  const { port } = await listen(server as unknown as Server)
  const url = `http://127.0.0.1:${port}`
  const tls = { certificates: [makeCertificate(temporaryFolder(), 'grpc', ['grpc.example'])] }
  const upstreams = new Map([['app', { instances: [{ url }], protocol: 'http2' as const }]])
  const config = { ...configOf([routeOf()], {}, { options: { tls } }), upstreams }
  const started = await startGateway({ config, createUpstream: (name, upstream) => createUpstream(name, upstream) })
  const client = connect(`https://127.0.0.1:${started.port}`, { rejectUnauthorized: false })
  client.on('error', () => undefined)
  onTestFinished(() => client.destroy())
  await once(client, 'connect')
  return client
}

function startCall(client: ClientHttp2Session): ClientHttp2Stream {
  return client.request({
    ':method': 'POST',
    ':path': '/pkg.Service/Method',
    'content-type': 'application/grpc',
    te: 'trailers',
    'grpc-timeout': '1S',
  })
}

describe('gRPC', () => {
  it('passes through, with its trailers', async () => {
    let seen: IncomingHttpHeaders | undefined
    const client = await grpcGateway((stream, headers) => {
      seen = headers
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0', 'grpc-message': 'fine' }))
      stream.on('data', (chunk: Buffer) => stream.write(chunk))
      stream.on('end', () => stream.end())
    })
    const call = startCall(client)
    const trailers = once(call, 'trailers') as Promise<[IncomingHttpHeaders]>
    const chunks: Buffer[] = []
    call.on('data', (chunk: Buffer) => void chunks.push(chunk))
    // Both directions at once: each message comes back before the next is sent.
    for (const text of ['one', 'two', 'three']) {
      call.write(text)
      await once(call, 'data')
    }
    call.end()
    expect((await trailers)[0]).toMatchObject({ 'grpc-status': '0', 'grpc-message': 'fine' })
    expect(Buffer.concat(chunks).toString()).toBe('onetwothree')
    expect(seen).toMatchObject({ te: 'trailers', 'grpc-timeout': '1S', ':path': '/pkg.Service/Method' })
  })

  it('has errors without a message in the headers, which end the response', async () => {
    const client = await grpcGateway((stream) => {
      stream.respond(
        { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '5', 'grpc-message': 'not found' },
        { endStream: true },
      )
    })
    const call = startCall(client)
    call.end('request')
    call.resume()
    const ended = once(call, 'end')
    const [headers, flags] = (await once(call, 'response')) as [IncomingHttpHeaders, number]
    expect(headers).toMatchObject({ ':status': 200, 'grpc-status': '5', 'grpc-message': 'not found' })
    // END_STREAM
    expect(flags & 1).toBe(1)
    await ended
  })

  it('is given up at the server when the client cancels', async () => {
    let cancelled: (() => void) | undefined
    const isCancelled = new Promise<void>((resolve) => {
      cancelled = resolve
    })
    const client = await grpcGateway((stream) => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' })
      stream.write('first')
      stream.on('close', () => cancelled!())
    })
    const call = startCall(client)
    call.on('error', () => undefined)
    call.write('request')
    await once(call, 'data')
    call.close(8)
    await isCancelled
  })
})
