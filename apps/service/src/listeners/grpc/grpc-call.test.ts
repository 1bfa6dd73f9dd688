import { once } from 'node:events'
import type { ServerHttp2Stream } from 'node:http2'
import { connect, createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { GrpcCall, MessageMemory } from './grpc-call.ts'

it('leaves nothing at a stream that is closed: Node may keep streams for long', async () => {
  const server = createServer()
  onTestFinished(() => void server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  onTestFinished(() => session.destroy())
  const ended = new Promise<{ readonly call: GrpcCall; readonly stream: ServerHttp2Stream }>((resolve) => {
    server.on('stream', (opened, headers) => {
      const call: GrpcCall = new GrpcCall(opened, headers, {
        method: undefined,
        startedMs: 0,
        handler: {
          memory: new MessageMemory(1000),
          onMessage: (message, answered) => answered.answer(message),
          onEnd: () => undefined,
          onClose: () => resolve({ call, stream: opened }),
          errorOf: (error) => {
            throw error
          },
        },
      })
    })
  })
  const request = session.request({ ':method': 'POST', ':path': '/', 'content-type': 'application/grpc' })
  request.end(Buffer.from([0, 0, 0, 0, 1, 7]))
  const [trailers] = (await once(request.resume(), 'trailers')) as [Readonly<Record<string, unknown>>]
  expect(trailers['grpc-status']).toBe('0')
  const { call, stream } = await ended
  expect(stream.eventNames()).toEqual([])
  const kept = Object.getOwnPropertySymbols(stream).map((symbol) => Reflect.get(stream, symbol) as unknown)
  expect(kept).not.toContain(call)
})
