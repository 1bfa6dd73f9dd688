import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type ClientHttp2Session, connect, createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo, Server } from 'node:net'
import { isSluiceError } from '@sluice/core'
import { FakeClock, FakeTimers } from '@sluice/testing'
import Koa from 'koa'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type KoaRateLimitOptions, rateLimit } from './koa.ts'

const clock = new FakeClock()
const two = { limit: 2, window: '1h', clock } as const

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

async function serve(app: Koa): Promise<(path?: string, init?: RequestInit) => Promise<Response>> {
  const server = createServer(app.callback() as RequestListener)
  const port = await listen(server)
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return (path = '/', init?: RequestInit) => fetch(`http://127.0.0.1:${port}${path}`, init)
}

function createApp(options: KoaRateLimitOptions): Koa {
  const app = new Koa()
  app.silent = true
  const limit = rateLimit(options)
  onTestFinished(() => limit.close())
  app.use(limit)
  return app
}

function here(context: Koa.Context): void {
  context.body = 'here'
}

it('limits requests, and tells later middleware what it decided', async () => {
  const app = createApp(two)
  app.use((context) => {
    context.body = { remaining: context.state['rateLimit'].remaining }
  })
  const get = await serve(app)

  const first = await get()
  expect(await first.json()).toEqual({ remaining: 1 })
  expect(first.headers.get('x-ratelimit-remaining')).toBe('1')
  expect([(await get()).status, (await get()).status]).toEqual([200, 429])
})

it('denies with a problem document of exactly that type', async () => {
  const denied = await (await serve(createApp({ ...two, limit: 0 })))()
  expect(denied.status).toBe(429)
  expect(denied.headers.get('content-type')).toBe('application/problem+json')
  expect(await denied.json()).toMatchObject({ status: 429, 'violated-policies': ['default'] })
})

it('limits what nothing answers, too', async () => {
  const get = await serve(createApp({ ...two, limit: 1 }))
  expect([(await get()).status, (await get()).status]).toEqual([404, 429])
})

it('lets middleware before it see the denial', async () => {
  const app = new Koa()
  const limit = rateLimit({ ...two, limit: 0 })
  app.use(async (context, next) => {
    await next()
    context.set('x-seen', String(context.status))
  })
  app.use(limit)
  expect((await (await serve(app))()).headers.get('x-seen')).toBe('429')
})

it('lets middleware before it go on when a client leaves the queue', async () => {
  const { promise: left, resolve: leave } = Promise.withResolvers<number>()
  const { promise: waiting, resolve: wait } = Promise.withResolvers<void>()
  const timers = new FakeTimers(clock)
  const app = new Koa()
  app.use(async (context, next) => {
    await next()
    if (context.path === '/late') leave(timers.pending)
  })
  const limit = rateLimit({
    algorithm: 'leaky-bucket-queue',
    capacity: 2,
    ratePerSecond: 1,
    clock,
    timers: {
      schedule(delayMs, run) {
        wait()
        return timers.schedule(delayMs, run)
      },
    },
  })
  app.use(limit)
  app.use(here)
  const get = await serve(app)

  await get()
  const client = new AbortController()
  const late = get('/late', { signal: client.signal }).catch((error: Error) => error.name)
  await waiting
  client.abort()
  expect(await late).toBe('AbortError')
  expect(await left).toBe(0)
})

it('does not believe the headers that Koa believes', async () => {
  const app = createApp({ ...two, limit: 1, warn: () => undefined })
  app.proxy = true
  app.use((context) => {
    context.body = context.ip
  })
  const get = await serve(app)

  expect(await (await get('/', { headers: { 'x-forwarded-for': '192.0.2.1' } })).text()).toBe('192.0.2.1')
  expect((await get('/', { headers: { 'x-forwarded-for': '192.0.2.2' } })).status).toBe(429)
})

it('knows the path as it was received, and the pattern that a router chose', async () => {
  const seen: unknown[] = []
  const app = new Koa()
  app.use((context, next) => {
    context['_matchedRoute'] = '/orders/:id'
    context.url = '/rewritten'
    return next()
  })
  app.use(
    rateLimit({
      ...two,
      skip: (_, request) => {
        const { method, url, route, peerAddress } = request
        seen.push(method, url, route, peerAddress, request.header('x-tag'), request.header('x-none'))
        return true
      },
    }),
  )
  app.use(here)
  await (await serve(app))('/orders/7?full=1', { method: 'PUT', headers: { 'x-tag': 'a' } })
  expect(seen).toEqual(['PUT', '/orders/7?full=1', '/orders/:id', '127.0.0.1', 'a', undefined])
})

describe('errors', () => {
  it.each([
    ['of any kind', new Error('broken'), 500],
    ['with a status', Object.assign(new Error('gone'), { status: 410, headers: { 'x-why': 'moved' } }), 410],
    ['that are none', 'broken', 500],
  ])('%s keep their answer', async (_, error, status) => {
    const app = createApp(two)
    app.use(() => {
      throw error
    })
    const response = await (await serve(app))()
    expect(response.status).toBe(status)
    expect(response.headers.get('x-why')).toBe(status === 410 ? 'moved' : null)
  })

  it('that cannot be changed reach their handler', async () => {
    const app = new Koa()
    const error = Object.freeze(new Error('frozen'))
    app.use((context, next) =>
      next().catch((caught: unknown) => {
        context.body = String(caught === error)
      }),
    )
    app.use(rateLimit(two))
    app.use(() => {
      throw error
    })
    const response = await (await serve(app))()
    expect([await response.text(), response.headers.get('x-ratelimit-remaining')]).toEqual(['true', '1'])
  })

  it('announce the limit, each its own', async () => {
    const app = createApp(two)
    const error = new Error('always the same')
    app.use(() => {
      throw error
    })
    const get = await serve(app)
    const remaining = async (): Promise<unknown> => (await get()).headers.get('x-ratelimit-remaining')
    expect([await remaining(), await remaining()]).toEqual(['1', '0'])
  })

  it('announce the narrowest of several limits', async () => {
    const app = createApp(two)
    app.use(rateLimit({ ...two, name: 'wide', limit: 9 }))
    app.use((context) => context.throw(400, 'no'))
    const response = await (await serve(app))()
    expect([response.status, await response.text()]).toEqual([400, 'no'])
    expect(response.headers.get('x-ratelimit-remaining')).toBe('1')
  })

  it.each([
    ['at once', () => undefined as never],
    ['later', () => Promise.reject(new Error('no key'))],
  ])('of a key function go the way of all errors: %s', async (_, fail) => {
    const seen: unknown[] = []
    const app = createApp({ ...two, key: (context) => fail() ?? context.state['missing'].id })
    app.on('error', (error) => seen.push(error))
    app.use(here)
    const response = await (await serve(app))()
    expect([response.status, seen.length]).toEqual([500, 1])
  })
})

describe('onLimited', () => {
  it.each([
    ['a string', 'slow down', 'text/plain; charset=utf-8'],
    ['an object', { slow: 'down' }, 'application/json; charset=utf-8'],
  ])('answers with %s, under the headers of the limit', async (_, body, type) => {
    const app = createApp({
      ...two,
      limit: 0,
      onLimited: async (context, denial) => {
        context.set('x-status', String(await Promise.resolve(denial.status)))
        context.body = body
      },
    })
    const response = await (await serve(app))()
    const { headers } = response
    expect([response.status, headers.get('content-type'), headers.get('x-status')]).toEqual([429, type, '429'])
    expect(headers.get('x-ratelimit-limit')).toBe('0')
  })

  it('may throw', async () => {
    const app = createApp({ ...two, limit: 0, onLimited: (context) => context.throw(420, 'calm down') })
    expect((await (await serve(app))()).status).toBe(500)
  })
})

it('finds mistakes when it is made', () => {
  const make = (): unknown => rateLimit({ limti: 5, window: '1m' } as KoaRateLimitOptions)
  expect(make).toThrow(/Did you mean "limit"/)
  try {
    make()
  } catch (error) {
    expect(isSluiceError(error, 'SLUICE_INVALID_OPTION')).toBe(true)
  }
})

describe('HTTP/2', () => {
  async function session(app: Koa): Promise<ClientHttp2Session> {
    const server = createHttp2Server(app.callback())
    const client = connect(`http://127.0.0.1:${await listen(server)}`)
    onTestFinished(async () => {
      client.destroy()
      await new Promise((resolve) => server.close(resolve))
    })
    return client
  }

  async function status(client: ClientHttp2Session, path: string): Promise<unknown> {
    const stream = client.request({ ':path': path })
    const [headers] = await once(stream, 'response')
    stream.resume()
    await once(stream, 'close')
    return headers[':status']
  }

  it('gives the slot of a client back when it has been answered, and when it leaves', async () => {
    const ends: number[] = []
    const app = createApp({
      algorithm: 'concurrency',
      limit: 1,
      lease: '1h',
      clock,
      refund: (ended) => ends.push(ended) < 0,
    })
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<Koa.Context>()
    app.use(async (context) => {
      if (context.path !== '/slow') return here(context)
      arrive(context)
      await once(context.res, 'close')
    })
    const client = await session(app)

    const slow = client.request({ ':path': '/slow' })
    slow.on('error', () => undefined)
    const { res } = await arrived
    expect(await status(client, '/')).toBe(429)
    const left = once(res, 'close')
    slow.close(8)
    await left
    expect(await status(client, '/')).toBe(200)
    expect(await status(client, '/')).toBe(200)
    expect(ends).toEqual([0, 200, 200])
  })
})
