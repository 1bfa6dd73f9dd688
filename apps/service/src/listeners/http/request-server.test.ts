import { createConnection } from 'node:net'
import type { ProblemDocument } from '@sluice/contract'
import { InFlight, systemTurnEnd } from '@sluice/runtime'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Answer, StreamAnswer } from '../../operations/handler.ts'
import { jsonAnswer } from '../../operations/handler.ts'
import { problemAnswer } from '../../operations/problems.ts'
import { RawConnection } from '../../service.fixture.ts'
import { ConnectionLimit } from '../connection-limit.ts'
import type { Endpoint } from './endpoints.ts'
import { HttpServer } from './http-server.ts'
import { BodyReader } from './request-body.ts'
import type { FailureDetails } from './request-server.ts'
import { RequestServer } from './request-server.ts'
import { STREAM_GRACE_MS } from './stream-answer.ts'

const OK = jsonAnswer(200, '{}')
const READER = new BodyReader(1_000_000)
const TIMEOUTS = { headersMs: 60_000, requestMs: 60_000, idleMs: 60_000, checkEveryMs: 1000 }

interface Running {
  readonly origin: string
  readonly server: HttpServer
  readonly errors: [unknown, FailureDetails][]
  connect(): RawConnection
  /** The waits for clients that do not read, in milliseconds, and what ends them. */
  readonly waits: { readonly delayMs: number; readonly wake: () => void }[]
}

/** A server that answers everything by one endpoint. */
async function serve(endpoint: Partial<Endpoint>, atTurnEnd = systemTurnEnd): Promise<Running> {
  const errors: [unknown, FailureDetails][] = []
  const target: Endpoint = {
    name: 'GET /x',
    inFlightLimit: undefined,
    admit: undefined,
    decode: ({ params }) => ({ ok: true, parameters: params, precondition: undefined }),
    narrow: undefined,
    body: undefined,
    handle: () => OK,
    hasRequestId: true,
    ...endpoint,
  }
  const waits: Running['waits'] = []
  const requests = new RequestServer({
    sleep: (delayMs, signal) =>
      new Promise((resolve, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason))
        waits.push({ delayMs, wake: resolve })
      }),
    route: () => ({ target, params: { name: 'gold' } }),
    reportError: (error, details) => errors.push([error, details]),
    newRequestId: () => 'made-here',
    atTurnEnd,
  })
  const server = new HttpServer({
    name: 'http',
    attempt: { host: '127.0.0.1', port: 0, variables: { port: 'PORT', host: 'HOST' } },
    requests,
    reportError: (error) => errors.push([error, { operation: '', requestId: '' }]),
    timeouts: TIMEOUTS,
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
  return { origin: `http://127.0.0.1:${server.port}`, server, errors, connect, waits }
}

async function problemOf(response: Response): Promise<[number, string]> {
  const { code, status } = (await response.json()) as ProblemDocument
  expect(response.headers.get('content-type')).toBe('application/problem+json')
  expect(status).toBe(response.status)
  return [response.status, code]
}

/** A request with a body that is answered at the end of its turn. */
const CHECKED: Partial<Endpoint> = {
  body: { reader: READER, maxBytes: 100, decode: (body) => ({ ok: true, body }) },
  answersAtTurnEnd: true,
}
const CHECK = 'PUT /x HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}'

const JSON_HEADERS = { 'Content-Type': 'application/json' }

describe('a request', () => {
  it('comes to the handler with all there is to know', async () => {
    const seen: unknown[] = []
    const { origin } = await serve({
      admit: () => ({ id: 'k1', name: 'ada', role: 'editor' }),
      decode: ({ params, query, hasQuery }) => {
        const parameters = { ...params, ...Object.fromEntries(query), hasQuery }
        return { ok: true, parameters, precondition: 7 }
      },
      body: { reader: READER, maxBytes: 100, decode: (body) => ({ ok: true, body: { decoded: body } }) },
      handle: ({ parameters, precondition, headers, body, principal, remoteAddress, signal }) => {
        seen.push({ parameters, precondition, kind: headers['x-kind'], body, principal, remoteAddress })
        seen.push(signal.aborted)
        return OK
      },
    })
    const kind = { ...JSON_HEADERS, 'X-Kind': 'a' }
    await fetch(`${origin}/any?a=1&b=%20#c`, { method: 'PUT', headers: kind, body: '{"x":1}' })
    const [known, aborted] = seen
    expect(known).toEqual({
      parameters: { name: 'gold', a: '1', b: ' ', hasQuery: true },
      precondition: 7,
      kind: 'a',
      body: { decoded: { x: 1 } },
      principal: { id: 'k1', name: 'ada', role: 'editor' },
      remoteAddress: '127.0.0.1',
    })
    expect(aborted).toBe(false)
  })

  it('is aborted when its client goes away before it is answered', async () => {
    const begun = Promise.withResolvers<AbortSignal>()
    const answer = Promise.withResolvers<Answer>()
    const { connect } = await serve({
      handle: ({ signal }) => {
        begun.resolve(signal)
        return answer.promise
      },
    })
    const connection = connect()
    connection.send('GET / HTTP/1.1\r\nHost: test\r\n\r\n')
    const gone = await begun.promise
    const aborted = new Promise<void>((resolve) => gone.addEventListener('abort', () => resolve()))
    connection.close()
    await aborted
    answer.resolve(OK)
  })
})

describe('the steps before a handler', () => {
  it('end with the first that rejects, and nothing of the body is looked at before the key', async () => {
    const { origin } = await serve({
      admit: () => problemAnswer('SLUICE_HTTP_UNAUTHORIZED', { detail: 'no' }),
      decode: () => ({ ok: false, answer: problemAnswer('SLUICE_HTTP_INVALID_REQUEST', { detail: 'no' }) }),
      body: { reader: READER, maxBytes: 1, decode: (body) => ({ ok: true, body }) },
    })
    const response = await fetch(origin, { method: 'PUT', headers: JSON_HEADERS, body: 'not JSON' })
    expect(await problemOf(response)).toEqual([401, 'SLUICE_HTTP_UNAUTHORIZED'])
  })

  it('look at the parameters before the body', async () => {
    const { origin } = await serve({
      admit: () => Promise.resolve({ id: 'k1', name: 'ada', role: 'admin' as const }),
      decode: () => ({ ok: false, answer: problemAnswer('SLUICE_HTTP_NOT_FOUND', { detail: 'no' }) }),
      body: { reader: READER, maxBytes: 1, decode: (body) => ({ ok: true, body }) },
    })
    const response = await fetch(origin, { method: 'PUT', headers: JSON_HEADERS, body: 'not JSON' })
    expect(await problemOf(response)).toEqual([404, 'SLUICE_HTTP_NOT_FOUND'])
  })

  it('report all problems of the body, up to a limit', async () => {
    const problems = Array.from({ length: 70 }, (_, index) => ({ path: `/${index}`, received: 'a', expected: 'b' }))
    const { origin } = await serve({
      body: { reader: READER, maxBytes: 100, decode: () => ({ ok: false, problems }) },
    })
    const response = await fetch(origin, { method: 'PUT', headers: JSON_HEADERS, body: '{}' })
    const { errors, detail, code } = (await response.json()) as ProblemDocument
    expect([response.status, code]).toEqual([400, 'SLUICE_HTTP_INVALID_REQUEST'])
    expect(errors).toEqual(problems.slice(0, 64))
    expect(detail).toContain('70 things are wrong')
    expect(detail).toContain('6 more that are not listed')
  })

  it('narrow a request with the key of a tenant to that tenant before decoding, or reject it', async () => {
    const seen: unknown[] = []
    const { origin } = await serve({
      admit: () => ({ id: 'k1', name: 'ada', role: 'editor', tenant: 'acme' }),
      narrow: ({ parameters, body }, tenant) =>
        body === 'other'
          ? problemAnswer('SLUICE_HTTP_FORBIDDEN', { detail: 'no' })
          : { parameters: { ...parameters, tenant }, body: [body, tenant] },
      body: { reader: READER, maxBytes: 100, decode: (body) => ({ ok: true, body: { decoded: body } }) },
      handle: ({ parameters, body }) => {
        seen.push(parameters, body)
        return OK
      },
    })
    const ask = (body: string): Promise<Response> => fetch(origin, { method: 'PUT', headers: JSON_HEADERS, body })
    expect(await problemOf(await ask('"other"'))).toEqual([403, 'SLUICE_HTTP_FORBIDDEN'])
    expect([(await ask('1')).status, seen]).toEqual([200, [{ name: 'gold', tenant: 'acme' }, { decoded: [1, 'acme'] }]])
  })

  it('that fail are a 500', async () => {
    const { origin, errors } = await serve({ admit: () => Promise.reject(new Error('no keys')) })
    expect(await problemOf(await fetch(origin))).toEqual([500, 'SLUICE_HTTP_INTERNAL'])
    expect(errors).toEqual([[new Error('no keys'), { operation: 'GET /x', requestId: 'made-here' }]])
  })
})

describe('a handler that fails', () => {
  it.each<[string, Endpoint['handle']]>([
    [
      'at once',
      () => {
        throw new Error('slk_secret')
      },
    ],
    ['later', () => Promise.reject(new Error('slk_secret'))],
  ])('%s is a 500 that tells the client nothing but where to look, and the log all', async (_title, handle) => {
    const { origin, errors } = await serve({ handle, hasRequestId: false })
    const response = await fetch(origin)
    const text = await response.text()
    expect(response.status).toBe(500)
    expect(response.headers.get('x-request-id')).toBe('made-here')
    expect(text).toContain('made-here')
    expect(text).not.toContain('slk_secret')
    expect(errors).toEqual([[new Error('slk_secret'), { operation: 'GET /x', requestId: 'made-here' }]])
  })

  it('with an answer that cannot be sent is a 500 too', async () => {
    const unsendable = jsonAnswer(200, '{}', { headers: { 'X-A': 'a\nb' } })
    const { origin, errors } = await serve({ handle: () => Promise.resolve(unsendable) })
    expect(await problemOf(await fetch(origin))).toEqual([500, 'SLUICE_HTTP_INTERNAL'])
    expect(errors).toMatchObject([[{ code: 'ERR_INVALID_CHAR' }, {}]])
  })
})

describe('requests that are answered at the end of a turn', () => {
  const BODY = 'POST / HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n'

  it('are answered in order on each connection, those that fail among them', async () => {
    const handle: Endpoint['handle'] = ({ body }) => {
      if (body === 2) throw new Error('no')
      return body === 3 ? Promise.resolve(jsonAnswer(200, '"later 3"')) : jsonAnswer(200, `"now ${body}"`)
    }
    const { connect, errors } = await serve({
      handle,
      body: { reader: READER, maxBytes: 10, decode: (body) => ({ ok: true, body }) },
      answersAtTurnEnd: true,
    })
    const connection = connect()
    connection.send(`${BODY}1${BODY}2${BODY}3${BODY}4`)
    const text = await connection.until('now 4')
    expect(text.match(/HTTP\/1\.1 \d+|now \d|later \d/g)).toEqual([
      ...['HTTP/1.1 200', 'now 1', 'HTTP/1.1 500', 'HTTP/1.1 200', 'later 3', 'HTTP/1.1 200', 'now 4'],
    ])
    expect(errors).toMatchObject([[new Error('no'), {}]])
  })
})

describe('the id of a request', () => {
  it.each([
    ['abc-1.2:3_4', 'abc-1.2:3_4'],
    ['a b', 'made-here'],
    ['x'.repeat(65), 'made-here'],
    [undefined, 'made-here'],
  ])('%j becomes %j', async (given, id) => {
    const { origin } = await serve({})
    const response = await fetch(origin, { headers: given === undefined ? {} : { 'X-Request-Id': given } })
    expect(response.headers.get('x-request-id')).toBe(id)
  })

  it('is not on answers that need none', async () => {
    const { origin } = await serve({ hasRequestId: false })
    expect((await fetch(origin)).headers.has('x-request-id')).toBe(false)
  })
})

describe('a inFlightLimit', () => {
  it('rejects beyond its bound with 503 and Retry-After, and accepts again when there is room', async () => {
    const answers: PromiseWithResolvers<Answer>[] = []
    let begun = Promise.withResolvers<void>()
    const inFlightLimit = new InFlight({ most: 2 })
    const { origin } = await serve({
      inFlightLimit,
      handle: () => {
        answers.push(Promise.withResolvers<Answer>())
        if (answers.length === 2) begun.resolve()
        return answers.at(-1)!.promise
      },
    })
    const [one, two] = [fetch(origin), fetch(origin)]
    await begun.promise
    const rejected = await fetch(origin, { method: 'POST', body: 'x' })
    expect(rejected.headers.get('retry-after')).toBe('1')
    expect(rejected.headers.get('cache-control')).toBe('no-store')
    expect(await problemOf(rejected)).toEqual([503, 'SLUICE_HTTP_OVERLOADED'])
    begun = Promise.withResolvers()
    answers[0]!.resolve(OK)
    answers[1]!.resolve(OK)
    expect([(await one).status, (await two).status]).toEqual([200, 200])
    const third = fetch(origin)
    await vi.waitUntil(() => answers.length === 3, 30_000)
    answers[2]!.resolve(OK)
    expect((await third).status).toBe(200)
    expect(inFlightLimit.counts()).toMatchObject({ peak: 2, entered: 3, refusedFull: 1 })
  })

  it('has room again when a request is answered, or its client has gone before the end of the turn', async () => {
    const inFlightLimit = new InFlight({ most: 100 })
    const ends: (() => void)[] = []
    let handled = 0
    const handle = (): Answer => {
      handled++
      return OK
    }
    const { connect, server } = await serve({ inFlightLimit, handle, ...CHECKED }, (run) => void ends.push(run))
    const [stays, goes] = [connect(), connect()]
    for (let count = 1; count <= 4; count++) {
      stays.send(CHECK)
      await vi.waitUntil(() => handled === count, 30_000)
      expect(inFlightLimit.counts()).toMatchObject({ current: 0, entered: count })
    }
    // Four requests in one turn: those of the next wait for its end.
    ends.pop()!()
    goes.send(CHECK)
    stays.send(CHECK)
    await vi.waitUntil(() => inFlightLimit.counts().current === 2, 30_000)
    goes.close()
    await vi.waitUntil(() => server.connections === 1, 30_000)
    ends.pop()!()
    expect(handled).toBe(5)
    expect(inFlightLimit.counts()).toMatchObject({ current: 0, entered: 6 })
  })

  it('has room again when a client goes away', async () => {
    const inFlightLimit = new InFlight({ most: 1 })
    const begun = Promise.withResolvers<void>()
    const { connect } = await serve({
      inFlightLimit,
      handle: ({ signal }) => {
        begun.resolve()
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
    })
    const connection = connect()
    connection.send('GET / HTTP/1.1\r\nHost: test\r\n\r\n')
    await begun.promise
    connection.close()
    await vi.waitUntil(() => inFlightLimit.counts().current === 0, 30_000)
    expect(inFlightLimit.counts().entered).toBe(1)
  })
})

describe('an answer that goes on', () => {
  const HEADERS = { 'Content-Type': 'text/event-stream' }

  it('is written as it comes, and over when its source says so', async () => {
    const stopped: string[] = []
    const stream: StreamAnswer = {
      status: 200,
      headers: HEADERS,
      stream: (write, end) => {
        write('data: 1\n\n')
        void Promise.resolve().then(() => {
          write('data: 2\n\n')
          end()
        })
        return () => void stopped.push('stopped')
      },
    }
    const { origin } = await serve({ handle: () => stream })
    const response = await fetch(origin)
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    expect(await response.text()).toBe('data: 1\n\ndata: 2\n\n')
    expect(stopped).toEqual(['stopped'])
  })

  it('may be over at once', async () => {
    let stops = 0
    const stream: StreamAnswer = {
      status: 200,
      headers: HEADERS,
      stream: (write, end) => {
        write('x')
        end()
        return () => void stops++
      },
    }
    const { origin } = await serve({ handle: () => Promise.resolve(stream) })
    expect(await (await fetch(origin)).text()).toBe('x')
    expect(stops).toBe(1)
  })

  it('ends when its client goes away', async () => {
    const stopped = Promise.withResolvers<void>()
    const stream: StreamAnswer = {
      status: 200,
      headers: HEADERS,
      stream: (write) => {
        write('data: 1\n\n')
        return stopped.resolve
      },
    }
    const { connect } = await serve({ handle: () => stream })
    const connection = connect()
    connection.send('GET / HTTP/1.1\r\nHost: test\r\n\r\n')
    await connection.until('data: 1')
    connection.close()
    await stopped.promise
  })

  it('ends when the server stops', async () => {
    const stream: StreamAnswer = {
      status: 200,
      headers: HEADERS,
      stream: (write) => {
        write('data: 1\n\n')
        return () => undefined
      },
    }
    const { connect, server } = await serve({ handle: () => stream })
    const connection = connect()
    connection.send('GET / HTTP/1.1\r\nHost: test\r\n\r\n')
    await connection.until('data: 1')
    await server.stop()
    expect(await connection.end()).toContain('0\r\n\r\n')
  })

  it('that was ended is cut when its client does not read what is left', async () => {
    const begun = Promise.withResolvers<() => void>()
    const stream: StreamAnswer = {
      status: 200,
      headers: HEADERS,
      stream: (write, finish) => {
        begun.resolve(finish)
        // More than the system takes for a client that does not read.
        while (write('x'.repeat(1_048_576)));
        for (let more = 0; more < 32; more++) write('x'.repeat(1_048_576))
        return () => undefined
      },
    }
    const { server, waits } = await serve({ handle: () => stream })
    const client = createConnection(server.port!, '127.0.0.1')
    onTestFinished(() => void client.destroy())
    client.on('error', () => undefined)
    client.pause()
    client.write('GET /x HTTP/1.1\r\nHost: test\r\n\r\n')
    const end = await begun.promise
    end()
    expect(waits.map(({ delayMs }) => delayMs)).toEqual([STREAM_GRACE_MS])
    expect(server.connections).toBe(1)
    waits[0]!.wake()
    await vi.waitUntil(() => server.connections === 0)
  })

  it('has only headers for HEAD', async () => {
    const handle = (): StreamAnswer => ({ status: 200, headers: HEADERS, stream: () => expect.fail('it was begun') })
    const { origin } = await serve({ handle })
    const response = await fetch(origin, { method: 'HEAD' })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
  })
})
