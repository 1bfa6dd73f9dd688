import { createLimiter, isSluiceError, memoryStore } from '@sluice/core'
import { FakeClock } from '@sluice/testing'
import fastify, { type FastifyInstance, type FastifyPluginCallback, type FastifyServerOptions } from 'fastify'
import { describe, expect, it, onTestFinished } from 'vitest'
import { rateLimit } from './fastify.ts'

/** How often a limit of one window can be used; its window is never over in a test. */
const clock = new FakeClock()

interface Site {
  readonly url: string
  get(path: string, init?: RequestInit): Promise<Response>
  /** The statuses of `count` requests, one after another. */
  statuses(times: number, path: string, init?: RequestInit): Promise<number[]>
}

function createApp(options: FastifyServerOptions = {}): FastifyInstance {
  const app = fastify({ forceCloseConnections: true, ...options })
  onTestFinished(() => app.close())
  return app
}

async function serve(app: FastifyInstance): Promise<Site> {
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const get = (path: string, init?: RequestInit): Promise<Response> => fetch(url + path, init)
  const statuses = async (times: number, path: string, init?: RequestInit): Promise<number[]> => {
    const seen: number[] = []
    for (let time = 0; time < times; time++) {
      const response = await get(path, init)
      await response.arrayBuffer()
      seen.push(response.status)
    }
    return seen
  }
  return { url, get, statuses }
}

const two = { limit: 2, window: '1h', clock } as const

/** What an app's start fails with. */
async function startError(app: FastifyInstance): Promise<unknown> {
  return await app.ready().then(
    () => undefined,
    (error: unknown) => error,
  )
}

describe('the plugin', () => {
  it('limits all routes, and tells handlers what it decided', async () => {
    const app = createApp()
    await app.register(rateLimit, two)
    app.get('/a', (request) => ({ remaining: request.rateLimit?.remaining }))
    app.get('/b', () => 'b')
    const site = await serve(app)

    const first = await site.get('/a')
    expect(await first.json()).toEqual({ remaining: 1 })
    expect(first.headers.get('x-ratelimit-remaining')).toBe('1')
    expect(await site.statuses(2, '/b')).toEqual([200, 429])
  })

  it('denies with a problem document of exactly that type', async () => {
    const app = createApp()
    await app.register(rateLimit, { ...two, limit: 0 })
    const site = await serve(app)

    const denied = await site.get('/')
    expect(denied.status).toBe(429)
    expect(denied.headers.get('content-type')).toBe('application/problem+json')
    expect(await denied.json()).toMatchObject({ status: 429, 'violated-policies': ['default'] })
  })

  it('limits paths that are not found, too', async () => {
    const app = createApp()
    await app.register(rateLimit, two)
    expect(await (await serve(app)).statuses(3, '/nowhere')).toEqual([404, 404, 429])
  })

  it('limits routes that were declared before it was loaded, by their own limits', async () => {
    const app = createApp()
    app.register(rateLimit, two)
    app.get('/plain', () => 'plain')
    app.get('/own', { config: { rateLimit: { limit: 1, window: '1h' } } }, () => 'own')
    app.get('/free', { config: { rateLimit: false } }, () => 'free')
    const site = await serve(app)

    expect(await site.statuses(3, '/plain')).toEqual([200, 200, 429])
    expect(await site.statuses(2, '/own')).toEqual([200, 429])
    expect(await site.statuses(3, '/free')).toEqual([200, 200, 200])
  })

  it('limits routes by what another plugin has written into their config', async () => {
    const app = createApp()
    await app.register(rateLimit, two)
    const written = { '/own': { limit: 1, window: '1h' }, '/free': false } as const
    app.addHook('onRoute', (route) => {
      if (route.url in written) route.config = { rateLimit: written[route.url as keyof typeof written] }
    })
    app.get('/plain', () => 'plain')
    app.get('/own', () => 'own')
    app.get('/free', () => 'free')
    const site = await serve(app)

    expect(await site.statuses(3, '/plain')).toEqual([200, 200, 429])
    expect(await site.statuses(2, '/own')).toEqual([200, 429])
    expect(await site.statuses(3, '/free')).toEqual([200, 200, 200])
  })

  it('announces the limit on errors, too', async () => {
    const app = createApp()
    await app.register(rateLimit, two)
    app.get('/broken', () => {
      throw new Error('broken')
    })
    const response = await (await serve(app)).get('/broken')
    expect([response.status, response.headers.get('x-ratelimit-remaining')]).toEqual([500, '1'])
  })

  it('does not believe the headers that Fastify believes', async () => {
    const app = createApp({ trustProxy: true })
    await app.register(rateLimit, { ...two, warn: () => undefined })
    app.get('/', (request) => request.ip)
    const site = await serve(app)

    const answer = await site.get('/', { headers: { 'x-forwarded-for': '192.0.2.1' } })
    expect(await answer.text()).toBe('192.0.2.1')
    expect(await site.statuses(2, '/', { headers: { 'x-forwarded-for': '192.0.2.2' } })).toEqual([200, 429])
  })

  it('knows the path as it was received, and its route', async () => {
    const seen: unknown[] = []
    const app = createApp({ rewriteUrl: () => '/orders/8' })
    await app.register(rateLimit, {
      ...two,
      skip: (_, request) => {
        const { method, url, route, peerAddress } = request
        seen.push(method, url, route, peerAddress, request.header('x-tag'), request.header('x-none'))
        return true
      },
    })
    app.put('/orders/:id', () => 'order')
    await (await serve(app)).get('/orders/7?full=1', { method: 'PUT', headers: { 'x-tag': 'a' } })
    expect(seen).toEqual(['PUT', '/orders/7?full=1', '/orders/:id', '127.0.0.1', 'a', undefined])
  })

  it('decides before the body is read, or when the hook says', async () => {
    const app = createApp()
    await app.register(rateLimit, {
      ...two,
      limit: 1,
      hook: 'preHandler',
      key: (request) => (request.body as { account: string }).account,
    })
    app.post('/login', () => 'in')
    const site = await serve(app)
    const login = (account: string): RequestInit => ({
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ account }),
    })

    expect(await site.statuses(2, '/login', login('a'))).toEqual([200, 429])
    expect(await site.statuses(2, '/login', login('b'))).toEqual([200, 429])
  })

  it('counts a request once that is passed on to the handler for what is not found', async () => {
    const app = createApp()
    await app.register(rateLimit, { ...two, hook: 'preHandler' })
    app.get('/own', { config: { rateLimit: { limit: 1, window: '1h' } } }, (_, reply) => void reply.callNotFound())
    app.get('/', (_, reply) => void reply.callNotFound())
    const site = await serve(app)

    expect(await site.statuses(1, '/own')).toEqual([404])
    expect(await site.statuses(3, '/')).toEqual([404, 404, 429])
  })

  it('leaves a store open that it was given, and may be registered by several apps', async () => {
    const store = memoryStore({ clock })
    for (const expected of [200, 200, 429]) {
      const app = createApp()
      await app.register(rateLimit, { ...two, store })
      app.get('/', () => 'here')
      expect(await (await serve(app)).statuses(1, '/')).toEqual([expected])
      await app.close()
    }
  })
})

describe('a limit of a route', () => {
  it('takes the place of that of the plugin, and counts for itself', async () => {
    const app = createApp()
    await app.register(rateLimit, two)
    const config = { rateLimit: { limit: 1, window: '1h' } } as const
    app.get('/a', { config }, () => 'a')
    app.get('/b', { config }, () => 'b')
    app.get('/plain', () => 'plain')
    const site = await serve(app)

    expect(await site.statuses(2, '/a')).toEqual([200, 429])
    expect(await site.statuses(2, '/b')).toEqual([200, 429])
    expect(await site.statuses(3, '/plain')).toEqual([200, 200, 429])
    const denied = (await (await site.get('/a')).json()) as { 'violated-policies': string[] }
    expect(denied['violated-policies']).toEqual(['GET:/a'])
  })

  it('is shared by routes that give it one name', async () => {
    const app = createApp()
    await app.register(rateLimit, two)
    const config = { rateLimit: { name: 'search', limit: 2, window: '1h' } } as const
    app.get('/a', { config }, () => 'a')
    app.get('/b', { config }, () => 'b')
    const site = await serve(app)

    expect(await site.statuses(1, '/a')).toEqual([200])
    expect(await site.statuses(2, '/b')).toEqual([200, 429])
  })

  it('counts HEAD with GET, and a path with a slash with that without', async () => {
    const app = createApp()
    await app.register(rateLimit, two)
    await app.register(
      (inner, _, done) => {
        inner.get('/', { config: { rateLimit: { limit: 3, window: '1h' } } }, () => 'here')
        done()
      },
      { prefix: '/inner' },
    )
    const site = await serve(app)

    expect(await site.statuses(1, '/inner', { method: 'HEAD' })).toEqual([200])
    expect(await site.statuses(1, '/inner/')).toEqual([200])
    expect(await site.statuses(2, '/inner')).toEqual([200, 429])
    expect(await site.statuses(1, '/inner/', { method: 'HEAD' })).toEqual([429])
  })

  it.each(['/:id(^\\d+$)', '/@me', '/søk/:what?', '/*'])('may be that of %s', async (path) => {
    const app = createApp()
    await app.register(rateLimit, { ...two, global: false })
    app.get(path, { config: { rateLimit: two } }, () => 'here')
    const site = await serve(app)
    const called = path.includes('d+') ? '/7' : path.replace('/:what?', '')
    expect(await site.statuses(3, called)).toEqual([200, 200, 429])
  })

  it('may be none', async () => {
    const app = createApp()
    await app.register(rateLimit, two)
    app.get('/health', { config: { rateLimit: false } }, (request) => String(request.rateLimit))
    const site = await serve(app)

    expect(await site.statuses(3, '/health')).toEqual([200, 200, 200])
    const response = await site.get('/health')
    expect([await response.text(), response.headers.get('x-ratelimit-limit')]).toEqual(['undefined', null])
  })

  it('may change how the limit of the plugin is applied', async () => {
    const app = createApp()
    await app.register(rateLimit, { ...two, limit: 5 })
    app.get('/cheap', () => 'cheap')
    app.get('/dear', { config: { rateLimit: { cost: 4 } } }, () => 'dear')
    const site = await serve(app)

    expect(await site.statuses(2, '/dear')).toEqual([200, 429])
    expect(await site.statuses(2, '/cheap')).toEqual([200, 429])
  })

  it('takes over how it is applied from the plugin, unless it says otherwise', async () => {
    const app = createApp()
    await app.register(rateLimit, {
      ...two,
      headers: 'draft-11',
      status: 430,
      key: (request) => String(request.headers['x-user']),
    })
    app.get('/', { config: { rateLimit: { limit: 1, window: '1h', status: 420 } } }, () => 'here')
    const site = await serve(app)

    expect(await site.statuses(2, '/', { headers: { 'x-user': 'a' } })).toEqual([200, 420])
    const other = await site.get('/', { headers: { 'x-user': 'b' } })
    expect([other.status, other.headers.has('ratelimit'), other.headers.has('x-ratelimit-limit')]).toEqual([
      200,
      true,
      false,
    ])
  })

  it('may be made elsewhere, and needs no store then', async () => {
    const app = createApp()
    const store = memoryStore({ clock })
    await app.register(rateLimit, { ...two, store })
    const limiter = createLimiter({ limit: 1, window: '1h' })
    onTestFinished(() => limiter.close())
    app.get('/', { config: { rateLimit: { limiter } } }, () => 'here')
    app.get('/rules', { config: { rateLimit: { rules: { each: { limit: 1, window: '1h' } } } } }, () => 'rules')
    const site = await serve(app)

    expect(await site.statuses(2, '/')).toEqual([200, 429])
    expect(await site.statuses(2, '/rules')).toEqual([200, 429])
  })

  it('is the only one where the plugin is not global', async () => {
    const app = createApp()
    await app.register(rateLimit, { global: false, clock })
    app.get('/limited', { config: { rateLimit: { limit: 1, window: '1h' } } }, () => 'limited')
    app.get('/free', () => 'free')
    const site = await serve(app)

    expect(await site.statuses(2, '/limited')).toEqual([200, 429])
    expect(await site.statuses(3, '/free')).toEqual([200, 200, 200])
  })
})

describe('app.rateLimit', () => {
  it('adds a limit to that of the plugin', async () => {
    const app = createApp()
    // That neither has a name is pointed out.
    await app.register(rateLimit, { ...two, limit: 3, warn: () => undefined })
    app.get('/a', { preHandler: app.rateLimit({ limit: 1, window: '1h' }) }, () => 'a')
    app.get('/b', { preHandler: app.rateLimit({ limit: 1, window: '1h' }) }, () => 'b')
    const site = await serve(app)

    expect(await site.statuses(2, '/a')).toEqual([200, 429])
    const last = await site.get('/b')
    expect([last.status, last.headers.get('x-ratelimit-remaining')]).toEqual([200, '0'])
    // The third was the last that the plugin lets through.
    const denied = (await (await site.get('/b')).json()) as { 'violated-policies': string[]; limit: number }
    expect(denied.limit).toBe(3)
  })

  it('counts limits of one name together', async () => {
    const app = createApp()
    await app.register(rateLimit, { global: false, clock })
    const hook = (): ReturnType<typeof app.rateLimit> => app.rateLimit({ name: 'both', limit: 2, window: '1h' })
    app.get('/a', { onRequest: hook() }, () => 'a')
    app.get('/b', { preValidation: [hook()] }, () => 'b')
    const site = await serve(app)

    expect(await site.statuses(1, '/a')).toEqual([200])
    expect(await site.statuses(2, '/b')).toEqual([200, 429])
  })

  it('without options is the limit of the plugin, which counts a request once', async () => {
    const app = createApp()
    await app.register(rateLimit, two)
    app.setNotFoundHandler({ preHandler: app.rateLimit() }, (_, reply) => void reply.code(404).send('nothing'))
    app.get('/', { preHandler: [app.rateLimit(), app.rateLimit()] }, () => 'here')
    const site = await serve(app)

    expect(await site.statuses(1, '/')).toEqual([200])
    expect(await site.statuses(2, '/nowhere')).toEqual([404, 429])
  })

  it('limits what is not found where the plugin is not global', async () => {
    const app = createApp()
    await app.register(rateLimit, { ...two, global: false })
    app.setNotFoundHandler({ preHandler: app.rateLimit() }, (_, reply) => void reply.code(404).send('nothing'))
    app.get('/', () => 'here')
    const site = await serve(app)

    expect(await site.statuses(3, '/')).toEqual([200, 200, 200])
    expect(await site.statuses(3, '/nowhere')).toEqual([404, 404, 429])
  })

  it.each([[null], ['5 per minute']])('finds mistakes when it is called: %o', async (options) => {
    const app = createApp()
    await app.register(rateLimit, two)
    expect(() => app.rateLimit(options as unknown as undefined)).toThrow(/the limit of a route cannot be used/)
  })

  it('limits a route that the plugin leaves alone', async () => {
    const app = createApp()
    await app.register(rateLimit, two)
    const config = { rateLimit: false } as const
    app.get('/', { config, preHandler: app.rateLimit({ limit: 3, window: '1h' }) }, () => 'here')
    app.get('/own', { config, preHandler: app.rateLimit() }, () => 'own')
    const site = await serve(app)

    expect(await site.statuses(4, '/')).toEqual([200, 200, 200, 429])
    expect(await site.statuses(3, '/own')).toEqual([200, 200, 429])
  })
})

describe('encapsulation', () => {
  const inner: FastifyPluginCallback = (app, _, done) => {
    app.register(rateLimit, { name: 'inner', limit: 1, window: '1h', clock, status: 420 })
    app.get('/inner', () => 'inner')
    app.get('/own', { config: { rateLimit: { limit: 2, window: '1h', headers: 'off' } } }, () => 'own')
    done()
  }

  it('keeps the limits of a plugin inside it', async () => {
    const app = createApp()
    app.register(inner)
    app.get('/outer', () => 'outer')
    const site = await serve(app)

    expect(await site.statuses(2, '/inner')).toEqual([200, 420])
    expect(await site.statuses(3, '/outer')).toEqual([200, 200, 200])
  })

  it('lets the limits outside hold, too', async () => {
    const app = createApp()
    await app.register(rateLimit, { ...two, limit: 3 })
    app.register(inner)
    app.get('/outer', () => 'outer')
    const site = await serve(app)

    expect(await site.statuses(3, '/inner')).toEqual([200, 420, 420])
    expect(await site.statuses(1, '/outer')).toEqual([429])
  })

  it('leaves the limit of a route to the innermost plugin, which decides once', async () => {
    const app = createApp()
    await app.register(rateLimit, { ...two, limit: 3 })
    app.register(inner)
    const site = await serve(app)

    expect(await site.statuses(3, '/own')).toEqual([200, 200, 420])
  })

  it('gives each plugin its own app.rateLimit', async () => {
    const app = createApp()
    await app.register(rateLimit, two)
    await app.register(async (child) => {
      await child.register(rateLimit, { ...two, name: 'child', limit: 1, global: false })
      child.get('/', { config: { rateLimit: false }, onRequest: child.rateLimit() }, () => 'here')
    })
    expect(await (await serve(app)).statuses(2, '/')).toEqual([200, 429])
  })
})

describe('onLimited', () => {
  const none = { ...two, limit: 0 }

  it('answers with what it returns, under the headers of the limit', async () => {
    const app = createApp()
    await app.register(rateLimit, {
      ...none,
      onLimited: (request, _, denial) => ({ path: request.url, again: denial.decision.retryAfterMs }),
    })
    const response = await (await serve(app)).get('/here')

    expect(response.status).toBe(429)
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(response.headers.get('x-ratelimit-limit')).toBe('0')
    expect(await response.json()).toEqual({ path: '/here', again: null })
  })

  it.each([
    ['at once', (): undefined => undefined],
    ['later', (): Promise<void> => Promise.resolve()],
  ])('answers %s by itself', async (_, wait) => {
    const app = createApp()
    await app.register(rateLimit, {
      ...none,
      onLimited: async (_request, reply) => {
        await wait()
        return reply.code(302).header('location', '/slow-down').send()
      },
    })
    const response = await (await serve(app)).get('/', { redirect: 'manual' })
    expect([response.status, response.headers.get('location')]).toEqual([302, '/slow-down'])
  })

  it('passes what it throws to the error handler', async () => {
    const app = createApp()
    await app.register(rateLimit, {
      ...none,
      onLimited: () => {
        throw Object.assign(new Error('slow down'), { statusCode: 420 })
      },
    })
    app.setErrorHandler((error, _, reply) => void reply.send(`handled: ${(error as Error).message}`))
    expect(await (await (await serve(app)).get('/')).text()).toBe('handled: slow down')
  })
})

describe('mistakes', () => {
  it.each([
    ['an option that does not exist', { limti: 5, window: '1m' }, /there is no option "limti".*Did you mean "limit"/],
    ['no limit at all', {}, /there is no limit/],
    [
      'a hook that does not exist',
      { ...two, hook: 'onSend' },
      /"hook".*received "onSend".*onRequest, preValidation, preHandler/,
    ],
  ])('are found when the plugin is registered: %s', async (_, options, message) => {
    const app = createApp()
    app.register(rateLimit, options as typeof two)
    const error = await startError(app)
    expect(String(error)).toMatch(message)
    expect(isSluiceError(error)).toBe(true)
  })

  it.each([
    ['half a limit', { limit: 5 }, /window/],
    ['true', true, /received true.*or false for no limit/],
    ['null', null, /received null/],
    ['an option of the plugin', { hook: 'preHandler' }, /"hook" is an option of the plugin.*app\.rateLimit\(options\)/],
    ['two sources of limits', { limit: 5, window: '1m', rules: {} }, /limits come from/],
  ])('in the limit of a route are found when the app starts: %s', async (_, limit, message) => {
    const app = createApp()
    await app.register(rateLimit, two)
    const declare = (): void => void app.get('/', { config: { rateLimit: limit as false } }, () => 'here')
    let error: unknown
    try {
      declare()
      error = await startError(app)
    } catch (thrown) {
      error = thrown
    }
    expect(String(error)).toMatch(message)
    expect(isSluiceError(error)).toBe(true)
  })

  it('in a route that was declared too early are reported with its first request, which fails', async () => {
    const app = createApp()
    app.register(rateLimit, two)
    app.get('/', { config: { rateLimit: true as unknown as false } }, () => 'here')
    const response = await (await serve(app)).get('/')
    expect(response.status).toBe(500)
    expect(await response.text()).toContain('SLUICE_INVALID_OPTION')
  })

  it.each([
    ['at once', () => null as never],
    ['later', () => Promise.reject(new Error('no key'))],
  ])('of a key function go to the error handler: %s', async (_, fail) => {
    const app = createApp()
    await app.register(rateLimit, {
      ...two,
      key: (request) => fail() ?? (request.headers['x-missing'] as string).toLowerCase(),
    })
    app.get('/', () => 'here')
    app.setErrorHandler((error, _request, reply) => void reply.code(500).send(`handled: ${(error as Error).message}`))
    const response = await (await serve(app)).get('/')
    expect(response.status).toBe(500)
    expect(await response.text()).toMatch(/^handled: /)
  })
})
