// What users see for each mistake: one code, and text that says what to write instead. Nothing is
// sent.
import type { CheckRequest, FieldProblem } from '@sluice/contract'
import { problemDocument } from '@sluice/contract'
import { createLimiter } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { decisionOf } from './check-answers.ts'
import type { Client } from './client.ts'
import { createClient } from './create-client.ts'
import { limitedFetch } from './fetch/limited-fetch.ts'
import { retryFetch } from './fetch/retry-fetch.ts'
import { serviceLimiter } from './service-limiter.ts'
import { TableServer } from './table-server.test.support.ts'

/** Options as they are written without type checks. */
type Untyped = never

type Mistake = readonly [what: string, options: unknown, phrase: string]

const SECRET = 'slk_key_secret'
const URL_OPTION = 'http://127.0.0.1:9'
const CHECK: CheckRequest = { userId: 'user-123', resource: '/x' }

/** The error that `act` throws or rejects with. */
async function errorOf(act: () => unknown): Promise<{ readonly code?: unknown; readonly message: string }> {
  try {
    await act()
  } catch (error) {
    return error as Error
  }
  return { code: 'none', message: 'no error' }
}

async function expectAdvice(act: () => unknown, phrase: string): Promise<void> {
  const { code, message } = await errorOf(act)
  expect(message).toContain(phrase)
  expect(code).toBe('SLUICE_CLIENT_INVALID_OPTION')
  expect(message).not.toContain(SECRET)
}

const never = (): never => expect.fail('nothing is to be sent')
const client = createClient({ url: URL_OPTION, fetch: never })

describe('createClient', () => {
  it.each<Mistake>([
    [
      'nothing',
      undefined,
      'The options of createClient cannot be used; received undefined; expected an object such as',
    ],
    ['an address', `http://user:${SECRET}@host`, 'Write createClient({ url }).'],
    ['an address that was parsed', new URL(URL_OPTION), 'Write createClient({ url }).'],
    ['no address', {}, '"url" is missing; expected "http://host:port" or "https://host"'],
    ['an address without scheme', { url: 'localhost:8080' }, 'Put "http://" in front of it.'],
    ['a name without scheme', { url: 'limits' }, 'Put "http://" in front of it.'],
    ['another scheme', { url: 'redis://localhost' }, 'expected "http://host:port" or "https://host"'],
    ['a key in the address', { url: `http://${SECRET}@host` }, 'an API key is passed as "token".'],
    ['a number as address', { url: 8080 }, '"url" cannot be used; expected "http://host:port"'],
    ['an address under another name', { baseUrl: URL_OPTION }, 'Did you mean "url"?'],
    ['a key under another name', { url: URL_OPTION, apiKey: SECRET }, 'Did you mean "token"?'],
    ['a key with its scheme', { url: URL_OPTION, token: `Bearer ${SECRET}` }, 'Leave "Bearer" out'],
    ['a key that is none', { url: URL_OPTION, token: 5 }, 'expected an API key such as slk_..._...'],
    ['timeout', { url: URL_OPTION, timeout: 100 }, 'createClient has no option "timeout"'],
    ['what to write for it', { url: URL_OPTION, timeout: 100 }, 'Did you mean "timeoutMs"?'],
    ['a time in quotes', { url: URL_OPTION, timeoutMs: '100' }, 'Write the number without quotes: timeoutMs: 100.'],
    ['a time with its unit', { url: URL_OPTION, timeoutMs: '5s' }, 'received "5s"; expected milliseconds'],
    ['a misspelt failure mode', { url: URL_OPTION, failuremode: 'open' }, 'Did you mean "failureMode"?'],
    ['that of a store', { url: URL_OPTION, failureMode: 'local' }, 'expected "open", "closed" or "throw"'],
    ['retries', { url: URL_OPTION, retries: 3 }, 'Did you mean "retry"?'],
    ['retries in their place', { url: URL_OPTION, retry: { retries: 3 } }, '"retry" has no option "retries"'],
    ['what to write for them', { url: URL_OPTION, retry: { retries: 3 } }, 'Did you mean "maxRetries"?'],
    ['a number of retries', { url: URL_OPTION, retry: 3 }, 'Write { maxRetries: 3 }.'],
    ['retries or not', { url: URL_OPTION, retry: true }, 'Leave it out: calls are retried where that is safe.'],
    ['no retries', { url: URL_OPTION, retry: null }, 'expected options such as { maxRetries: 3 }, or false'],
    [
      'retries in quotes',
      { url: URL_OPTION, retry: { maxRetries: '3' } },
      'Write the number without quotes: maxRetries: 3.',
    ],
    ['waits that contradict', { url: URL_OPTION, retry: { baseMs: 10, capMs: 5 } }, 'at least baseMs, which is 10'],
    ['a batch in words', { url: URL_OPTION, batch: 'no' }, 'received "no"; expected true or false'],
    ['a fetch that is none', { url: URL_OPTION, fetch: {} }, '"fetch" cannot be used'],
    ['what there is not', { url: URL_OPTION, colour: 'red' }, 'expected only url, token, timeoutMs, failureMode'],
  ])('%s', async (_, options, phrase) => {
    await expectAdvice(() => createClient(options as Untyped), phrase)
  })
})

describe('a call', () => {
  const untyped = client as unknown as Readonly<Record<keyof Client, (...input: readonly unknown[]) => unknown>>
  const AN_OBJECT = 'expected an object such as { userId: "user-123", resource: "/api/v1/data" }'

  it.each<readonly [what: string, call: keyof Client, input: readonly unknown[], phrase: string]>([
    ['no check', 'check', [], `The request of check cannot be used; received undefined; ${AN_OBJECT}`],
    ['a key in place of a check', 'check', [SECRET], `The request of check cannot be used; ${AN_OBJECT}`],
    ['a list in place of a check', 'check', [[CHECK]], 'received an array of 1'],
    ['nothing to look at', 'peek', [], 'The request of peek cannot be used'],
    ['nothing to reserve', 'reserve', [], 'The request of reserve cannot be used'],
    ['nothing to settle', 'settle', ['id'], 'expected an object such as { reservationId, tokens: 3 }'],
    ['an id in place of a request', 'release', ['id'], 'expected an object such as { reservationId }'],
    ['nothing to take', 'acquire', [], 'The request of acquire cannot be used'],
    ['a wait with its unit', 'acquire', [{ ...CHECK, maxWaitMs: '1s' }], 'received "1s"; expected milliseconds'],
    ['nothing to keep', 'heartbeat', [], 'The request of heartbeat cannot be used'],
    ['nothing to report', 'report', [], 'The request of report cannot be used'],
    ['no batch', 'batch', [], 'expected a list such as [{ userId: "user-123"'],
    ['an object as batch', 'batch', [{}], 'received an object with no properties; expected a list such as'],
    ['nothing in a batch', 'batch', [[CHECK, null]], 'received null; expected checks such as'],
    ['timeout', 'check', [CHECK, { timeout: 5 }], 'check has no option "timeout"'],
    ['what to write for it', 'check', [CHECK, { timeout: 5 }], 'Did you mean "timeoutMs"?'],
    ['a time in quotes', 'reserve', [CHECK, { timeoutMs: '5' }], 'Write the number without quotes: timeoutMs: 5.'],
    ['a number as options', 'check', [CHECK, 500], 'received 500; expected an object such as { timeoutMs: 500 }'],
    ['nothing as options', 'check', [CHECK, null], 'received null; expected an object'],
    [
      'a controller',
      'check',
      [CHECK, { signal: new AbortController() }],
      'It is an AbortController: pass its "signal".',
    ],
    ['a controller for a list', 'items', ['listTiers', { signal: new AbortController() }], 'pass its "signal"'],
    ['a failure mode', 'reserve', [CHECK, { failureMode: 'open' }], 'reserve has no option "failureMode"'],
    ['no operation', 'call', [], 'There is no such operation; received undefined'],
    ['a misspelt operation', 'call', ['putTeir'], 'Did you mean "putTier"?'],
    ['what every object has', 'call', ['toString'], 'There is no such operation; received "toString"'],
    ['a parameter out of place', 'call', ['deleteTier', { name: 'gold' }], 'Did you mean "parameters"?'],
    ['no parameters', 'call', ['deleteTier'], 'no "name"; expected "name" for /admin/tiers/{name}'],
    ['an object as parameter', 'call', ['deleteTier', { parameters: { name: {} } }], 'expected a string or a number'],
    [
      'a revision in quotes',
      'call',
      ['deleteTier', { parameters: { name: 'a' }, ifMatch: '3' }],
      'a whole number from 0',
    ],
    ['pages of nothing', 'pages', ['nope'], 'There is no such operation; received "nope"'],
    [
      'pages of what has none',
      'pages',
      ['livez'],
      '"livez" has no pages; expected an operation that lists. Use call("livez").',
    ],
    ['items of what has none', 'items', ['livez'], '"livez" has no pages'],
    ['a stream of nothing', 'stream', ['nope'], 'There is no such operation'],
    ['a stream of what ends', 'stream', ['check'], '"check" is no stream; expected "live". Use call("check").'],
  ])('%s', async (_, call, input, phrase) => {
    await expectAdvice(() => untyped[call](...input), phrase)
  })

  it('a promise in place of its answer', async () => {
    await expectAdvice(() => decisionOf(Promise.resolve() as Untyped), 'It is a promise: await it first.')
    await expectAdvice(() => decisionOf(undefined as Untyped), 'expected the answer to a check')
  })
})

describe('retryFetch', () => {
  it.each<Mistake>([
    ['an address', `http://user:${SECRET}@host`, 'Pass the address to what it returns: retryFetch()(url).'],
    ['a request', new Request(URL_OPTION), 'Pass the address to what it returns: retryFetch()(url).'],
    ['a fetch', never, 'Write retryFetch({ fetch }).'],
    ['nothing', null, 'received null; expected an object such as { maxRetries: 3 }'],
    ['retries', { retries: 3 }, 'Did you mean "maxRetries"?'],
    ['a delay', { retryDelay: 3 }, 'Did you mean "baseMs"?'],
    ['statuses to try again', { retryOn: [500] }, 'Did you mean "statuses"?'],
    ['a time without its unit', { maxWait: 3 }, 'Did you mean "maxWaitMs"?'],
    ['the time of a call', { timeoutMs: 5 }, 'Give the time of a call with the call'],
    ['retries in quotes', { maxRetries: '3' }, 'Write the number without quotes: maxRetries: 3.'],
    ['fewer than none', { maxRetries: -1 }, 'expected a whole number of retries from 0, or Infinity'],
    ['a status', { statuses: 500 }, 'Write the numbers in a list: [500].'],
    ['statuses in quotes', { statuses: ['500', '503'] }, 'Write the numbers in a list: [500, 503].'],
    ['statuses in words', { statuses: 'all' }, 'expected a list of statuses such as [429, 503]'],
    ['a repetition that there is not', { repeat: true }, 'expected "idempotent", "refused" or "always"'],
    ['a wait with its unit', { maxWaitMs: '5s' }, 'received "5s"; expected milliseconds'],
    ['a fetch that is none', { fetch: {} }, '"fetch" cannot be used'],
    ['a name in place of a function', { onRetry: 'log' }, 'received "log"; expected a function'],
  ])('%s', async (_, options, phrase) => {
    await expectAdvice(() => retryFetch(options as Untyped), phrase)
  })

  it('a controller in place of its signal', async () => {
    const signal = new AbortController() as Untyped
    await expectAdvice(() => retryFetch({ fetch: never })(URL_OPTION, { signal }), 'pass its "signal"')
  })
})

describe('limitedFetch', () => {
  const limiter = createLimiter({ limit: 5, window: '1s' })

  it.each<Mistake>([
    ['nothing', undefined, 'expected an object such as { limiter: createLimiter({ limit: 100, window: "1s" }) }'],
    ['no limiter', {}, '"limiter" is missing; expected a limiter over time, such as createLimiter('],
    ['an address', URL_OPTION, 'Pass the address to what it returns: limitedFetch({ limiter })(url).'],
    ['a limiter', limiter, 'Write limitedFetch({ limiter }).'],
    ['a limit', { limit: 5, window: '1s' }, 'Write limitedFetch({ limiter: createLimiter({ limit, window }) }).'],
    ['a rule as limiter', { limiter: { limit: 5, window: '1s' } }, 'It is a rule: pass createLimiter(rule).'],
    [
      'a limiter of several rules',
      { limiter: createLimiter({ rules: { a: { limit: 5, window: '1s' } } }) },
      'It has several rules: pass the limiter of one, such as limiters.limiter("name").',
    ],
    ['a limiter to come', { limiter: Promise.resolve(limiter) }, 'It is a promise: await it first.'],
    ['a client as limiter', { limiter: client }, 'It is a client: pass serviceLimiter({ client, request }).'],
    [
      'slots',
      { limiter: createLimiter({ algorithm: 'concurrency', limit: 1, lease: '3s' }) },
      'take one with reserve() before the call and release() it after',
    ],
    ['a key', { limiter, key: 'github' }, 'Write a function that answers with it'],
    ['a time without its unit', { limiter, maxWait: 100 }, 'Did you mean "maxWaitMs"?'],
    ['a wait with its unit', { limiter, maxWaitMs: '1s' }, 'received "1s"; expected milliseconds'],
    ['half a unit', { limiter, cost: 1.5 }, 'received 1.5; expected a whole number of units, 0 or more, or a function'],
    ['a unit in quotes', { limiter, cost: '1' }, 'Write the number without quotes: cost: 1.'],
    ['tokens', { limiter, tokens: 1 }, 'Did you mean "cost"?'],
    ['a fetch that is none', { limiter, fetch: {} }, '"fetch" cannot be used'],
  ])('%s', async (_, options, phrase) => {
    await expectAdvice(() => limitedFetch(options as Untyped), phrase)
  })

  it('a controller in place of its signal', async () => {
    const signal = new AbortController() as Untyped
    await expectAdvice(() => limitedFetch({ limiter, fetch: never })(URL_OPTION, { signal }), 'pass its "signal"')
  })
})

describe('serviceLimiter', () => {
  const request = (): CheckRequest => CHECK

  it.each<Mistake>([
    ['nothing', undefined, 'The options of serviceLimiter cannot be used; received undefined'],
    ['a client', client, 'Write serviceLimiter({ client, request }).'],
    ['no client', { request }, '"client" is missing; expected a client, such as createClient({ url })'],
    ['an address as client', { client: URL_OPTION, request }, 'expected a client, such as createClient({ url })'],
    [
      'a limiter as client',
      { client: createLimiter({ limit: 5, window: '1s' }), request },
      'pass it to limitedFetch as it is',
    ],
    ['no request', { client }, '"request" is missing; expected a function such as (key, tokens) => ({ tenantId: key'],
    ['a request in place of a function', { client, request: CHECK }, 'expected a function such as (key, tokens) =>'],
    ['what there is not', { client, request, maxWaitMs: 5 }, 'serviceLimiter has no option "maxWaitMs"'],
  ])('%s', async (_, options, phrase) => {
    await expectAdvice(() => serviceLimiter(options as Untyped), phrase)
  })
})

describe('what the service rejects', () => {
  async function rejectionOf(
    status: number,
    code: 'SLUICE_HTTP_INVALID_REQUEST' | 'SLUICE_HTTP_UNAUTHORIZED',
    errors: readonly FieldProblem[],
  ): Promise<string> {
    const server = await TableServer.start()
    server.answer = (_, response) => {
      response.writeHead(status, { 'Content-Type': 'application/problem+json' })
      response.end(JSON.stringify(problemDocument(code, { detail: 'This is wrong.', errors })))
      return true
    }
    const { message } = await errorOf(() => createClient({ url: server.url }).call('listTiers'))
    return message
  }

  it('is reported field by field, up to a readable number', async () => {
    const errors = Array.from({ length: 7 }, (_, index) => ({
      path: `/field${index}`,
      received: 'an unknown field',
      expected: 'only userId, resource, tokens',
    }))
    const one = await rejectionOf(400, 'SLUICE_HTTP_INVALID_REQUEST', errors.slice(0, 1))
    expect(one).toMatch(
      /This is wrong\. \/field0: received an unknown field; expected only userId, resource, tokens\.$/,
    )
    const many = await rejectionOf(400, 'SLUICE_HTTP_INVALID_REQUEST', errors)
    expect(many).toMatch(
      /\/field4: received an unknown field; expected only userId, resource, tokens\. "errors" has 2 more\.$/,
    )
    const line = await rejectionOf(400, 'SLUICE_HTTP_INVALID_REQUEST', [
      { path: '', received: 'a', expected: 'b', line: 3 },
    ])
    expect(line).toMatch(/the body \(line 3\): received a; expected b\.$/)
  })

  it('for want of a key names the option that takes it', async () => {
    const message = await rejectionOf(401, 'SLUICE_HTTP_UNAUTHORIZED', [])
    expect(message).toMatch(/This is wrong\. Pass the API key to createClient as "token"\.$/)
  })
})
