import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { concurrency, leakyBucketQueue, memoryStore } from '@sluice/core'
import type { MiddlewareHarness, SuiteAnswer } from '@sluice/testing'
import { FakeClock, FakeTimers, middlewareSuite } from '@sluice/testing'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { rateLimit, rateLimitOf } from './fetch.ts'
import { peerAddressFrom } from './fetch-server.ts'

type Fetch = Parameters<typeof serve>[0]['fetch']

/** Serves `handler` on a free port. */
function start(handler: Fetch): Promise<{ readonly url: string; close(): Promise<void> }> {
  return new Promise((resolve) => {
    const server = serve({ fetch: handler, port: 0, hostname: '127.0.0.1' }, ({ port }: AddressInfo) => {
      const close = (): Promise<void> =>
        new Promise((closed) => {
          if ('closeAllConnections' in server) server.closeAllConnections()
          server.close(() => closed())
        })
      resolve({ url: `http://127.0.0.1:${port}`, close })
    })
  })
}

/** The URL under which `handler` answers until the test ends. */
async function listen(handler: Fetch): Promise<string> {
  const { url, close } = await start(handler)
  onTestFinished(close)
  return url
}

function responseOf({ status, body }: SuiteAnswer): Response {
  const isWhole = typeof body === 'string'
  return new Response(isWhole ? body : ReadableStream.from(body).pipeThrough(new TextEncoderStream()), { status })
}

type Handler = (request: Request, ...args: unknown[]) => Promise<Response>

/** A handler around `handler` that answers when it throws, as frameworks do. */
function forgiving(handler: Handler): Handler {
  return (of, ...args) => handler(of, ...args).catch(() => new Response('error', { status: 500 }))
}

interface Surroundings {
  /** What handlers get beside the request, from what the server knows of it. */
  passAlong(server: unknown): unknown[]
  readonly address?: (request: Request, ...args: unknown[]) => string | undefined
}

function harness({ passAlong, ...address }: Surroundings): MiddlewareHarness {
  return {
    async serve({ limiters, onLimited, handle }) {
      const own = onLimited && {
        onLimited: (_: unknown, denial: Parameters<typeof onLimited>[0]) => responseOf(onLimited(denial)),
      }
      const made = limiters.map((options, index) =>
        rateLimit<unknown[]>({ ...options, ...address, ...(index === 0 ? own : undefined) }),
      )
      const answer = async (of: Request): Promise<Response> =>
        responseOf(await handle({ path: new URL(of.url).pathname, decision: rateLimitOf(of) }))
      const handler = made.reduceRight<Handler>((inner, limiter) => limiter(inner), forgiving(answer))
      const { url, close } = await start((of, server) => forgiving(handler)(of, ...passAlong(server)))
      const closeLimiters = async (): Promise<void> => void (await Promise.all(made.map((limiter) => limiter.close())))
      return { url, closeLimiters, close: () => close().then(closeLimiters) }
    },
  }
}

middlewareSuite(
  'fetch handlers, called with what the server of Node passes along',
  harness({ passAlong: (server) => [server] }),
)
middlewareSuite(
  'fetch handlers, called with an address alone',
  harness({
    passAlong: (server) => [peerAddressFrom(server, request())],
    address: (_, peer) => String(peer),
  }),
)

function done(): Response {
  return new Response('done')
}

const request = (): Request => new Request('http://localhost/orders/7?full=1', { method: 'POST' })

it('limits by the address that the server tells', async () => {
  const seen: unknown[] = []
  const limited = rateLimit({
    limit: 1,
    window: '1h',
    skip: (_, { peerAddress }) => {
      seen.push(peerAddress)
      return false
    },
  })
  const url = await listen(limited(done))
  const answers = [await fetch(url), await fetch(url)]
  expect(answers.map(({ status }) => status)).toEqual([200, 429])
  expect(answers.map(({ headers }) => headers.get('x-ratelimit-remaining'))).toEqual(['0', '0'])
  expect(await answers[0]!.text()).toBe('done')
  expect(await answers[1]!.json()).toMatchObject({ status: 429, 'violated-policies': ['default'] })
  expect(seen).toEqual(['127.0.0.1', '127.0.0.1'])
})

it('limits by the address that the option returns, from everything that the server passes', async () => {
  const limited = rateLimit({ limit: 1, window: '1h', address: (_, env: { readonly peer: string }) => env.peer })
  const handler = limited((_, env: { readonly peer: string }) => new Response(env.peer))
  const from = async (peer: string): Promise<unknown[]> => {
    const response = await handler(request(), { peer })
    return [response.status, response.ok && (await response.text())]
  }
  expect([await from('192.0.2.1'), await from('192.0.2.1'), await from('192.0.2.2')]).toEqual([
    [200, '192.0.2.1'],
    [429, false],
    [200, '192.0.2.2'],
  ])
})

it('counts all handlers it is put around together, by what options read from the call', async () => {
  const limited = rateLimit<[params: { readonly account: string }]>({
    limit: 1,
    window: '1h',
    key: ({ request: of, args: [{ account }] }) => `${of.method} ${account}`,
  })
  const one = limited(done)
  const two = limited(done)
  const answers = [
    await one(request(), { account: 'a' }),
    await two(request(), { account: 'a' }),
    await two(request(), { account: 'b' }),
  ]
  expect(answers.map(({ status }) => status)).toEqual([200, 429, 200])
})

it('calls the callbacks', async () => {
  const skip = vi.fn(() => true)
  await rateLimit({ limit: 0, window: '1h', skip })(done)(request())
  expect(skip.mock.calls).toMatchObject([[{ args: [] }, { method: 'POST', url: '/orders/7?full=1', route: undefined }]])
})

it('sets headers on answers whose own are fixed', async () => {
  const handler = rateLimit({ limit: 5, window: '1h', key: () => 'all' })(() => Response.redirect('http://localhost/'))
  const response = await handler(request())
  expect([response.status, response.headers.get('location'), response.headers.get('x-ratelimit-limit')]).toEqual([
    302,
    'http://localhost/',
    '5',
  ])
})

it('announces the narrower of two limits, whichever stands first', async () => {
  for (const [first, second] of [
    [1, 9],
    [9, 1],
  ] as const) {
    const outer = rateLimit({ limit: first, window: '1h', key: () => 'all', name: 'outer' })
    const inner = rateLimit({ limit: second, window: '1h', key: () => 'all', name: 'inner' })
    const handler = outer(inner(done))
    const allowed = await handler(request())
    const denied = await handler(request())
    expect([allowed.status, allowed.headers.get('x-ratelimit-limit')]).toEqual([200, '1'])
    expect([denied.status, denied.headers.get('x-ratelimit-limit'), denied.headers.get('retry-after')]).toEqual([
      429,
      '1',
      '3600',
    ])
  }
})

it('lets onLimited answer, with the headers that it does not set itself', async () => {
  const handler = rateLimit({
    limit: 0,
    window: '1h',
    key: () => 'all',
    onLimited: ({ request: of }, { status }) => Response.json([of.method, status], { status: 420 }),
  })(done)
  const response = await handler(request())
  expect(await response.json()).toEqual(['POST', 429])
  expect([response.status, response.headers.get('x-ratelimit-limit'), response.headers.get('cache-control')]).toEqual([
    420,
    '0',
    'no-store',
  ])
  // Bun names the charset.
  expect(response.headers.get('content-type')).toMatch(/^application\/json(?:;charset=utf-8)?$/)
})

it('passes on what the handler throws, and frees its slot', async () => {
  const handler = rateLimit({ rules: { slots: concurrency({ limit: 1, lease: '1h' }) }, key: () => 'all' })(() => {
    throw new Error('broken')
  })
  for (let call = 0; call < 3; call++) await expect(handler(request())).rejects.toThrow('broken')
})

it('decides without a handler', async () => {
  const limiter = rateLimit({ limit: 1, window: '1h', key: () => 'all' })
  const first = request()
  expect(limiter.begin(first)).toMatchObject({ allowed: true, headers: { 'X-RateLimit-Remaining': '0' } })
  expect(rateLimitOf(first)).toMatchObject({ allowed: true, remaining: 0 })
  expect(limiter.begin(request())).toMatchObject({ allowed: false, status: 429 })
  await limiter.close()
  expect(() => limiter.begin(request())).toThrow(expect.objectContaining({ code: 'SLUICE_CLOSED' }))
})

describe('a request that has to wait for its turn', () => {
  function scene() {
    const clock = new FakeClock()
    const timers = new FakeTimers(clock)
    const rules = { queue: leakyBucketQueue({ capacity: 4, ratePerSecond: 1 }) }
    const called = vi.fn(done)
    const handler = rateLimit({ rules, key: () => 'all', store: memoryStore({ clock }), clock, timers })(called)
    return { timers, handler, called }
  }

  it('reaches the handler then', async () => {
    const { timers, handler, called } = scene()
    await handler(request())
    const second = handler(request())
    await timers.advance(999)
    expect(called).toHaveBeenCalledTimes(1)
    await timers.advance(1)
    expect(called).toHaveBeenCalledTimes(2)
    expect((await second).status).toBe(200)
  })

  it('does not reach it when the client leaves', async () => {
    const { timers, handler, called } = scene()
    const client = new AbortController()
    await handler(request())
    const second = handler(new Request(request(), { signal: client.signal }))
    await timers.advance(500)
    client.abort()
    await second
    expect(called).toHaveBeenCalledTimes(1)
    expect(timers.pending).toBe(0)
  })
})
