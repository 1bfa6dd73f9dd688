import { once } from 'node:events'
import { createServer, request, type ServerResponse } from 'node:http'
import { connect, createServer as createHttp2Server, type Http2ServerResponse } from 'node:http2'
import type { AddressInfo, Server } from 'node:net'
import { FakeClock, FakeTimers } from '@sluice/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Admission } from '../../http/request-outcome.ts'
import { admitRequest, type NodeResponse } from './node-response.ts'

/** A request that was received and not answered yet, over a real connection. */
interface Exchange {
  readonly answer: NodeResponse
  /** Closes the connection from the other end, and waits until that was noticed. */
  hangUp(): Promise<void>
}

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function openHttp1(): Promise<Exchange> {
  const server = createServer()
  const url = await listen(server)
  const client = request(url, { agent: false }).on('error', () => undefined)
  client.on('response', (response) => response.resume())
  client.end()
  onTestFinished(() => void client.destroy())
  const [, answer] = (await once(server, 'request')) as [unknown, ServerResponse]
  return { answer, hangUp: () => left(answer, () => client.destroy()) }
}

async function openHttp2(): Promise<Exchange> {
  const server = createHttp2Server()
  const session = connect(await listen(server))
  onTestFinished(() => session.destroy())
  const stream = session.request({ ':path': '/' }).on('error', () => undefined)
  stream.resume()
  const [, answer] = (await once(server, 'request')) as [unknown, Http2ServerResponse]
  return { answer, hangUp: () => left(answer, () => stream.close(8)) }
}

async function left(answer: NodeResponse, leave: () => void): Promise<void> {
  const closed = once(answer, 'close')
  leave()
  await closed
}

function admission(delayMs: number): { readonly admission: Admission; readonly ends: number[] } {
  const ends: number[] = []
  const finish = (status: number): void => void ends.push(status)
  return { admission: { allowed: true, decision: undefined, headers: {}, delayMs, finish }, ends }
}

describe.each([
  ['HTTP/1.1', openHttp1],
  ['HTTP/2', openHttp2],
])('over %s', (_, open) => {
  const timers = (): FakeTimers => new FakeTimers(new FakeClock())

  it('a turn has come at once, and ends when the answer has left', async () => {
    const { answer } = await open()
    const { admission: admitted, ends } = admission(0)
    expect(admitRequest(answer, admitted, timers())).toBe(true)
    expect(ends).toEqual([])
    const closed = once(answer, 'close')
    answer.statusCode = 201
    answer.end('done')
    await closed
    expect(ends).toEqual([201])
  })

  it('no listener is added when there is no callback', async () => {
    const { answer } = await open()
    const before = answer.listenerCount('close')
    expect(admitRequest(answer, { ...admission(0).admission, finish: undefined }, timers())).toBe(true)
    expect(answer.listenerCount('close')).toBe(before)
  })

  it('a request without an answer ends with no status', async () => {
    const { answer, hangUp } = await open()
    const { admission: admitted, ends } = admission(0)
    admitRequest(answer, admitted, timers())
    await hangUp()
    expect(ends).toEqual([0])
  })

  it('a request that was answered in part ends with its status', async () => {
    const { answer, hangUp } = await open()
    const { admission: admitted, ends } = admission(0)
    admitRequest(answer, admitted, timers())
    answer.statusCode = 206
    // The types of HTTP/2 leave it out.
    const { flushHeaders } = answer as ServerResponse
    flushHeaders.call(answer)
    await hangUp()
    expect(ends).toEqual([206])
  })

  it('there is no turn for who has left already, and what was taken is given back', async () => {
    const { answer, hangUp } = await open()
    await hangUp()
    const { admission: admitted, ends } = admission(1000)
    const waiting = timers()
    expect(admitRequest(answer, admitted, waiting)).toBe(false)
    expect([ends, waiting.pending]).toEqual([[0], 0])
  })

  it('a turn comes exactly when it is due', async () => {
    const { answer } = await open()
    const { admission: admitted } = admission(500)
    const waiting = timers()
    const before = answer.listenerCount('close')
    const turn = admitRequest(answer, { ...admitted, finish: undefined }, waiting)
    let isHere: boolean | undefined
    void Promise.resolve(turn).then((here) => {
      isHere = here
    })
    await waiting.advance(499)
    expect(isHere).toBeUndefined()
    await waiting.advance(1)
    expect(isHere).toBe(true)
    expect(answer.listenerCount('close')).toBe(before)
  })

  it('a turn is given up by who leaves before', async () => {
    const { answer, hangUp } = await open()
    const { admission: admitted, ends } = admission(500)
    const waiting = timers()
    const turn = admitRequest(answer, admitted, waiting)
    await hangUp()
    expect(await turn).toBe(false)
    expect([ends, waiting.pending]).toEqual([[0], 0])
  })
})
