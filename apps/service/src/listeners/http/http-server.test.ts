import { once } from 'node:events'
import { Agent, request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import type { ProblemDocument } from '@sluice/contract'
import { CHECK_PATH } from '@sluice/contract'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { jsonAnswer } from '../../operations/handler.ts'
import type { RunningService } from '../../service.fixture.ts'
import { answerOf, RawConnection, rawCheck, startService } from '../../service.fixture.ts'
import { ConnectionLimit } from '../connection-limit.ts'
import type { ListenAttempt } from '../listener.ts'
import type { Endpoint } from './endpoints.ts'
import type { HttpServerOptions } from './http-server.ts'
import { HttpServer } from './http-server.ts'
import { BodyReader } from './request-body.ts'
import { RequestServer } from './request-server.ts'

const CHECK = { userId: 'user-123', resource: '/api/v1/data' }
const BODY = JSON.stringify(CHECK)

async function freshService(): Promise<RunningService> {
  const running = await startService()
  onTestFinished(() => running.stop())
  return running
}

const TIMEOUTS = { headersMs: 60_000, requestMs: 60_000, idleMs: 60_000, checkEveryMs: 1000 }

const MAX_BODY_BYTES = 16_384

const ATTEMPT: ListenAttempt = { host: '127.0.0.1', port: 0, variables: { port: 'PORT', host: 'HOST' } }

/** A server without the service, for what the service never does: it answers everything, and reads bodies first. */
function serverWith(options: Partial<HttpServerOptions>): HttpServer {
  const target: Endpoint = {
    name: 'any',
    inFlightLimit: undefined,
    admit: undefined,
    decode: () => ({ ok: true, parameters: {}, precondition: undefined }),
    narrow: undefined,
    body: { reader: new BodyReader(1_000_000), maxBytes: MAX_BODY_BYTES, decode: (body) => ({ ok: true, body }) },
    handle: () => jsonAnswer(200, '{}'),
    hasRequestId: false,
  }
  return new HttpServer({
    name: 'http',
    attempt: ATTEMPT,
    requests: new RequestServer({
      sleep: () => Promise.reject(new Error('Nothing waits here.')),
      route: () => ({ target, params: {} }),
      reportError: () => undefined,
      newRequestId: () => 'r1',
    }),
    reportError: () => undefined,
    timeouts: TIMEOUTS,
    connectionLimit: new ConnectionLimit({ perAddress: 1000, exempt: [] }),
    sleep: () => Promise.reject(new Error('no wait is expected')),
    graceMs: 1,
    ...options,
  })
}

function openRaw(port: number): RawConnection {
  const connection = new RawConnection(port)
  onTestFinished(() => connection.close())
  return connection
}

async function expectProblem(response: Response, status: number, code: string): Promise<ProblemDocument> {
  expect(response.status).toBe(status)
  expect(response.headers.get('content-type')).toBe('application/problem+json')
  const problem = (await response.json()) as ProblemDocument
  expect(problem).toMatchObject({ status, code, type: expect.stringMatching(/^urn:sluice:problem:[a-z-]+$/) })
  expect(problem.title.length).toBeGreaterThan(0)
  expect(problem.detail.length).toBeGreaterThan(0)
  return problem
}

describe('routes', () => {
  it('tells that the process lives', async () => {
    const { origin } = await freshService()
    const response = await fetch(`${origin}/livez`)
    expect([response.status, await response.text()]).toEqual([200, '{"status":"ok"}\n'])
    expect(response.headers.get('cache-control')).toBe('no-store')
    const head = await fetch(`${origin}/livez`, { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([200, ''])
  })

  it.each([
    '/livez/',
    '//livez',
    '/LIVEZ',
    '/%6civez',
    '/internal/ratelimit/check/',
    '/constructor',
    '/nothing?/livez',
  ])('has nothing at %s', async (path) => {
    const { origin } = await freshService()
    const problem = await expectProblem(await fetch(origin + path), 404, 'SLUICE_HTTP_NOT_FOUND')
    expect(problem.detail).toContain(CHECK_PATH)
  })

  it.each([
    ['GET', CHECK_PATH, 'POST'],
    ['PUT', CHECK_PATH, 'POST'],
    ['OPTIONS', CHECK_PATH, 'POST'],
    ['POST', '/livez', 'GET, HEAD'],
    ['DELETE', '/livez', 'GET, HEAD'],
  ])('rejects %s %s and says what is allowed', async (method, path, allow) => {
    const { origin } = await freshService()
    const response = await fetch(origin + path, { method })
    await expectProblem(response, 405, 'SLUICE_HTTP_METHOD_NOT_ALLOWED')
    expect(response.headers.get('allow')).toBe(allow)
  })

  it('finds a path with a query, and one in the form for proxies', async () => {
    const { origin, port } = await freshService()
    expect((await fetch(`${origin}/livez?verbose=1`)).status).toBe(200)
    const connection = openRaw(port)
    connection.send('GET http://anything:81/livez?x HTTP/1.1\r\nHost: localhost\r\n\r\n')
    expect(await connection.until('{"status":"ok"}\n')).toMatch(/^HTTP\/1\.1 200 /)
  })
})

describe('the type of a body', () => {
  it.each([
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'application/json;',
  ])('may be %s', async (type) => {
    const { check } = await freshService()
    expect((await check(CHECK, { 'Content-Type': type })).status).toBe(200)
  })

  it.each<[string, Record<string, string>]>([
    ['plain text', { 'Content-Type': 'text/plain' }],
    ['a form', { 'Content-Type': 'application/x-www-form-urlencoded' }],
    ['another JSON', { 'Content-Type': 'application/problem+json' }],
    ['another charset', { 'Content-Type': 'application/json; charset=utf-16' }],
    ['JSON by a longer name', { 'Content-Type': 'application/jsonp' }],
    ['something compressed', { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }],
  ])('must not be %s', async (_title, headers) => {
    const { check } = await freshService()
    const response = await check(CHECK, headers)
    const problem = await expectProblem(response, 415, 'SLUICE_HTTP_UNSUPPORTED_MEDIA_TYPE')
    expect(problem.detail).toContain('Content-Type: application/json')
    expect((await answerOf(await check(CHECK))).remaining).toBe(99)
  })

  it('must be said', async () => {
    const { check } = await freshService()
    const response = await check(Buffer.from(BODY), {})
    await expectProblem(response, 415, 'SLUICE_HTTP_UNSUPPORTED_MEDIA_TYPE')
  })
})

describe('the size of a body', () => {
  const padded = (bytes: number): string => BODY + ' '.repeat(bytes - BODY.length)

  it('may be 16 KiB and not a byte more', async () => {
    const { check } = await freshService()
    expect((await check(padded(MAX_BODY_BYTES))).status).toBe(200)
    const problem = await expectProblem(await check(padded(MAX_BODY_BYTES + 1)), 413, 'SLUICE_HTTP_TOO_LARGE')
    expect(problem.detail).toContain('16384')
    expect((await answerOf(await check(CHECK))).remaining).toBe(98)
  })

  it('is rejected by its announced length before the body comes', async () => {
    const { port } = await freshService()
    const connection = openRaw(port)
    const head = rawCheck('').replace('Content-Length: 0', 'Content-Length: 999999999')
    connection.send(head)
    expect(await connection.until('SLUICE_HTTP_TOO_LARGE')).toMatch(/^HTTP\/1\.1 413 /)
  })

  it('is rejected while it comes in pieces of unknown number, and the connection goes on', async () => {
    const { port } = await freshService()
    const connection = openRaw(port)
    const head = rawCheck('').replace('Content-Length: 0', 'Transfer-Encoding: chunked')
    const piece = `2000\r\n${' '.repeat(0x2000)}\r\n`
    connection.send(head + piece + piece + piece)
    expect(await connection.until('SLUICE_HTTP_TOO_LARGE')).toMatch(/^HTTP\/1\.1 413 /)
    connection.send(`${piece}0\r\n\r\n${rawCheck(BODY)}`)
    expect(await connection.until('"allowed":true')).toContain('"remaining":99')
  })

  it('cuts the connection of a client that sends on and on', async () => {
    const { port } = await freshService()
    const connection = openRaw(port)
    connection.send(rawCheck('').replace('Content-Length: 0', 'Content-Length: 999999999'))
    connection.send(Buffer.alloc(8 * 1_048_576, 0x20))
    expect(await connection.end()).toMatch(/^HTTP\/1\.1 413 /)
  })

  it('may come byte by byte', async () => {
    const { port } = await freshService()
    const connection = openRaw(port)
    for (const byte of Buffer.from(rawCheck('{"userId":"Zoë 🦊","resource":"*"}'))) connection.send(Buffer.of(byte))
    expect(await connection.until('"allowed":true')).toMatch(/^HTTP\/1\.1 200 /)
  })
})

describe('connections', () => {
  it('carry many requests, rejected ones among them', async () => {
    const { origin } = await freshService()
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    onTestFinished(() => agent.destroy())
    const ask = async (body: string): Promise<[status: number | undefined, localPort: number | undefined]> => {
      const headers = { 'Content-Type': 'application/json' }
      const asked = httpRequest(origin + CHECK_PATH, { agent, method: 'POST', headers })
      asked.end(body)
      const [response] = await once(asked, 'response')
      response.resume()
      await once(response, 'end')
      return [response.statusCode, asked.socket?.localPort]
    }
    const [first, localPort] = await ask(BODY)
    expect([first, await ask('{')]).toEqual([200, [400, localPort]])
    expect(await ask(' '.repeat(20_000))).toEqual([413, localPort])
    expect(await ask(BODY)).toEqual([200, localPort])
  })

  it('answer requests that were sent without waiting, in order', async () => {
    const { port } = await freshService()
    const connection = openRaw(port)
    connection.send(rawCheck(BODY) + rawCheck('{') + rawCheck(BODY))
    const text = await connection.until('"remaining":98')
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400', 'HTTP/1.1 200'])
  })

  it.each([
    ['bytes that are not HTTP', 'hello\r\n\r\n', 400, 'SLUICE_HTTP_MALFORMED'],
    ['two lengths', rawCheck(BODY, 'Content-Length: 1\r\n'), 400, 'SLUICE_HTTP_MALFORMED'],
    ['a length beside chunks', rawCheck(BODY, 'Transfer-Encoding: chunked\r\n'), 400, 'SLUICE_HTTP_MALFORMED'],
    ['a folded header', rawCheck(BODY, 'X-A: 1\r\n 2\r\n'), 400, 'SLUICE_HTTP_MALFORMED'],
    ['a space before the colon', rawCheck(BODY, 'X-A : 1\r\n'), 400, 'SLUICE_HTTP_MALFORMED'],
    ['no host', rawCheck(BODY).replace('Host: localhost\r\n', ''), 400, 'SLUICE_HTTP_MALFORMED'],
    ['endless headers', rawCheck(BODY, `X-A: ${'x'.repeat(20_000)}\r\n`), 431, 'SLUICE_HTTP_HEADERS_TOO_LARGE'],
    ['an unknown expectation', rawCheck(BODY, 'Expect: a miracle\r\n'), 417, 'SLUICE_HTTP_EXPECTATION_FAILED'],
  ])('reject %s with a problem, and count nothing', async (_title, bytes, status, code) => {
    const { port, check } = await freshService()
    const connection = openRaw(port)
    connection.send(bytes)
    const text = await connection.until(code)
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(text).toContain('Content-Type: application/problem+json\r\n')
    expect((await answerOf(await check(CHECK))).remaining).toBe(99)
  })

  it('may break off in the middle of a request without a trace', async () => {
    const { port, check, errors } = await freshService()
    const connection = openRaw(port)
    connection.send(rawCheck(BODY, 'Expect: 100-continue\r\n').slice(0, -5))
    await connection.until('100 Continue')
    connection.close()
    await connection.end()
    expect((await answerOf(await check(CHECK))).remaining).toBe(99)
    expect(errors).toEqual([])
  })
})

describe('a client that takes too long', () => {
  it.each([
    ['the headers', 'POST / HTTP/1.1\r\nHost: te', { headersMs: 1 }],
    ['the body', rawCheck(BODY).slice(0, -5), { headersMs: 1, requestMs: 1 }],
  ])('with %s gets an error, and its connection is closed', async (_title, bytes, timeouts) => {
    const server = serverWith({ timeouts: { ...TIMEOUTS, ...timeouts, checkEveryMs: 1 } })
    await server.start()
    onTestFinished(() => server.stop())
    const connection = openRaw(server.port ?? 0)
    connection.send(bytes)
    const text = await connection.end()
    expect(text).toMatch(/^HTTP\/1\.1 408 /)
    expect(text).toContain('SLUICE_HTTP_TIMEOUT')
    expect(text).toContain('X-Content-Type-Options: nosniff\r\n')
  })
})

describe('stop', () => {
  const GRACE_MS = 10_000

  async function isRefused(port: number): Promise<boolean> {
    const socket = connect(port, '127.0.0.1')
    try {
      await once(socket, 'connect')
      return false
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED'
    } finally {
      socket.destroy()
    }
  }

  it('accepts nothing new, answers what has begun, and ends that connection', async () => {
    const { stop, port } = await startService()
    const connection = openRaw(port)
    const bytes = rawCheck(BODY, 'Expect: 100-continue\r\n')
    connection.send(bytes.slice(0, -5))
    await connection.until('100 Continue')
    const stopped = stop()
    expect(await isRefused(port)).toBe(true)
    connection.send(bytes.slice(-5))
    const text = await connection.end()
    expect(text).toContain('HTTP/1.1 200 OK')
    expect(text).toContain('Connection: close')
    expect(text).toContain('"allowed":true')
    await stopped
  })

  it('does not wait for connections that are idle or never said a word', async () => {
    const { stop, port } = await startService()
    const [idle, silent] = [openRaw(port), openRaw(port)]
    idle.send(rawCheck(BODY))
    await idle.until('"allowed":true')
    // An answer on a third connection, opened later: the server has accepted the silent one by now.
    const third = openRaw(port)
    third.send(rawCheck(BODY))
    await third.until('"allowed":true')
    await stop()
    expect(await silent.end()).toBe('')
    expect(await idle.end()).toContain('"allowed":true')
  })

  it('cuts what is not done when the grace period is over', async () => {
    const { stop, port, endWaits, errors } = await startService()
    const connection = openRaw(port)
    connection.send(rawCheck(BODY, 'Expect: 100-continue\r\n').slice(0, -5))
    await connection.until('100 Continue')
    const stopped = stop()
    await endWaits(GRACE_MS)
    await stopped
    expect(await connection.end()).not.toContain('"allowed"')
    expect(errors).toEqual([])
  })
})

describe('connections from one address', () => {
  it('are closed with 503 beyond the limit, and accepted again when others have ended', async () => {
    const observed: number[] = []
    const server = serverWith({
      connectionLimit: new ConnectionLimit({ perAddress: 2, exempt: [] }),
      observeRejection: (status) => observed.push(status),
    })
    await server.start()
    onTestFinished(() => server.stop())
    const port = server.port!
    const ask = async (connection: RawConnection): Promise<string> => {
      connection.send(rawCheck(BODY))
      return await connection.until('\r\n\r\n{}')
    }
    const [one, two] = [openRaw(port), openRaw(port)]
    expect(await ask(one)).toContain('HTTP/1.1 200')
    expect(await ask(two)).toContain('HTTP/1.1 200')
    const rejected = await openRaw(port).end()
    expect(rejected).toContain('HTTP/1.1 503')
    expect(rejected).toContain('SLUICE_HTTP_TOO_MANY_CONNECTIONS')
    expect(rejected).toContain('X-Content-Type-Options: nosniff\r\n')
    expect([observed, server.connections]).toEqual([[503], 2])
    one.close()
    await vi.waitUntil(() => server.connections === 1, 30_000)
    expect(await ask(openRaw(port))).toContain('HTTP/1.1 200')
  })

  it('are not limited when they come from this machine', async () => {
    const node = await startService({ maxConnectionsPerAddress: 1 })
    onTestFinished(() => node.stop())
    const connections = Array.from({ length: 8 }, () => openRaw(node.port))
    for (const connection of connections) {
      connection.send(rawCheck(BODY))
      await connection.until('"allowed":true')
    }
  })
})

describe('a place to listen that cannot be had', () => {
  it('reports a port in use, with the fix', async () => {
    const { port } = await freshService()
    const failure = await serverWith({ attempt: { ...ATTEMPT, port } })
      .start()
      .catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'SLUICE_SERVICE_PORT_IN_USE', cause: { code: 'EADDRINUSE' } })
    expect(String(failure)).toContain(`port ${port} on 127.0.0.1`)
    expect(String(failure)).toContain(`PORT=${port + 1}`)
  })

  it('reports a host that is not of this machine', async () => {
    // An address that is reserved for documentation.
    const failure = await serverWith({ attempt: { ...ATTEMPT, host: '192.0.2.1' } })
      .start()
      .catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'SLUICE_SERVICE_HOST_UNAVAILABLE' })
    expect(String(failure)).toContain('HOST=192.0.2.1')
  })
})
