// What users see who import `rateLimit` from the entry of another framework: each one in each of the real
// others.
import 'reflect-metadata'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import Fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { describe, expect, it, onTestFinished } from 'vitest'
import { rateLimit as expressLimit } from '../adapters/express/express.ts'
import { rateLimit as fastifyLimit } from '../adapters/fastify/fastify.ts'
import { rateLimit as fetchLimit } from '../adapters/fetch/fetch.ts'
import { rateLimit as honoLimit } from '../adapters/hono/hono.ts'
import { rateLimit as koaLimit } from '../adapters/koa/koa.ts'
import { detectFramework, wrongFrameworkError } from './framework-detection.ts'

interface Failed {
  readonly code?: unknown
  readonly message: string
}

/** What is put where a framework expects something of its own. */
type Untyped = never

const LIMIT = { limit: 5, window: '1m' } as const
const NONE: Failed = { message: 'no error' }

async function firstAnswer(listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } })
  await response.text()
  return response.status
}

async function errorOf(act: () => unknown): Promise<Failed> {
  try {
    await act()
  } catch (error) {
    return error as Failed
  }
  return NONE
}

/** The error of the first request, or of the start, of an app of each framework with this middleware. */
const PLACES: readonly (readonly [framework: string, (middleware: unknown) => Promise<Failed>])[] = [
  [
    'express',
    async (middleware) => {
      let error = NONE
      const app = express()
      app.use(middleware as Untyped)
      app.use((thrown: Failed, _: express.Request, response: express.Response, _next: express.NextFunction) => {
        error = thrown
        response.status(500).end()
      })
      app.use((_, response) => void response.end('done'))
      await firstAnswer(app)
      return error
    },
  ],
  [
    'hono',
    async (middleware) => {
      let error = NONE
      const app = new Hono()
      app.use(middleware as Untyped)
      app.get('/', (c) => c.text('done'))
      app.onError((thrown, c) => {
        error = thrown
        return c.text('', 500)
      })
      await firstAnswer(getRequestListener(app.fetch))
      return error
    },
  ],
  [
    'koa',
    async (middleware) => {
      let error = NONE
      const app = new Koa()
      app.on('error', (thrown: Failed) => {
        error = thrown
      })
      app.use(middleware as Untyped)
      app.use((context) => {
        context.body = 'done'
      })
      await firstAnswer(app.callback())
      return error
    },
  ],
  [
    'fastify',
    async (middleware) => {
      let error = NONE
      const app = Fastify()
      onTestFinished(() => app.close())
      app.setErrorHandler((thrown: Failed, _, reply) => {
        error = thrown
        return reply.code(500).send()
      })
      app.addHook('onRequest', middleware as Untyped)
      app.get('/', () => 'done')
      await app.inject('/')
      return error
    },
  ],
  ['fetch', (middleware) => errorOf(() => (middleware as (request: Request) => unknown)(new Request('http://a/')))],
]

const LIMITERS: readonly (readonly [framework: string, unknown])[] = [
  ['express', expressLimit(LIMIT)],
  ['hono', honoLimit(LIMIT)],
  ['koa', koaLimit(LIMIT)],
  ['fetch', fetchLimit(LIMIT)],
  ['fetch', fetchLimit(LIMIT)(() => new Response('done'))],
]

const PAIRS = LIMITERS.flatMap(([of, middleware]) =>
  PLACES.filter(([framework]) => framework !== of).map(
    ([framework, place]) => [of, framework, middleware, place] as const,
  ),
)

describe('a limiter of another framework', () => {
  it.each(PAIRS)('of %s in %s says what to import', async (of, framework, middleware, place) => {
    const { code, message } = await place(middleware)
    expect(message).toContain(`the limiter for ${of} was called with `)
    expect(message).toContain(`Import rateLimit from "sluice/${framework}", and write: `)
    expect(code).toBe('SLUICE_INVALID_OPTION')
  })

  it.each(PLACES.filter(([framework]) => framework !== 'fastify'))('of fastify in %s too', async (framework, place) => {
    const { code, message } = await place(fastifyLimit)
    expect(message).toContain(`Import rateLimit from "sluice/${framework}", and write: `)
    expect(code).toBe('SLUICE_INVALID_OPTION')
  })

  it.each([
    ['express', expressLimit(LIMIT)],
    ['hono', honoLimit(LIMIT)],
    ['koa', koaLimit(LIMIT)],
    ['fetch', fetchLimit(LIMIT)],
  ])('of %s that is registered with Fastify lets the start fail', async (_, plugin) => {
    const app = Fastify()
    onTestFinished(() => app.close())
    const { message } = await errorOf(() => app.register(plugin as Untyped))
    expect(message).toContain('was called with an app of Fastify')
    expect(message).toContain('await app.register(rateLimit, { limit: 100, window: "1m" })')
  })

  it.each([
    ['express', expressLimit],
    ['hono', honoLimit],
    ['koa', koaLimit],
    ['fetch', fetchLimit],
  ] as const)('of %s that is not even called says what to import', async (_, limit) => {
    const error = await errorOf(() => (limit as (options: unknown) => unknown)(Fastify()))
    expect(error.message).toContain('was given an app of Fastify in place of options')
    expect(error.message).toContain('Import rateLimit from "sluice/fastify"')
  })

  it('for Express, called with a bare request of Node, names what there is for other frameworks', async () => {
    const passed: Failed[] = []
    const limiter = expressLimit(LIMIT)
    await firstAnswer((request, response) => {
      limiter(request as Untyped, response as Untyped, (error?: unknown) => {
        passed.push(error as Failed)
        response.end()
      })
    })
    expect(passed).toMatchObject([
      { code: 'SLUICE_INVALID_OPTION', message: expect.stringContaining('createHttpLimiter of "sluice/middleware"') },
    ])
  })
})

describe('in their own framework', () => {
  it.each(PLACES.slice(0, 3))('that of %s limits', async (framework, place) => {
    const own = LIMITERS.find(([of]) => of === framework)![1]
    expect(await place(own)).toBe(NONE)
  })
})

describe('what is called with', () => {
  it.each([undefined, null, 5, 'text', {}, { limit: 5, window: '1m' }, []])('%j is nothing of a framework', (value) => {
    expect(detectFramework(value)).toBeUndefined()
  })

  it('and is none of all that is shown', () => {
    expect(wrongFrameworkError('koa', 5).message).toContain('called with something else; received 5')
    expect(wrongFrameworkError('koa', undefined).action).toBeUndefined()
  })

  it('and is a call of Nest is known', () => {
    expect(wrongFrameworkError('express', { switchToHttp: () => undefined }).message).toContain(
      'Import RateLimitModule from "sluice/nest"',
    )
  })
})
