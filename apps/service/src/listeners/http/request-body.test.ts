import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { jsonAnswer } from '../../operations/handler.ts'
import { RawConnection } from '../../service.fixture.ts'
import { ConnectionLimit } from '../connection-limit.ts'
import type { Endpoint } from './endpoints.ts'
import { HttpServer } from './http-server.ts'
import { BodyReader } from './request-body.ts'
import { RequestServer } from './request-server.ts'

const MOST_BYTES = 10_000

/** A server whose unfinished bodies hold at most {@link MOST_BYTES}. */
async function serve(): Promise<{ reader: BodyReader; connect: () => RawConnection }> {
  const reader = new BodyReader(MOST_BYTES)
  const target: Endpoint = {
    name: 'PUT /x',
    inFlightLimit: undefined,
    admit: undefined,
    decode: () => ({ ok: true, parameters: {}, precondition: undefined }),
    narrow: undefined,
    body: { reader, maxBytes: 8000, decode: (body) => ({ ok: true, body }) },
    handle: () => jsonAnswer(200, '"done"'),
    hasRequestId: false,
  }
  const server = new HttpServer({
    name: 'http',
    attempt: { host: '127.0.0.1', port: 0, variables: { port: 'PORT', host: 'HOST' } },
    requests: new RequestServer({
      sleep: () => Promise.reject(new Error('Nothing waits here.')),
      route: () => ({ target, params: {} }),
      reportError: () => undefined,
      newRequestId: () => 'r1',
    }),
    reportError: () => undefined,
    timeouts: { headersMs: 60_000, requestMs: 60_000, idleMs: 60_000, checkEveryMs: 1000 },
    connectionLimit: new ConnectionLimit({ perAddress: 1000, exempt: [] }),
    sleep: (_, signal) =>
      new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason))),
    graceMs: 1,
  })
  await server.start()
  onTestFinished(() => server.stop())
  const connect = (): RawConnection => {
    const connection = new RawConnection(server.port!)
    onTestFinished(() => connection.close())
    return connection
  }
  return { reader, connect }
}

const head = (framing: string): string =>
  `PUT /x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${framing}\r\n\r\n`
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`

describe('a body', () => {
  it('may come with its head, after it, or in part, again and again on one connection', async () => {
    const { reader, connect } = await serve()
    const connection = connect()
    const body = JSON.stringify('x'.repeat(100))
    const lead = head(`Content-Length: ${body.length}`)
    let answers = 0
    for (let round = 1; round <= 3; round++) {
      for (const [first, second] of [
        [lead + body, ''],
        [lead, body],
        [lead + body.slice(0, 50), body.slice(50)],
      ] as const) {
        connection.send(first)
        if (first.length > lead.length && second !== '') await vi.waitUntil(() => reader.heldBytes > 0, 30_000)
        connection.send(second)
        answers++
        const isAnswered = async (): Promise<boolean> =>
          (await connection.until('"done"')).split('HTTP/1.1 200').length > answers
        await vi.waitUntil(isAnswered, 30_000)
        expect(reader.heldBytes).toBe(0)
      }
    }
  })
})

describe('unfinished bodies', () => {
  it('hold no more than their bound: the oldest are answered with 503 and closed, the others go on', async () => {
    const { reader, connect } = await serve()
    const half = `"${'x'.repeat(3000)}`
    const slow: RawConnection[] = []
    for (let opened = 1; opened <= 3; opened++) {
      const connection = connect()
      connection.send(head(`Content-Length: ${half.length + 1}`) + half)
      slow.push(connection)
      await vi.waitUntil(() => reader.heldBytes > opened * half.length, 30_000)
    }
    const newest = connect()
    newest.send(head(`Content-Length: ${half.length + 1}`) + half)
    const dropped = await slow[0]!.end()
    expect(dropped).toContain('HTTP/1.1 503')
    expect(dropped).toContain('SLUICE_HTTP_OVERLOADED')
    expect(reader.heldBytes).toBeLessThanOrEqual(MOST_BYTES)
    for (const connection of [slow[1]!, slow[2]!, newest]) {
      connection.send('"')
      expect(await connection.until('"done"')).toContain('HTTP/1.1 200')
    }
    expect(reader.heldBytes).toBe(0)
  })

  it('cost a body nothing that comes in one piece', async () => {
    const { reader, connect } = await serve()
    const slow = connect()
    slow.send(`${head('Content-Length: 7900')}"`)
    await vi.waitUntil(() => reader.heldBytes > 0, 30_000)
    slow.send('x'.repeat(7800))
    await vi.waitUntil(() => reader.heldBytes > 7800, 30_000)
    for (let asked = 0; asked < 5; asked++) {
      const quick = connect()
      const body = `"${'y'.repeat(7000)}"`
      quick.send(head(`Content-Length: ${body.length}`) + body)
      expect(await quick.until('"done"')).toContain('HTTP/1.1 200')
    }
    slow.send(`${'x'.repeat(98)}"`)
    expect(await slow.until('"done"')).toContain('HTTP/1.1 200')
  })

  it('of many small pieces are charged for the pieces, with or without Content-Length', async () => {
    const { reader, connect } = await serve()
    const connection = connect()
    connection.send(head('Transfer-Encoding: chunked') + chunk('"'))
    await vi.waitUntil(() => reader.heldBytes > 0, 30_000)
    expect(reader.heldBytes).toBeGreaterThan(100)
    connection.send(chunk('x').repeat(100))
    expect(await connection.end()).toContain('SLUICE_HTTP_OVERLOADED')
    expect(reader.heldBytes).toBe(0)
  })

  it('hold nothing any more when their client goes away, or they are too large', async () => {
    const { reader, connect } = await serve()
    const gone = connect()
    gone.send(`${head('Content-Length: 5000')}"${'x'.repeat(2000)}`)
    await vi.waitUntil(() => reader.heldBytes > 2000, 30_000)
    gone.close()
    await vi.waitUntil(() => reader.heldBytes === 0, 30_000)
    const large = connect()
    large.send(head('Transfer-Encoding: chunked') + chunk('x'.repeat(6000)) + chunk('x'.repeat(3000)))
    expect(await large.until('SLUICE_HTTP_TOO_LARGE')).toContain('HTTP/1.1 413')
    expect(reader.heldBytes).toBe(0)
  })
})
