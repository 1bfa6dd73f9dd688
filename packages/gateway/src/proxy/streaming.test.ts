import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer } from 'node:net'
import { FakeClock, FakeTimers } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import {
  configOf,
  listen,
  RawClient,
  type ReceivedRequest,
  routeOf,
  startGateway,
  startUpstream,
  type TestGateway,
  turns,
  until,
} from '../gateway.test.support.ts'
import { WATCH_EVERY_MS } from './exchange-watch.ts'

type Handler = (request: IncomingMessage, response: ServerResponse) => void

async function through(handler: Handler, route = routeOf()): Promise<TestGateway & { app: { received: unknown[] } }> {
  const app = await startUpstream(handler)
  return { ...(await startGateway({ config: configOf([route], { app: [app.url] }) })), app }
}

/** A gateway before an upstream that sends these bytes for every request. */
async function startRawUpstream(bytes: string): Promise<TestGateway> {
  const { port } = await listen(
    createServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => socket.write(bytes))
    }),
  )
  return await startGateway({ config: configOf([routeOf()], { app: [`http://127.0.0.1:${port}`] }) })
}

/** A hint and another interim response before the actual one. */
const TWO_INTERIM_RESPONSES =
  /^HTTP\/1\.1 103 Early Hints\r\nlink: <\/a\.css>; rel=preload\r\n\r\nHTTP\/1\.1 102 [^\r]+\r\n\r\nHTTP\/1\.1 200 /i

describe('a response', () => {
  it('arrives as it is sent, not when it is complete', async () => {
    let send: ((text: string) => void) | undefined
    let end: (() => void) | undefined
    const { port } = await through((_request, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      response.flushHeaders()
      send = (text) => void response.write(text)
      end = () => void response.end()
    })
    const client = new RawClient(port)
    client.send('GET /events HTTP/1.1\r\nHost: a\r\n\r\n')
    // Headers come before the first event.
    await client.until('\r\n\r\n')
    send!('data: 1\n\n')
    await client.until('data: 1')
    send!('data: 2\n\n')
    await client.until('data: 2')
    end!()
    await client.until('0\r\n\r\n')
  })

  it('comes after its interim responses, but for 100 and 101', async () => {
    const { port } = await through((_request, response) => {
      response.writeEarlyHints({ link: '</a.css>; rel=preload', connection: 'x-hop', 'x-hop': '1' })
      response.writeProcessing()
      response.end('body')
    })
    const client = new RawClient(port)
    client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    const text = await client.until('body')
    expect(text).toMatch(TWO_INTERIM_RESPONSES)
    const old = new RawClient(port)
    old.send('GET / HTTP/1.0\r\n\r\n')
    expect(await old.closed()).toMatch(/^HTTP\/1\.1 200 /)
  })

  it.each([100, 101])('is an error if %i comes before it, and the client sees no such thing', async (status) => {
    const { port } = await startRawUpstream(`HTTP/1.1 ${status} What\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n`)
    const client = new RawClient(port)
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx')
    expect(await client.until('}')).toMatch(/^HTTP\/1\.1 502 /)
  })

  it('comes after at most 16 interim responses', async () => {
    const { port } = await through((_request, response) => {
      for (let index = 0; index < 100; index++) response.writeEarlyHints({ link: `</${index}.css>; rel=preload` })
      response.end('body')
    })
    const client = new RawClient(port)
    client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    expect((await client.until('body')).match(/^HTTP\/1\.1 103 /gm)).toHaveLength(16)
  })

  it('has its trailers', async () => {
    const { port } = await through((_request, response) => {
      response.writeHead(200, { Trailer: 'X-Sum' })
      response.write('body')
      response.addTrailers({ 'X-Sum': '42' })
      response.end()
    })
    const client = new RawClient(port)
    client.send('GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n')
    expect(await client.until('0\r\nX-Sum: 42\r\n\r\n')).toMatch(/Trailer: X-Sum/i)
  })

  it.each([
    ['HEAD', 200],
    ['GET', 204],
    ['GET', 304],
  ])('to %s with status %i has no body and leaves the connection usable', async (method, status) => {
    const { port } = await through((_request, response) => {
      response.writeHead(status, status === 204 ? {} : { 'Content-Length': '5' })
      response.end(status === 200 ? 'hello' : undefined)
    })
    const client = new RawClient(port)
    client.send(`${method} /1 HTTP/1.1\r\nHost: a\r\n\r\n`)
    await client.until('X-Request-Id: id-1')
    await client.until('\r\n\r\n')
    client.send(`${method} /2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
    const text = await client.closed()
    expect(text.match(/^HTTP\/1\.1 /gm)).toHaveLength(2)
    expect(text).not.toContain('hello')
    if (method === 'HEAD') expect(text).toContain('Content-Length: 5')
  })

  it('that breaks off is broken off for the client, never ended cleanly', async () => {
    const { port, upstreams, metrics } = await through((_request, response) => {
      response.writeHead(200)
      response.write('half', () => response.socket!.destroy())
    })
    const client = new RawClient(port)
    client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    const text = await client.closed()
    expect(text).toContain('half')
    expect(text).not.toContain('0\r\n\r\n')
    expect(upstreams.get('app')!.outcomes).toMatchObject([{ kind: 'failure' }])
    const broken = metrics.snapshot().families.find(({ name }) => name === 'sluice_gateway_broken_responses_total')
    expect(broken?.samples).toMatchObject([{ values: ['app'], value: 1 }])
  })

  it('that is shorter than announced is broken off', async () => {
    const { port } = await through((_request, response) => {
      response.writeHead(200, { 'Content-Length': '100' })
      response.write('short', () => response.socket!.destroy())
    })
    const client = new RawClient(port)
    client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    expect(await client.closed()).toContain('short')
  })

  it('waits for a client that does not read, in bounded memory', async () => {
    const chunk = Buffer.alloc(65_536, 'x')
    let written = 0
    const { port } = await through((_request, response) => {
      response.on('error', () => undefined)
      const fill = (): void => {
        while (written < 400 && response.write(chunk)) written++
        written++
        if (written >= 400) response.end()
        else response.once('drain', fill)
      }
      fill()
    })
    const client = new RawClient(port)
    client.socket.pause()
    client.send('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    let before = -1
    // Until nothing moves any more: the buffers of all sockets on the way are full.
    while (before !== written || written === 0) {
      before = written
      await turns(200)
    }
    expect(written).toBeLessThan(390)
    client.socket.resume()
    const text = await client.closed()
    expect(text.length).toBeGreaterThan(400 * 65_536)
  })

  it('is given up at the upstream when the client leaves', async () => {
    let isClosed = false
    const { port, upstreams, gateway } = await through((_request, response) => {
      response.writeHead(200)
      response.write('begun')
      response.on('close', () => {
        isClosed = true
      })
    })
    const client = new RawClient(port)
    client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await client.until('begun')
    client.socket.destroy()
    await until(() => isClosed)
    expect(upstreams.get('app')!.outcomes).toMatchObject([{ kind: 'cancelled' }])
    await until(() => gateway.inFlight === 0)
  })
})

describe('a request body', () => {
  it('has no trailers at the upstream, and announces none', async () => {
    const { port, app } = await through((request, response) => void request.on('end', () => response.end('ok')))
    const client = new RawClient(port)
    const head = 'POST / HTTP/1.1\r\nHost: a\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n'
    client.send(`${head}4\r\nbody\r\n0\r\nX-Sum: 42\r\n\r\n`)
    expect(await client.until('ok')).toMatch(/^HTTP\/1\.1 200 /)
    const [received] = app.received as readonly ReceivedRequest[]
    expect(received).toMatchObject({ body: 'body', trailers: {} })
    expect(Object.keys(received!.headers)).not.toEqual(expect.arrayContaining(['trailer']))
  })

  it('waits for an upstream that does not read, in bounded memory', async () => {
    let read: IncomingMessage | undefined
    const app = await startUpstream()
    app.server.removeAllListeners('request')
    app.server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      read = request
      request.on('end', () => response.end('got it'))
    })
    const route = routeOf({ maxBodyBytes: Number.POSITIVE_INFINITY })
    const { port } = await startGateway({ config: configOf([route], { app: [app.url] }) })
    const client = new RawClient(port)
    const chunk = Buffer.alloc(65_536, 'x')
    client.send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${400 * chunk.length}\r\n\r\n`)
    let sent = 0
    const fill = (): void => {
      while (sent < 400 && client.socket.write(chunk)) sent++
      sent++
      if (sent < 400) client.socket.once('drain', fill)
    }
    fill()
    let before = -1
    while (before !== sent || read === undefined) {
      before = sent
      await turns(200)
    }
    expect(sent).toBeLessThan(390)
    read.resume()
    await client.until('got it')
  })

  it.each([
    ['announced', 'Content-Length: 11\r\n\r\nhello world', 0],
    ['counted', 'Transfer-Encoding: chunked\r\n\r\n6\r\nhello \r\n5\r\nworld\r\n0\r\n\r\n', 1],
  ])('that is too long is answered with 413 when its length is %s', async (_title, rest, attempts) => {
    const { port, upstreams } = await through(
      (request, response) => {
        request.resume()
        request.on('end', () => response.end('ok'))
      },
      routeOf({ maxBodyBytes: 10 }),
    )
    const client = new RawClient(port)
    client.send(`POST / HTTP/1.1\r\nHost: a\r\n${rest}`)
    expect(await client.until('}')).toMatch(/^HTTP\/1\.1 413 /)
    expect(upstreams.get('app')!.asked).toHaveLength(attempts)
  })

  it.each([
    ['with a length', 'Content-Length: 900000'],
    ['in chunks', 'Transfer-Encoding: chunked'],
  ])('of a denied request does not cost the client the answer: %s', async (_title, framing) => {
    const app = await startUpstream()
    const { port, gateway } = await startGateway({
      config: configOf([routeOf()], { app: [app.url] }),
      ruleSet: { rules: [{ resource: '/*', dimension: 'ip', algorithm: 'fixed-window', limit: 0, window: '1h' }] },
    })
    const client = new RawClient(port)
    client.send(`POST / HTTP/1.1\r\nHost: a\r\n${framing}\r\n\r\n`)
    // The answer is complete before the body is.
    await client.until('"retryAfter"')
    expect(client.text).toContain('Connection: close')
    for (let part = 0; part < 9; part++) {
      client.send(framing.startsWith('C') ? 'x'.repeat(100_000) : `186a0\r\n${'x'.repeat(100_000)}\r\n`)
    }
    if (!framing.startsWith('C')) client.send('0\r\n\r\n')
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 429 /)
    await until(() => gateway.inFlight === 0)
    expect([client.hasFailed, app.received]).toEqual([false, []])
  })

  it('without end after an early answer is cut off', async () => {
    const { port, gateway } = await through(() => undefined, routeOf({ maxBodyBytes: 10 }))
    const client = new RawClient(port)
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n')
    await client.until('}')
    while (!client.isClosed) {
      client.send('x'.repeat(100_000))
      await turns(1)
    }
    await until(() => gateway.inFlight === 0)
  })

  it('is requested only when the request is admitted', async () => {
    const app = await startUpstream()
    const { port } = await startGateway({
      config: configOf([routeOf()], { app: [app.url] }),
      ruleSet: { rules: [{ resource: '/*', dimension: 'ip', algorithm: 'fixed-window', limit: 1, window: '1h' }] },
    })
    const head = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n'
    const admitted = new RawClient(port)
    admitted.send(head)
    await admitted.until('HTTP/1.1 100 Continue\r\n\r\n')
    admitted.send('hello')
    await admitted.until('\r\n\r\nok')
    expect(app.received).toMatchObject([{ body: 'hello', headers: { 'content-length': '5' } }])
    expect(app.received[0]!.headers.expect).toBeUndefined()
    const denied = new RawClient(port)
    denied.send(head)
    expect(await denied.closed()).toMatch(/^HTTP\/1\.1 429 /)
  })

  it('with another expectation is answered with 417', async () => {
    const { port, app } = await through((_request, response) => response.end())
    const client = new RawClient(port)
    client.send('GET / HTTP/1.1\r\nHost: a\r\nExpect: something\r\n\r\n')
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 417 /)
    expect(app.received).toEqual([])
  })

  it.each(['gzip, chunked', 'identity, chunked'])('in the coding "%s" is answered with 501', async (coding) => {
    const { port, app } = await through(() => undefined)
    const client = new RawClient(port)
    client.send(`POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: ${coding}\r\n\r\n2\r\nok\r\n0\r\n\r\n`)
    expect(await client.until('}')).toMatch(/^HTTP\/1\.1 501 /)
    expect(app.received).toEqual([])
  })

  it('of a client that leaves is given up at the upstream', async () => {
    let isAborted = false
    const { port, upstreams } = await through((request) => {
      request.on('close', () => {
        isAborted = true
      })
    })
    const client = new RawClient(port)
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhello')
    await until(() => upstreams.get('app')!.asked.length === 1)
    await turns(50)
    client.socket.destroy()
    await until(() => isAborted)
    expect(upstreams.get('app')!.outcomes).toMatchObject([{ kind: 'cancelled' }])
  })

  it('does not hold up a response that comes before its end', async () => {
    const { port } = await through((_request, reply) => {
      reply.writeHead(403, { 'Content-Length': '2' })
      reply.end('no')
    })
    const sent = httpRequest({ port, method: 'POST', headers: { 'Content-Length': '900000' } })
    sent.on('error', () => undefined)
    sent.write('some')
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    expect([response.statusCode, response.headers.connection]).toEqual([403, 'close'])
    response.resume()
    sent.destroy()
  })
})

describe('time limits', () => {
  async function timed(handler: Handler, timeouts: Partial<ReturnType<typeof routeOf>['timeouts']>) {
    const clock = new FakeClock()
    const timers = new FakeTimers(clock)
    const app = await startUpstream(handler)
    const route = routeOf({ timeouts: { ...routeOf().timeouts, ...timeouts } })
    const started = await startGateway({
      config: configOf([route], { app: [app.url] }),
      timers,
      monotonicMs: () => clock.nowMicros() / 1000,
    })
    return { ...started, timers, app }
  }

  it('answer 504 when the upstream sends no headers', async () => {
    const app = await startUpstream(() => undefined)
    const route = routeOf({ timeouts: { ...routeOf().timeouts, headersMs: 50 } })
    const { origin, upstreams } = await startGateway({ config: configOf([route], { app: [app.url] }) })
    const response = await fetch(origin)
    expect(response.status).toBe(504)
    expect(upstreams.get('app')!.outcomes).toMatchObject([{ kind: 'failure' }])
  })

  it('answer 504 when the whole exchange takes too long', async () => {
    const { port, timers, app } = await timed(() => undefined, { totalMs: 10_000 })
    const client = new RawClient(port)
    client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await until(() => app.received.length === 1)
    await timers.advance(10_000 - 1)
    expect(client.text).toBe('')
    await timers.advance(WATCH_EVERY_MS)
    // Not the time limit of undici for headers, which does not follow the clock of the test.
    expect(await client.until('}')).toMatch(/^HTTP\/1\.1 504 [\s\S]*The time limit of the route is over/)
  })

  it.each([
    ['send the body', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhello', /^HTTP\/1\.1 504 /],
    ['read the response', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n', /^HTTP\/1\.1 200 /],
  ])('of the whole exchange do not count against an instance while clients %s', async (_title, bytes, answer) => {
    const { port, timers, upstreams } = await timed(
      (request, response) => {
        response.on('error', () => undefined)
        if (request.method === 'GET') response.write('a part')
      },
      { totalMs: 2000 },
    )
    const { outcomes, asked } = upstreams.get('app')!
    const client = new RawClient(port)
    client.send(bytes)
    await until(() => asked.length === 1)
    if (answer.source.includes('200')) await client.until('a part')
    else await turns(50)
    await timers.advance(2000 + WATCH_EVERY_MS)
    await until(() => outcomes.length === 1)
    expect(outcomes).toMatchObject([{ kind: 'cancelled' }])
    await until(() => answer.test(client.text))
  })

  it('break off a response when the upstream stops in the middle of it', async () => {
    const app = await startUpstream((_request, response) => {
      response.writeHead(200, { 'Content-Length': 100 })
      response.write('a part')
    })
    const route = routeOf({ timeouts: { ...routeOf().timeouts, idleMs: 50 } })
    const { port, upstreams } = await startGateway({ config: configOf([route], { app: [app.url] }) })
    const client = new RawClient(port)
    client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 200 [\s\S]*a part$/)
    expect(upstreams.get('app')!.outcomes).toMatchObject([{ kind: 'failure' }])
  })

  it('answer 408 when a client stops in the middle of its body', async () => {
    const { port, timers, upstreams } = await timed(() => undefined, { idleMs: 3000 })
    const client = new RawClient(port)
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhello')
    await until(() => upstreams.get('app')!.asked.length === 1)
    await turns(50)
    await timers.advance(2900)
    expect(client.text).toBe('')
    await timers.advance(3000)
    expect(await client.until('}')).toMatch(/^HTTP\/1\.1 408 /)
    expect(upstreams.get('app')!.outcomes).toMatchObject([{ kind: 'cancelled' }])
  })

  it('cut off a client that does not read its response', async () => {
    const chunk = Buffer.alloc(1_000_000, 'x')
    const { port, timers, gateway } = await timed(
      (_request, response) => {
        response.on('error', () => undefined)
        for (let index = 0; index < 40; index++) response.write(chunk)
        response.end()
      },
      { idleMs: 3000 },
    )
    const client = new RawClient(port)
    client.socket.pause()
    client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await until(() => gateway.inFlight === 1)
    await turns(500)
    await timers.advance(10_000)
    await until(() => gateway.inFlight === 0)
    client.socket.resume()
    expect((await client.closed()).length).toBeLessThan(40 * chunk.length)
  })
})
