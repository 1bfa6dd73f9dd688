import type { Operation, OperationId } from '@sluice/contract'
import { problemDocument } from '@sluice/contract'
import { freePort } from '@sluice/testing/servers'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Client } from './client.ts'
import type { ClientOptions } from './client-options.ts'
import { createClient } from './create-client.ts'
import { isClientError } from './errors/client-error.ts'
import { ALL_OPERATIONS, answerJson, exampleOf, exampleOfSchema, TableServer } from './table-server.test.support.ts'

const TOKEN = 'slk_4f9d1c_a-secret-never-to-be-printed'

type AnyCall = (id: OperationId, input: object) => Promise<unknown>

async function start(options: Partial<ClientOptions> = {}): Promise<{ server: TableServer; client: Client }> {
  const server = await TableServer.start()
  // What is tried again has tests of its own.
  return { server, client: createClient({ url: server.url, retry: false, ...options }) }
}

/** What a promise was rejected with. */
async function failure(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    (value) => expect.fail(`it went well: ${JSON.stringify(value)}`),
    (error: unknown) => error,
  )
}

async function collected<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

/** A value for each parameter of an operation. */
function parametersOf({ parameters }: Operation): Record<string, string | number> {
  const values = Object.entries(parameters).map(([name, { schema }]) => [name, schema.type === 'integer' ? 2 : 'value'])
  return Object.fromEntries(values)
}

describe('a call', () => {
  const plain = ALL_OPERATIONS.filter(({ streams }) => !streams)

  it.each(plain.map((operation) => [operation.id, operation] as const))(
    'of %s goes where the table of operations says, and gives the answer',
    async (id, operation) => {
      const { server, client } = await start({ token: TOKEN })
      const body = operation.body === undefined ? undefined : exampleOfSchema(operation.body)
      const parameters = parametersOf(operation)
      const answer = await (client.call as AnyCall)(id as OperationId, { parameters, body })
      expect(answer).toEqual(exampleOf(operation).body)
      const [asked] = server.asked
      expect(asked).toMatchObject({ id, method: operation.method, headers: { authorization: `Bearer ${TOKEN}` } })
      expect(asked?.body).toEqual(body)
      const texts = Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, String(value)]))
      expect({ ...asked?.params, ...asked?.query }).toEqual(texts)
    },
  )

  it('has a short form for everything that is done before a call is let through, and after it', async () => {
    const { server, client } = await start()
    const check = { userId: 'user-123', resource: '/x' }
    await client.check(check)
    await client.peek(check)
    await client.reserve({ ...check, expiresAfterMs: 10 })
    await client.settle({ reservationId: 'r', tokens: 2 })
    await client.release({ reservationId: 'r' })
    await client.acquire({ ...check, maxWaitMs: 10 })
    await client.heartbeat({ reservationId: 'r' })
    await client.report({ resource: '/x', failed: true })
    expect(await client.batch([check, check])).toEqual((exampleOf(ALL_OPERATIONS[1]!).body as { answers: [] }).answers)
    expect(server.asked.map(({ id, body }) => [id, body])).toEqual([
      ['check', check],
      ['peek', check],
      ['reserve', { ...check, expiresAfterMs: 10 }],
      ['settle', { reservationId: 'r', tokens: 2 }],
      ['release', { reservationId: 'r' }],
      ['acquire', { ...check, maxWaitMs: 10 }],
      ['heartbeat', { reservationId: 'r' }],
      ['report', { reports: [{ resource: '/x', failed: true }] }],
      ['checkBatch', { requests: [check, check] }],
    ])
  })

  it('that is denied by a limit is an answer', async () => {
    const { server, client } = await start()
    const denied = { allowed: false, reason: 'limit', remaining: 0, retryAfter: 45 }
    server.answer = (_, response) => answerJson(response, 429, denied)
    expect(await client.check({ resource: '/x' })).toEqual(denied)
  })

  it('says which revision it has seen', async () => {
    const { server, client } = await start()
    const input = { parameters: { name: 'premium' }, body: { name: 'premium', multiplier: 2 } }
    await client.call('putTier', { ...input, ifMatch: 13 })
    await client.call('putTier', { ...input, ifMatch: '*' })
    await client.call('putTier', input)
    expect(server.asked.map(({ headers }) => headers['if-match'])).toEqual(['"13"', '*', undefined])
  })

  it('reaches a service behind a path', async () => {
    const { server } = await start()
    server.answer = ({ path }, response) => answerJson(response, 200, { path })
    const client = createClient({ url: `${server.url}/limits/` })
    expect(await client.call('livez')).toEqual({ path: '/limits/livez' })
  })

  it('passes any string on as it is', async () => {
    const { server, client } = await start()
    const name = fc.string({ unit: 'grapheme', minLength: 1 }).filter((text) => !/^\.\.?$/.test(text))
    await fc.assert(
      fc.asyncProperty(name, fc.string({ unit: 'grapheme' }), async (path, query) => {
        server.asked.length = 0
        await client.call('deleteTier', { parameters: { name: path } })
        await client.call('deleteRateLimits', { parameters: { resource: query } })
        expect(server.asked.map(({ params }) => params)).toEqual([{ name: path.toWellFormed() }, {}])
        expect(server.asked[1]?.query).toEqual({ resource: query.toWellFormed() })
      }),
      { numRuns: 50 },
    )
  })

  it('is made on a connection that is kept', async () => {
    const { server, client } = await start()
    for (let call = 0; call < 20; call++) await client.check({ resource: '/x' })
    expect(server.asked).toHaveLength(20)
    // A second one is made when the second call begins before the end of the first answer was seen.
    expect(server.connections).toBeLessThanOrEqual(2)
  })
})

describe('a problem', () => {
  it('is an error with everything that the service said', async () => {
    const { server, client } = await start()
    const errors = [{ path: '/tokens', received: '-1', expected: 'a whole number from 0' }]
    server.answer = (_, response) => {
      response.writeHead(400, { 'Content-Type': 'application/problem+json' })
      response.end(JSON.stringify(problemDocument('SLUICE_HTTP_INVALID_REQUEST', { detail: 'One thing.', errors })))
      return true
    }
    const error = await failure(client.check({ resource: '/x' }))
    expect(isClientError(error, 'SLUICE_HTTP_INVALID_REQUEST')).toBe(true)
    expect(error).toMatchObject({ status: 400, detail: 'One thing.', errors, retryAfterMs: undefined })
    expect(String(error)).toBe(
      'ClientError: SLUICE_HTTP_INVALID_REQUEST: The request has invalid fields. One thing. /tokens: received -1; ' +
        'expected a whole number from 0.',
    )
  })

  it('of a limited kind says when to come back', async () => {
    const { server, client } = await start()
    const checks = [{ name: 'config', ready: false, detail: 'no rules' }]
    server.answer = (_, response) => {
      response.writeHead(503, { 'Content-Type': 'application/problem+json; charset=utf-8', 'Retry-After': '2' })
      response.end(JSON.stringify(problemDocument('SLUICE_HTTP_NOT_READY', { detail: 'Later.', checks })))
      return true
    }
    const error = await failure(client.call('readyz'))
    expect(error).toMatchObject({ code: 'SLUICE_HTTP_NOT_READY', retryAfterMs: 2000, checks })
  })
})

describe('an answer that the service never gives', () => {
  it.each([
    ['a page of a proxy', 502, 'text/html', '<html>'],
    ['a page in the place of an answer', 200, 'text/html', '<html>'],
    ['a status that the operation does not have', 201, 'application/json', '{}'],
    ['what is not JSON', 200, 'application/json', '{'],
    ['a problem of an unknown kind', 400, 'application/problem+json', '{"code":"OTHER","status":400,"detail":""}'],
    ['a problem that is none', 400, 'application/problem+json', 'null'],
    ['a status of a problem without one', 503, 'application/json', '{}'],
    ['nothing', 200, '', ''],
  ])('such as %s is an error', async (_, status, type, text) => {
    const { server, client } = await start()
    server.answer = (_asked, response) => {
      response.writeHead(status, type === '' ? {} : { 'Content-Type': type }).end(text)
      return true
    }
    const error = await failure(client.check({ resource: '/x' }))
    expect(error).toMatchObject({ code: 'SLUICE_CLIENT_UNEXPECTED_ANSWER', status })
  })

  it('is not taken for a string either', async () => {
    const { server, client } = await start()
    server.answer = (_, response) => {
      response.writeHead(200, { 'Content-Type': 'text/html' }).end('<html>')
      return true
    }
    expect(await failure(client.call('metrics'))).toMatchObject({ code: 'SLUICE_CLIENT_UNEXPECTED_ANSWER' })
  })

  it('such as a redirect is not followed, and the key is not sent', async () => {
    const { server, client } = await start({ token: TOKEN })
    const other = await TableServer.start()
    server.answer = (_, response) => {
      response.writeHead(307, { Location: `${other.url}/livez` }).end()
      return true
    }
    expect(await failure(client.call('livez'))).toMatchObject({ code: 'SLUICE_CLIENT_UNEXPECTED_ANSWER', status: 307 })
    expect(other.asked).toEqual([])
  })
})

describe('a service that does not answer', () => {
  it('is an error that names it and why', async () => {
    const port = await freePort()
    const client = createClient({ url: `http://127.0.0.1:${port}`, token: TOKEN, retry: false })
    const error = await failure(client.check({ resource: '/x' }))
    expect(error).toMatchObject({ code: 'SLUICE_CLIENT_UNREACHABLE', status: undefined })
    expect(String(error)).toContain(`http://127.0.0.1:${port} does not answer: connect ECONNREFUSED 127.0.0.1:${port}.`)
    expect(String(error)).not.toContain(TOKEN)
  })

  it('in the middle of an answer is the same', async () => {
    const { server, client } = await start()
    server.answer = (_, response) => {
      response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': 100 })
      response.write('{"allowed":', () => response.destroy())
      return true
    }
    expect(await failure(client.check({ resource: '/x' }))).toMatchObject({ code: 'SLUICE_CLIENT_UNREACHABLE' })
  })

  it('is waited for as long as is said, and not longer', async () => {
    const waits: number[] = []
    const sleep = (ms: number): Promise<void> => {
      waits.push(ms)
      return Promise.resolve()
    }
    const { server, client } = await start({ timeoutMs: 700, sleep })
    server.answer = () => true
    expect(await failure(client.check({ resource: '/x' }))).toMatchObject({
      code: 'SLUICE_CLIENT_TIMEOUT',
      detail: expect.stringContaining('No answer within 700 ms'),
    })
    await failure(client.check({ resource: '/x' }, { timeoutMs: 90 }))
    await failure(client.acquire({ resource: '/x', maxWaitMs: 1000 }))
    expect(waits).toEqual([700, 90, 1700])
  })

  it('is not waited for any more when it has answered', async () => {
    const signals: (AbortSignal | undefined)[] = []
    const sleep = (_: number, signal?: AbortSignal): Promise<void> => {
      signals.push(signal)
      return new Promise(() => undefined)
    }
    const { client } = await start({ sleep })
    await client.check({ resource: '/x' })
    expect(signals.map((signal) => signal?.aborted)).toEqual([true])
  })
})

describe('a call that its caller ends', () => {
  it('rejects with the reason of the caller', async () => {
    const { server, client } = await start()
    const controller = new AbortController()
    server.answer = () => {
      controller.abort('enough')
      return true
    }
    expect(await failure(client.check({ resource: '/x' }, { signal: controller.signal }))).toBe('enough')
  })

  it('is not made when it has ended before', async () => {
    const { server, client } = await start()
    expect(await failure(client.check({ resource: '/x' }, { signal: AbortSignal.abort('no') }))).toBe('no')
    expect(server.asked).toEqual([])
  })
})

describe('items', () => {
  /** A list of `count` items on pages of two. */
  function paging(server: TableServer, count: number): void {
    server.answer = ({ query }, response) => {
      const from = Number(query['after'] ?? 0)
      const items = Array.from({ length: Math.min(2, count - from) }, (_, index) => from + index)
      const next = from + 2 < count ? { next: String(from + 2) } : {}
      return answerJson(response, 200, { items, ...next })
    }
  }

  it('are those of all pages, in their order', async () => {
    const { server, client } = await start()
    paging(server, 5)
    const list = client.items('listOverrides', { parameters: { dimension: 'user', limit: 2 } })
    expect(await collected(list)).toEqual([0, 1, 2, 3, 4])
    expect(server.asked.map(({ query }) => query)).toEqual([
      { dimension: 'user', limit: '2' },
      { dimension: 'user', limit: '2', after: '2' },
      { dimension: 'user', limit: '2', after: '4' },
    ])
    expect(await collected(list)).toHaveLength(5)
  })

  it('are requested as they are read', async () => {
    const { server, client } = await start()
    paging(server, 100)
    for await (const item of client.items('listVersions')) if ((item as unknown) === 3) break
    expect(server.asked).toHaveLength(2)
  })

  it('end when a page names itself as the next', async () => {
    const { server, client } = await start()
    server.answer = (_, response) => answerJson(response, 200, { items: [1], next: 'same' })
    const error = await failure(collected(client.items('listVersions')))
    expect(error).toMatchObject({ code: 'SLUICE_CLIENT_UNEXPECTED_ANSWER' })
  })
})

describe('what cannot be used', () => {
  it.each([
    ['no address', { url: 'localhost' }],
    ['another protocol', { url: 'ftp://host' }],
    ['a user in the address', { url: 'http://user@host' }],
    ['a password in the address', { url: `http://user:${TOKEN}@host` }],
    ['a query in the address', { url: 'http://host/?a' }],
    ['a key with a line end', { url: 'http://host', token: `${TOKEN}\nX: y` }],
    ['an empty key', { url: 'http://host', token: '' }],
    ['no time', { url: 'http://host', timeoutMs: 0 }],
    ['time that is no number', { url: 'http://host', timeoutMs: Number.NaN }],
  ])('such as %s is rejected before anything is sent, and no secret is shown', (_, options) => {
    const make = (): Client => createClient(options)
    expect(make).toThrow(expect.objectContaining({ code: 'SLUICE_CLIENT_INVALID_OPTION' }))
    expect(make).not.toThrow(TOKEN)
  })

  it.each([
    ['an unknown parameter', 'livez', { parameters: { colour: 'red' } }, 'the parameter "colour"; expected none'],
    ['a missing part of the path', 'deleteTier', {}, 'no "name"; expected "name" for /admin/tiers/{name}'],
    ['a step up in the path', 'deleteTier', { parameters: { name: '..' } }, '"name" as ".."'],
  ])('such as %s is rejected by the call', async (_, id, input, words) => {
    const { server, client } = await start()
    const error = await failure((client.call as AnyCall)(id as OperationId, input))
    expect(error).toMatchObject({ code: 'SLUICE_CLIENT_INVALID_OPTION', detail: expect.stringContaining(words) })
    expect(server.asked).toEqual([])
  })
})

describe('isClientError', () => {
  it('knows errors of this package by their names and codes', () => {
    const copy = Object.assign(new Error('x'), { name: 'ClientError', code: 'SLUICE_CLIENT_TIMEOUT' })
    expect(isClientError(copy)).toBe(true)
    expect(isClientError(copy, 'SLUICE_CLIENT_UNREACHABLE')).toBe(false)
    expect(isClientError(Object.assign(new Error('x'), { code: 'SLUICE_CLIENT_TIMEOUT' }))).toBe(false)
    expect(isClientError(Object.assign(new Error('x'), { name: 'ClientError', code: 'toString' }))).toBe(false)
    expect(isClientError(undefined)).toBe(false)
  })
})
