import { freePort } from '@sluice/testing/servers'
import { describe, expect, it } from 'vitest'
import { ApiServer, failing } from '../api-server.test.support.ts'
import { HeldTime } from '../fake-time.test.support.ts'
import type { FetchRetryNotice, RetryFetchOptions } from './retry-fetch.ts'
import { retryFetch } from './retry-fetch.ts'

/** Waits end at once, and are remembered; there is no jitter. */
function quick(options: RetryFetchOptions = {}): {
  readonly send: ReturnType<typeof retryFetch>
  readonly waits: number[]
  readonly notices: FetchRetryNotice[]
} {
  const waits: number[] = []
  const notices: FetchRetryNotice[] = []
  const sleep = (ms: number, signal?: AbortSignal): Promise<void> => {
    signal?.throwIfAborted()
    waits.push(ms)
    return Promise.resolve()
  }
  const onRetry = (notice: FetchRetryNotice): void => void notices.push(notice)
  return { send: retryFetch({ sleep, random: () => 0.5, onRetry, ...options }), waits, notices }
}

describe('retryFetch', () => {
  it('gives a good answer as it is', async () => {
    const api = await ApiServer.start()
    const { send, waits } = quick()
    const response = await send(`${api.url}/a`, { method: 'POST', body: 'hello' })
    expect([response.status, await response.text(), api.asked, waits]).toEqual([
      200,
      'ok',
      [{ method: 'POST', path: '/a', body: 'hello' }],
      [],
    ])
  })

  it('retries 5 times, which makes 6 requests, and returns the last answer', async () => {
    const api = await ApiServer.start(failing(9, 503))
    const { send, waits, notices } = quick()
    const response = await send(api.url)
    expect([response.status, await response.text()]).toEqual([503, 'later'])
    expect(api.asked).toHaveLength(6)
    expect(waits).toEqual([2000, 4000, 8000, 16_000, 32_000])
    expect(notices).toEqual(
      waits.map((delayMs, attempt) => ({
        attempt,
        delayMs,
        method: 'GET',
        url: new URL(api.url),
        status: 503,
        error: undefined,
      })),
    )
  })

  it.each([
    ['seconds', { 'Retry-After': '30' }, 30_000],
    ['a date', { 'Retry-After': 'Thu, 01 Jan 2026 00:01:00 GMT', Date: 'Thu, 01 Jan 2026 00:00:00 GMT' }, 60_000],
    ['less than it would wait anyway', { 'Retry-After': '1' }, 2000],
    ['the reset of a quota', { RateLimit: '"a";r=0;t=9' }, 9000],
    ['a reset in the older headers', { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset-After': '12' }, 12_000],
  ])('waits as long as the server asks by %s', async (_, headers, waitMs) => {
    const api = await ApiServer.start(failing(1, 429, headers as Record<string, string>))
    const { send, waits } = quick()
    expect(await (await send(api.url)).text()).toBe('ok')
    expect(waits).toEqual([waitMs])
  })

  it('does not begin a wait that would be too long in all', async () => {
    const api = await ApiServer.start(failing(9, 429, { 'Retry-After': '100' }))
    const { send, waits } = quick({ maxWaitMs: 250_000 })
    expect((await send(api.url)).status).toBe(429)
    expect(waits).toEqual([100_000, 100_000])
    const none = quick({ maxWaitMs: 0 })
    expect((await none.send(api.url)).status).toBe(429)
    expect(none.waits).toEqual([])
  })

  it.each<[string, RequestInit, RetryFetchOptions, number]>([
    ['GET', {}, {}, 2],
    ['PUT', { method: 'PUT', body: 'a' }, {}, 2],
    ['delete', { method: 'delete' }, {}, 2],
    ['POST', { method: 'POST', body: 'a' }, {}, 1],
    ['PATCH', { method: 'PATCH', body: 'a' }, {}, 1],
    ['POST with a key', { method: 'POST', body: 'a', headers: { 'Idempotency-Key': 'k' } }, {}, 2],
    ['POST when told', { method: 'POST', body: 'a' }, { repeat: 'always' }, 2],
    ['POST that was not refused', { method: 'POST', body: 'a' }, { repeat: 'refused' }, 1],
  ])('repeats %s only where that is safe', async (_, init, options, tries) => {
    const api = await ApiServer.start(failing(1, 500))
    await (await quick(options).send(api.url, init)).text()
    expect(api.asked).toHaveLength(tries)
  })

  it.each<[number, Record<string, string>, number]>([
    [429, {}, 2],
    [503, { 'Retry-After': '1' }, 2],
    [503, {}, 1],
    [502, {}, 1],
  ])('repeats what was rejected with %i and %o, when told', async (status, headers, tries) => {
    const api = await ApiServer.start(failing(1, status, headers))
    await (await quick({ repeat: 'refused' }).send(api.url, { method: 'POST', body: 'a' })).text()
    expect(api.asked).toHaveLength(tries)
  })

  it.each([400, 401, 404, 409, 501])('takes %i for an answer', async (status) => {
    const api = await ApiServer.start(failing(1, status))
    expect((await quick().send(api.url)).status).toBe(status)
    expect(api.asked).toHaveLength(1)
  })

  it('retries after the configured statuses', async () => {
    const api = await ApiServer.start(failing(1, 409))
    expect((await quick({ statuses: [409] }).send(api.url)).status).toBe(200)
  })

  it('repeats what got no answer where that is safe', async () => {
    const api = await ApiServer.start((response, number) =>
      number % 2 === 0 ? response.destroy() : response.end('ok'),
    )
    const { send, notices } = quick()
    expect((await send(api.url)).status).toBe(200)
    expect(notices).toMatchObject([{ status: undefined, error: expect.any(TypeError) }])
    await expect(send(api.url, { method: 'POST', body: 'a' })).rejects.toThrow(TypeError)
    expect(api.asked).toHaveLength(3)
  })

  it('repeats everything that was never sent', async () => {
    const url = `http://127.0.0.1:${await freePort()}`
    const { send, waits } = quick({ maxRetries: 2 })
    await expect(send(url, { method: 'POST', body: 'a' })).rejects.toMatchObject({
      code: 'SLUICE_CLIENT_RETRIES_EXHAUSTED',
      detail: expect.stringMatching(/^3 calls failed. The last one: connect ECONNREFUSED/),
      cause: expect.objectContaining({ message: 'fetch failed' }),
    })
    expect(waits).toEqual([2000, 4000])
    await expect(quick({ maxRetries: 0 }).send(url)).rejects.toThrow(new TypeError('fetch failed'))
  })

  it.each<[string, () => RequestInit['body']]>([
    ['a string', () => 'abc'],
    ['bytes', () => new TextEncoder().encode('abc')],
    ['a buffer', () => new TextEncoder().encode('abc').buffer],
    ['a blob', () => new Blob(['abc'])],
    ['a form', () => new URLSearchParams({ abc: '' })],
  ])('sends the same body again: %s', async (_, makeBody) => {
    const api = await ApiServer.start(failing(2, 503))
    const response = await quick().send(api.url, { method: 'PUT', body: makeBody()! })
    expect(response.status).toBe(200)
    expect(api.asked.map(({ body }) => body.replace('=', ''))).toEqual(['abc', 'abc', 'abc'])
  })

  it('sends the body of a Request again', async () => {
    const api = await ApiServer.start(failing(2, 503))
    const request = new Request(`${api.url}/r`, { method: 'PUT', body: 'x'.repeat(100_000) })
    expect((await quick().send(request)).status).toBe(200)
    expect(api.asked.map(({ path, body }) => [path, body.length])).toEqual(
      Array.from({ length: 3 }, () => ['/r', 100_000]),
    )
    expect((await quick().send(new Request(api.url), { headers: { a: 'b' } })).status).toBe(200)
  })

  it('sends a stream once', async () => {
    const api = await ApiServer.start(failing(1, 503))
    const body = new Blob(['abc']).stream()
    const init = { method: 'PUT', body, duplex: 'half' } as RequestInit
    expect((await quick().send(api.url, init)).status).toBe(503)
    expect(api.asked).toHaveLength(1)
  })

  it('ends with its signal, during a wait and during a request', async () => {
    const api = await ApiServer.start(failing(1, 503))
    const time = new HeldTime()
    const send = retryFetch({ random: () => 0.5, ...time })
    const controller = new AbortController()
    const waiting = send(api.url, { signal: controller.signal })
    await time.until(2000)
    controller.abort('enough')
    await expect(waiting).rejects.toBe('enough')
    expect(time.pending).toEqual([])
    const during = new AbortController()
    api.answer = () => during.abort('at once')
    await expect(send(new Request(api.url, { signal: during.signal }))).rejects.toBe('at once')
    await expect(send(api.url, { signal: AbortSignal.abort('before') })).rejects.toBe('before')
    expect(api.asked).toHaveLength(2)
    const { send: quickly, notices } = quick()
    const reason = new TypeError('a reason that looks like a broken connection')
    await expect(quickly(api.url, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    expect(notices).toEqual([])
  })

  it.each([
    ['no address', 'nowhere', {}],
    ['no method', 'http://127.0.0.1:9', { method: 'B A D' }],
    ['no header', 'http://127.0.0.1:9', { headers: { 'a b': 'c' } }],
  ])('does not repeat what is %s', async (_, url, init) => {
    const { send, waits } = quick()
    await expect(send(url, init)).rejects.toThrow(TypeError)
    expect(waits).toEqual([])
  })

  it.each<[string, RetryFetchOptions]>([
    ['maxRetries', { maxRetries: -1 }],
    ['maxWaitMs', { maxWaitMs: Number.NaN }],
    ['repeat', { repeat: 'never' as 'always' }],
    ['capMs', { capMs: 1 }],
  ])('rejects %s that cannot be used', (name, options) => {
    const expected = { code: 'SLUICE_CLIENT_INVALID_OPTION', detail: expect.stringContaining(name) }
    expect(() => retryFetch(options)).toThrow(expect.objectContaining(expected))
  })
})
