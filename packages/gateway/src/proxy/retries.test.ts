import { once } from 'node:events'
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo, Server, Socket } from 'node:net'
import { createServer } from 'node:net'
import { FakeClock, FakeTimers } from '@sluice/testing'
import { freePort } from '@sluice/testing/servers'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  configOf,
  listen,
  RawClient,
  routeOf,
  startGateway,
  startUpstream,
  type TestGateway,
  turns,
  until,
} from '../gateway.test.support.ts'
import { createUpstream } from '../upstreams/create-upstream.ts'

async function behind(urls: readonly string[], route = routeOf()): Promise<TestGateway & { timers: FakeTimers }> {
  const clock = new FakeClock()
  const timers = new FakeTimers(clock)
  const started = await startGateway({
    config: configOf([route], { app: urls }),
    timers,
    ruleSet: { rules: [{ resource: '/*', dimension: 'ip', algorithm: 'fixed-window', limit: 100, window: '1h' }] },
  })
  return { ...started, timers }
}

/** An instance without a listener. */
async function deadUrl(): Promise<string> {
  return `http://127.0.0.1:${await freePort()}`
}

/** An instance that reads a request and closes the connection, and counts them. */
async function startCloser(after: string): Promise<{ url: string; requests: string[] }> {
  const requests: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    let text = ''
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      text += chunk.toString()
      if (!text.includes(after)) return
      requests.push(text)
      socket.destroy()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}

/** Sends, and lets the time for the waits between attempts pass. */
async function sendThrough({ port, timers }: { port: number; timers: FakeTimers }, bytes: string): Promise<string> {
  const client = new RawClient(port)
  client.send(bytes)
  while (!client.text.includes('\r\n\r\n')) {
    await turns(1)
    await timers.advance(1)
  }
  return client.text
}

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
const POST = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello'

describe('a request that an instance did not get', () => {
  it.each([
    ['GET', GET],
    ['POST', POST],
  ])('goes to the next one: %s', async (_method, bytes) => {
    const app = await startUpstream()
    const gateway = await behind([await deadUrl(), app.url])
    const text = await sendThrough(gateway, bytes)
    expect(text).toMatch(/^HTTP\/1\.1 200 /)
    // Charged once.
    expect(text).toContain('X-RateLimit-Remaining: 99')
    expect(app.received).toHaveLength(1)
    const { outcomes } = gateway.upstreams.get('app')!
    expect(outcomes).toMatchObject([{ kind: 'failure' }, { kind: 'response', status: 200, instance: app.url }])
  })

  it('waits before it is sent again', async () => {
    const app = await startUpstream()
    const { port, timers, upstreams } = await behind([await deadUrl(), app.url])
    const client = new RawClient(port)
    client.send(GET)
    await until(() => upstreams.get('app')!.outcomes.length === 1)
    expect(upstreams.get('app')!.asked).toHaveLength(1)
    await timers.advance(18)
    expect(upstreams.get('app')!.asked).toHaveLength(1)
    await timers.advance(14)
    expect(upstreams.get('app')!.asked).toHaveLength(2)
    await client.until('ok')
  })

  it('is answered with 502 when the budget is used up, and when no attempt is left', async () => {
    const app = await startUpstream()
    const gateway = await behind([await deadUrl(), app.url])
    gateway.upstreams.get('app')!.retriesLeft = 0
    expect(await sendThrough(gateway, GET)).toMatch(/^HTTP\/1\.1 502 /)
    const single = await behind([await deadUrl()], routeOf({ retries: { ...routeOf().retries, attempts: 2 } }))
    expect(await sendThrough(single, GET)).toMatch(/^HTTP\/1\.1 502 /)
    expect(single.upstreams.get('app')!.asked).toHaveLength(3)
    expect(app.received).toEqual([])
  })

  it('is not sent again for a client that has left', async () => {
    const app = await startUpstream()
    const { port, timers, upstreams, gateway } = await behind([await deadUrl(), app.url])
    const client = new RawClient(port)
    client.send(GET)
    await until(() => upstreams.get('app')!.outcomes.length === 1)
    client.socket.destroy()
    await until(() => gateway.inFlight === 0)
    await timers.advance(5000)
    expect([upstreams.get('app')!.asked.length, app.received.length]).toEqual([1, 0])
  })
})

describe('a request that an instance may have got', () => {
  it('is sent again if it is idempotent and has no body', async () => {
    const closer = await startCloser('\r\n\r\n')
    const app = await startUpstream()
    expect(await sendThrough(await behind([closer.url, app.url]), GET)).toMatch(/^HTTP\/1\.1 200 /)
    expect([closer.requests.length, app.received.length]).toEqual([1, 1])
  })

  it.each([
    ['POST with a body', POST, 'hello'],
    ['POST with a part of its body', POST.slice(0, -2), 'hel'],
    ['PUT with a body', POST.replace('POST', 'PUT'), 'hello'],
    ['POST without a body', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n', '\r\n\r\n'],
    ['PATCH without a body', 'PATCH / HTTP/1.1\r\nHost: a\r\n\r\n', '\r\n\r\n'],
  ])('is never sent again otherwise: %s', async (_title, bytes, after) => {
    const closer = await startCloser(after)
    const app = await startUpstream()
    expect(await sendThrough(await behind([closer.url, app.url]), bytes)).toMatch(/^HTTP\/1\.1 502 /)
    expect([closer.requests.length, app.received.length]).toEqual([1, 0])
  })
})

/** Two instances that speak HTTP/2, of which the first one is tried first. */
async function behindHttp2(calls: readonly ((stream: ServerHttp2Stream) => void)[]): Promise<TestGateway> {
  const urls = await Promise.all(
    calls.map(async (call) => {
      const server = createHttp2Server()
      server.on('stream', (stream) => {
        stream.on('error', () => undefined)
        call(stream)
      })
      return `http://127.0.0.1:${(await listen(server as unknown as Server)).port}`
    }),
  )
  const instances = urls.map((url) => ({ url }))
  const upstreams = new Map([['app', { instances, protocol: 'http2' as const }]])
  const config = { ...configOf([routeOf()], {}), upstreams }
  return await startGateway({ config, createUpstream: (name, upstream) => createUpstream(name, upstream) })
}

describe('a request over HTTP/2 that an instance may have got', () => {
  it.each([
    ['its headers', ''],
    ['a part of its body', 'hel'],
  ])('is not sent again, if that was %s', async (_title, body) => {
    let received = 0
    const breaks = (stream: ServerHttp2Stream): void => {
      received++
      const end = (): void => stream.session!.destroy()
      if (body === '') end()
      else stream.once('data', end)
    }
    const answers = (stream: ServerHttp2Stream): void => {
      received++
      stream.respond({ ':status': 200 })
      stream.end()
    }
    const { port } = await behindHttp2([breaks, answers])
    const client = new RawClient(port)
    client.send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n${body}`)
    expect(await client.until('\r\n\r\n')).toMatch(/^HTTP\/1\.1 502 /)
    expect(received).toBe(1)
  })
})

describe('a status that is tried again', () => {
  it.each([
    ['short', 'Content-Length: 4', 'busy'],
    ['of unknown length', 'Transfer-Encoding: chunked', '4\r\nbusy\r\n'],
  ])('leads to another instance when the response is %s', async (_title, framing, body) => {
    const busy = await startUpstream((request, response) => {
      request.resume()
      response.socket!.write(`HTTP/1.1 503 Busy\r\n${framing}\r\n\r\n${body}`)
    })
    const app = await startUpstream()
    const gateway = await behind([busy.url, app.url])
    const text = await sendThrough(gateway, GET)
    expect(text).toMatch(/^HTTP\/1\.1 200 /)
    expect(text).not.toContain('busy')
    expect(gateway.upstreams.get('app')!.outcomes).toMatchObject([
      { kind: 'response', status: 503 },
      { kind: 'response', status: 200 },
    ])
  })

  it('reaches the client when there is no other attempt, or the request has a body', async () => {
    const busy = await startUpstream((request, response) => {
      request.resume()
      request.on('end', () => {
        response.writeHead(503)
        response.end('busy')
      })
    })
    const gateway = await behind([busy.url])
    expect(await sendThrough(gateway, GET)).toMatch(/^HTTP\/1\.1 503 [\s\S]*busy/)
    expect(await sendThrough(gateway, POST)).toMatch(/^HTTP\/1\.1 503 [\s\S]*busy/)
    expect(busy.received.map(({ method }) => method)).toEqual(['GET', 'GET', 'POST'])
  })
})

describe('no instance', () => {
  it.each([
    ['no-capacity', 7],
    ['no-healthy-instance', 1],
  ] as const)('%s is answered with 503 and Retry-After', async (reason, retryAfterSeconds) => {
    const gateway = await behind([await deadUrl()])
    gateway.upstreams.get('app')!.noInstance = { reason, retryAfterSeconds }
    const text = await sendThrough(gateway, GET)
    expect(text).toMatch(/^HTTP\/1\.1 503 /)
    expect(text).toContain(`Retry-After: ${retryAfterSeconds}\r\n`)
    // Not charged.
    await until(() => gateway.gateway.inFlight === 0)
    expect(await sendThrough(gateway, GET)).toContain('X-RateLimit-Remaining: 99')
  })
})
