import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { concurrency, memoryStore } from '@sluice/core'
import type { MiddlewareHarness, SuiteAnswer } from '@sluice/testing'
import { FakeClock, middlewareSuite, SUITE_PATHS } from '@sluice/testing'
import type { Context } from 'hono'
import { Hono } from 'hono'
import { cors } from 'hono/cors'
import { stream } from 'hono/streaming'
import type { StatusCode } from 'hono/utils/http-status'
import { describe, expect, it, onTestFinished } from 'vitest'
import { peerAddressFrom } from '../fetch/fetch-server.ts'
import { rateLimit } from './hono.ts'

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

function send(c: Context, { status, body }: SuiteAnswer): Response {
  c.status(status as StatusCode)
  return typeof body === 'string'
    ? c.body(body)
    : c.body(ReadableStream.from(body).pipeThrough(new TextEncoderStream()))
}

interface PeerEnv {
  Bindings: { readonly peer?: string | undefined }
}

interface Surroundings {
  serverOf(app: Hono<PeerEnv>): Fetch
  readonly address?: (c: Context<PeerEnv>) => string | undefined
}

function harness({ serverOf, ...address }: Surroundings): MiddlewareHarness {
  return {
    async serve({ limiters, onLimited, handle }) {
      const own = onLimited && {
        onLimited: (c: Context, denial: Parameters<typeof onLimited>[0]) => send(c, onLimited(denial)),
      }
      const made = limiters.map((options, index) =>
        rateLimit<PeerEnv>({ ...options, ...address, ...(index === 0 ? own : undefined) }),
      )
      const app = new Hono<PeerEnv>()
      app.use(...made)
      for (const path of SUITE_PATHS) {
        app.all(path, async (c) => send(c, await handle({ path: c.req.path, decision: c.get('rateLimit') })))
      }
      app.onError((_, c) => c.text('error', 500))
      const { url, close } = await start(serverOf(app))
      const closeLimiters = async (): Promise<void> => void (await Promise.all(made.map((limiter) => limiter.close())))
      return { url, closeLimiters, close: () => close().then(closeLimiters) }
    },
  }
}

middlewareSuite('Hono, behind Node', harness({ serverOf: (app) => app.fetch as Fetch }))
middlewareSuite(
  'Hono, behind a server that tells nothing but an address',
  harness({
    serverOf: (app) => (request, server) => app.fetch(request, { peer: peerAddressFrom(server, request) }),
    address: (c) => c.env.peer,
  }),
)

async function statuses(url: string, count: number): Promise<number[]> {
  const found: number[] = []
  for (let call = 0; call < count; call++) {
    const response = await fetch(url)
    found.push(response.status)
    await response.text()
  }
  return found
}

it('limits by the address that the server of Node tells', async () => {
  const seen: unknown[] = []
  const app = new Hono()
  app.use(
    rateLimit({
      limit: 2,
      window: '1h',
      skip: (_, { peerAddress }) => {
        seen.push(peerAddress)
        return false
      },
    }),
  )
  app.get('/', (c) => c.text(`${c.get('rateLimit')?.remaining} left`))
  const url = await listen(app.fetch)
  expect(await (await fetch(url)).text()).toBe('1 left')
  expect(await statuses(url, 2)).toEqual([200, 429])
  expect(seen).toEqual(['127.0.0.1', '127.0.0.1', '127.0.0.1'])
})

it('limits by the address that the app tells', async () => {
  const app = new Hono()
  app.use(rateLimit({ limit: 1, window: '1h', address: (c) => c.req.header('x-test-address') }))
  app.get('/', (c) => c.text('done'))
  const from = async (address: string): Promise<number> =>
    (await app.request('/', { headers: { 'x-test-address': address } })).status
  expect([await from('192.0.2.1'), await from('192.0.2.1'), await from('192.0.2.2')]).toEqual([200, 429, 200])
})

it.each([
  ['GET', '/orders/7?full=1', '/orders/:id'],
  ['PUT', '/orders/7', '/orders/:id/*'],
  ['GET', '/orders/7/lines', '/orders/:id/*'],
  ['GET', '/orders/sub/7', '/orders/sub/:id'],
  ['GET', '/orders', undefined],
])('tells the pattern of the handler of %s %s', async (method, url, route) => {
  const seen: unknown[] = []
  const sub = new Hono().get('/:id', (c) => c.text('done'))
  sub.onError((error) => {
    throw error
  })
  const app = new Hono()
  app.use(
    '/orders/*',
    rateLimit({
      limit: 1,
      window: '1h',
      skip: (_, request) => {
        seen.push(request.method, request.url, request.route)
        return true
      },
    }),
  )
  app.route('/orders/sub', sub)
  app.get('/orders/:id', (c) => c.text('done'))
  app.all('/orders/:id/*', (c) => c.text('done'))
  await app.request(url, { method })
  expect(seen).toEqual([method, url, route])
})

describe('the headers', () => {
  const app = new Hono()
  app.use(rateLimit({ limit: 100, window: '1h', key: () => 'all' }))
  app.get('/own', () => new Response('own'))
  app.get('/fixed', () => Response.redirect('http://localhost/elsewhere'))
  app.get('/broken', () => {
    throw new Error('broken')
  })
  app.onError((_, c) => c.text('sorry', 500))

  it.each([
    ['/own', 200],
    ['/fixed', 302],
    ['/broken', 500],
    ['/missing', 404],
  ])('are on the answer of %s', async (path, status) => {
    const response = await app.request(path)
    expect([response.status, response.headers.get('x-ratelimit-limit')]).toEqual([status, '100'])
  })

  it('of two limiters are those of the narrower, whichever stands first', async () => {
    for (const limits of [
      [1, 9],
      [9, 1],
    ]) {
      const both = new Hono()
      for (const limit of limits) both.use(rateLimit({ limit, window: '1h', key: () => 'all', name: `limit-${limit}` }))
      both.get('/', (c) => c.text('done'))
      const allowed = await both.request('/')
      const denied = await both.request('/')
      expect([allowed.status, allowed.headers.get('x-ratelimit-limit')]).toEqual([200, '1'])
      expect([denied.status, denied.headers.get('x-ratelimit-remaining'), denied.headers.get('retry-after')]).toEqual([
        429,
        '0',
        '3600',
      ])
    }
  })

  it('of other middleware are on a denial', async () => {
    const shared = new Hono()
    shared.use(cors(), rateLimit({ limit: 0, window: '1h', key: () => 'all' }))
    const response = await shared.request('/')
    expect(response.headers.get('access-control-allow-origin')).toBe('*')
    expect(response.headers.get('content-type')).toBe('application/problem+json')
  })
})

it('lets onLimited answer, with the headers that it does not set itself', async () => {
  const app = new Hono()
  app.use(
    rateLimit({
      limit: 0,
      window: '1h',
      key: () => 'all',
      onLimited: (c, { status }) => c.text(`not now: ${status}`, 420 as 429, { 'Cache-Control': 'private' }),
    }),
  )
  const response = await app.request('/')
  expect(await response.text()).toBe('not now: 429')
  expect([response.status, response.headers.get('x-ratelimit-limit')]).toEqual([420, '0'])
  expect(response.headers.get('cache-control')).toBe('private')
  expect(response.headers.get('content-type')).toMatch(/^text\/plain/)
})

describe.each([
  ['behind Node', (app: Hono): Fetch => app.fetch],
  [
    'behind anything else',
    (app: Hono): Fetch =>
      (request) =>
        app.fetch(request),
  ],
])('a slot %s', (_, serverOf) => {
  /** An app with one slot, whose response continues until the test ends it. */
  function scene() {
    const ending = Promise.withResolvers<void>()
    const store = memoryStore({ clock: new FakeClock() })
    const app = new Hono()
    app.use(rateLimit({ rules: { slots: concurrency({ limit: 1, lease: '1h' }) }, key: () => 'all', store }))
    app.get('/stream', (c) =>
      stream(c, async (writer) => {
        await writer.write('begun')
        await ending.promise
      }),
    )
    app.get('/', (c) => c.text('done'))
    return { ending, app, url: listen(serverOf(app)) }
  }

  it('is held until the last of the answer has left', async () => {
    const { ending, url } = scene()
    const streaming = await fetch(`${await url}/stream`)
    const reader = streaming.body!.getReader()
    await reader.read()
    expect(await statuses(await url, 1)).toEqual([429])
    ending.resolve()
    expect((await reader.read()).done).toBe(true)
    expect(await statuses(await url, 2)).toEqual([200, 200])
  })

  it('is free after the answer to HEAD', async () => {
    const { url } = scene()
    for (let call = 0; call < 3; call++) expect((await fetch(await url, { method: 'HEAD' })).status).toBe(200)
  })
})

it('frees the slot when something that is not an error is thrown', async () => {
  const app = new Hono()
  app.use(rateLimit({ rules: { slots: concurrency({ limit: 1, lease: '1h' }) }, key: () => 'all' }))
  app.get('/', () => {
    // biome-ignore lint/style/useThrowOnlyError: what is thrown here is what is tested
    throw 'nothing'
  })
  for (let call = 0; call < 3; call++) await expect(Promise.resolve(app.request('/'))).rejects.toBe('nothing')
})

it('closes the store it made', async () => {
  const limit = rateLimit({ limit: 1, window: '1h', key: () => 'all' })
  const app = new Hono().use(limit)
  app.onError((error, c) => c.json({ code: 'code' in error && error.code }, 500))
  await limit.close()
  expect(await (await app.request('/')).json()).toEqual({ code: 'SLUICE_CLOSED' })
})
