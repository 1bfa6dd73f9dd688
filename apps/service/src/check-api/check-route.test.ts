import type { ProblemDocument } from '@sluice/contract'
import { createLimiter } from '@sluice/core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { RunningService } from '../service.fixture.ts'
import { answerOf, startService } from '../service.fixture.ts'
import { checkRoute } from './check-route.ts'
import type { Checker } from './checker.ts'
import { userChecker } from './checker.ts'

const MS = 1000
const CHECK = { userId: 'user-123', resource: '/api/v1/data' }

async function freshService(): Promise<RunningService> {
  const running = await startService()
  onTestFinished(() => running.service.stop())
  return running
}

async function statusesOf(count: number, ask: () => Promise<Response>): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {}
  for (const response of await Promise.all(Array.from({ length: count }, ask))) {
    statuses[response.status] = (statuses[response.status] ?? 0) + 1
    await response.text()
  }
  return statuses
}

describe('a check', () => {
  it('is allowed, with the answer and the headers', async () => {
    const { check } = await freshService()
    const response = await check({
      ...CHECK,
      apiKey: 'key-abc',
      clientIp: '1.2.3.4',
      tenantId: 'acme',
      method: 'POST',
      tokens: 1,
    })
    expect(response.status).toBe(200)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'application/json',
      'x-ratelimit-limit': '100',
      'x-ratelimit-remaining': '99',
      'x-ratelimit-reset': '1699180756',
      'x-ratelimit-reset-after': '1',
    })
    expect(response.headers.has('retry-after')).toBe(false)
    expect(response.headers.has('cache-control')).toBe(false)
    expect(await response.json()).toEqual({
      allowed: true,
      reason: 'allowed',
      limit: 100,
      remaining: 99,
      resetAt: '2023-11-05T10:39:16Z',
      retryAfter: null,
      dimension: 'user',
      rule: 'default',
    })
  })

  it('is refused after 100 in a minute, with the time to come back', async () => {
    const { check } = await freshService()
    for (let remaining = 99; remaining >= 0; remaining -= 1) {
      const response = await check(CHECK)
      expect([response.status, (await answerOf(response)).remaining]).toEqual([200, remaining])
    }
    const refused = await check(CHECK)
    expect(refused.status).toBe(429)
    expect(Object.fromEntries(refused.headers)).toMatchObject({
      'content-type': 'application/json',
      'x-ratelimit-limit': '100',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': '1699180815',
      'x-ratelimit-reset-after': '60',
      'retry-after': '1',
      'cache-control': 'no-store',
    })
    expect(await refused.json()).toEqual({
      allowed: false,
      reason: 'limit',
      limit: 100,
      remaining: 0,
      resetAt: '2023-11-05T10:40:15Z',
      retryAfter: 1,
      dimension: 'user',
      rule: 'default',
    })
  })

  it('is allowed again when, and not before, the next unit is there', async () => {
    const { check, advance } = await freshService()
    await check({ ...CHECK, tokens: 100 })
    advance(600 * MS - 1)
    expect((await check(CHECK)).status).toBe(429)
    advance(1)
    expect((await check(CHECK)).status).toBe(200)
    expect((await check(CHECK)).status).toBe(429)
    advance(60_000 * MS)
    expect(await statusesOf(101, () => check(CHECK))).toEqual({ 200: 100, 429: 1 })
  })

  it('says when to come back so that it is never too early', async () => {
    const { check, advance } = await freshService()
    await check({ ...CHECK, tokens: 100 })
    // 7 units take 4.2 s.
    const refused = await check({ ...CHECK, tokens: 7 })
    expect([refused.headers.get('retry-after'), (await answerOf(refused)).retryAfter]).toEqual(['5', 5])
    advance(5 * 1000 * MS)
    expect((await check({ ...CHECK, tokens: 7 })).status).toBe(200)
  })

  it('admits exactly 100 of 300 at once', async () => {
    const { check } = await freshService()
    expect(await statusesOf(300, () => check(CHECK))).toEqual({ 200: 100, 429: 200 })
  })

  it('counts each user alone, over all resources and methods', async () => {
    const { check } = await freshService()
    await check({ ...CHECK, tokens: 100 })
    expect((await check({ ...CHECK, resource: '*', method: 'GET' })).status).toBe(429)
    for (const userId of ['user-124', 'user-1234', 'USER-123', '4:user8:user-123', '__proto__', 'constructor']) {
      expect((await answerOf(await check({ ...CHECK, userId }))).remaining).toBe(99)
    }
  })
})

describe('a checker that answers later', () => {
  it('gives the same answer later', async () => {
    const clock = { nowMicros: () => 0 }
    const limiter = createLimiter({ limit: 2, window: '1m', clock })
    onTestFinished(() => limiter.close())
    const now = userChecker(limiter)
    const handlerOf = (checker: Checker) => checkRoute(checker, clock).methods['POST']?.handle
    const later = await handlerOf({ check: (request) => Promise.resolve(now.check(request)) })?.(CHECK)
    expect(later).toMatchObject({ status: 200, headers: { 'X-RateLimit-Remaining': '1' } })
    expect(handlerOf(now)?.(CHECK)).toMatchObject({ status: 200, headers: { 'X-RateLimit-Remaining': '0' } })
  })
})

describe('tokens', () => {
  it('are what the check takes', async () => {
    const { check } = await freshService()
    expect((await answerOf(await check({ ...CHECK, tokens: 30 }))).remaining).toBe(70)
    expect(await answerOf(await check({ ...CHECK, tokens: 71 }))).toMatchObject({ allowed: false, remaining: 70 })
    expect((await answerOf(await check({ ...CHECK, tokens: 70 }))).remaining).toBe(0)
  })

  it('may be 0, which asks without taking', async () => {
    const { check } = await freshService()
    for (const _ of [1, 2]) {
      expect(await answerOf(await check({ ...CHECK, tokens: 0 }))).toMatchObject({ allowed: true, remaining: 100 })
    }
  })

  it('above the limit are refused for good: no time to come back, nothing taken', async () => {
    const { check } = await freshService()
    const refused = await check({ ...CHECK, tokens: 101 })
    expect(refused.status).toBe(429)
    expect(refused.headers.has('retry-after')).toBe(false)
    expect(refused.headers.get('cache-control')).toBe('no-store')
    expect(await answerOf(refused)).toMatchObject({ allowed: false, reason: 'never', retryAfter: null })
    expect((await answerOf(await check(CHECK))).remaining).toBe(99)
  })
})

describe('what cannot be understood', () => {
  let running: RunningService
  beforeAll(async () => {
    running = await startService()
  })
  afterAll(() => running.service.stop())

  const deep = '['.repeat(16_000)
  const numbered = `{${Array.from({ length: 1200 }, (_, index) => `"${index}":0`).join()}}`
  const notUtf8 = Buffer.from([...Buffer.from('{"userId":"'), 0xff, 0xfe, ...Buffer.from('","resource":"*"}')])
  const invalid = (body: string): [string, string] => [body, 'SLUICE_HTTP_INVALID_REQUEST']
  const noJson = (body: string | Buffer): [string | Buffer, string] => [body, 'SLUICE_HTTP_INVALID_JSON']

  it.each([
    ['an empty body', noJson('')],
    ['a text', noJson('hello')],
    ['an unfinished object', noJson('{"userId":"user-123"')],
    ['two objects', noJson('{}{}')],
    ['a comment', noJson('{"userId":"user-123","resource":"*"} // ok')],
    ['a byte order mark', noJson('\ufeff{"userId":"user-123","resource":"*"}')],
    ['bytes that are not UTF-8', noJson(notUtf8)],
    ['half a character', noJson(Buffer.from('{"userId":"user-123","resource":"/ü"}').subarray(0, -3))],
    ['nesting without end', noJson(deep)],
    ['null', invalid('null')],
    ['an array of checks', invalid('[{"userId":"user-123","resource":"*"}]')],
    ['an empty object', invalid('{}')],
    ['no user', invalid('{"resource":"*"}')],
    ['no resource', invalid('{"userId":"user-123"}')],
    ['an unknown field', invalid('{"userId":"user-123","resource":"*","cost":1}')],
    ['a field in other letters', invalid('{"userid":"user-123","userId":"user-123","resource":"*"}')],
    ['a prototype', invalid('{"userId":"user-123","resource":"*","__proto__":{"tokens":0}}')],
    ['a constructor', invalid('{"userId":"user-123","resource":"*","constructor":{"prototype":{}}}')],
    ['an oversized user', invalid(`{"userId":"${'x'.repeat(257)}","resource":"*"}`)],
    ['half a surrogate pair', invalid(String.raw`{"userId":"user-123\ud83d","resource":"*"}`)],
    ['a line break in the user', invalid(String.raw`{"userId":"user-123\n","resource":"*"}`)],
    ['a huge number', invalid('{"userId":"user-123","resource":"*","tokens":1e999}')],
    ['a number with many digits', invalid(`{"userId":"user-123","resource":"*","tokens":${'9'.repeat(9999)}}`)],
    ['negative tokens', invalid('{"userId":"user-123","resource":"*","tokens":-1}')],
    ['half a token', invalid('{"userId":"user-123","resource":"*","tokens":0.5}')],
    ['a bad address', invalid('{"userId":"user-123","resource":"*","clientIp":"1.2.3.256"}')],
    ['a resource that is no path', invalid('{"userId":"user-123","resource":"api"}')],
    ['thousands of numbered fields', invalid(numbered)],
  ])('is a 400 for %s, and counts nothing', async (_title, [body, code]) => {
    const response = await running.check(body)
    expect(response.status).toBe(400)
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    expect(response.headers.has('x-ratelimit-limit')).toBe(false)
    const problem = (await response.json()) as ProblemDocument
    expect(problem).toMatchObject({ status: 400, code })
    expect(problem.errors?.length).toBeGreaterThan(0)
    const untouched = await running.check({ ...CHECK, tokens: 0 })
    expect((await answerOf(untouched)).remaining).toBe(100)
  })

  it('names every problem, with what was received and what was expected', async () => {
    const response = await running.check({ resource: 'api', tokens: '2', colour: 'red' })
    expect(await response.json()).toEqual({
      type: 'urn:sluice:problem:invalid-request',
      title: 'The request has invalid fields',
      status: 400,
      code: 'SLUICE_HTTP_INVALID_REQUEST',
      detail: '4 things are wrong: /userId, /resource, /tokens, /colour. Nothing was counted.',
      errors: [
        { path: '/userId', received: 'nothing', expected: 'a text of 1 to 256 characters and no control characters' },
        {
          path: '/resource',
          received: '"api"',
          expected: 'a path that begins with "/", or "*", of at most 2048 characters and no control characters',
        },
        { path: '/tokens', received: '"2"', expected: 'a whole number from 0 to 1000000000' },
        {
          path: '/colour',
          received: 'an unknown field',
          expected: 'only userId, apiKey, clientIp, tenantId, resource, method, tokens',
        },
      ],
    })
  })

  it('does not repeat a key or the body in the answer', async () => {
    for (const body of ['{"apiKey":"slk_secret\\n"}', '{"apiKey":"slk_secret"', 'slk_secret']) {
      expect(await (await running.check(body)).text()).not.toContain('slk_secret')
    }
  })

  it('changes no prototype', async () => {
    await running.check('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}')
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })

  it('lets the last of two equal names count, as the parser does', async () => {
    const response = await running.check('{"userId":"first","userId":"second","resource":"*","tokens":40}')
    expect(response.status).toBe(200)
    expect((await answerOf(await running.check({ ...CHECK, userId: 'first', tokens: 0 }))).remaining).toBe(100)
    expect((await answerOf(await running.check({ ...CHECK, userId: 'second', tokens: 0 }))).remaining).toBe(60)
  })
})
