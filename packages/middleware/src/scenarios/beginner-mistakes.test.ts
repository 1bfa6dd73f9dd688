// What users see for each mistake: an error code, and text that says what to write instead.
// Each mistake is made on the real frameworks.
import 'reflect-metadata'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import type { Type } from '@nestjs/common'
import { Controller, Get, Module, UseGuards } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { createLimiter, memoryStore } from '@sluice/core'
import { PolicyEngine } from '@sluice/core/policy'
import { redisStore } from '@sluice/store-redis'
import express from 'express'
import Fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { createClient } from 'redis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { rateLimit as expressLimit } from '../adapters/express/express.ts'
import { rateLimit as fastifyLimit } from '../adapters/fastify/fastify.ts'
import { rateLimit as fetchLimit } from '../adapters/fetch/fetch.ts'
import { rateLimit as honoLimit } from '../adapters/hono/hono.ts'
import { rateLimit as koaLimit } from '../adapters/koa/koa.ts'
import { RateLimit, RateLimitGuard, RateLimitModule, SkipRateLimit } from '../adapters/nest/nest.ts'
import { byApiKey } from '../identity/by-api-key.ts'
import { byIp, byUser } from '../identity/identity.ts'
import type { MisuseWarning } from '../misuse/misuse-warning.ts'

/** Options as they are written without type checks. */
type Untyped = never

interface Failed {
  readonly code: unknown
  readonly message: string
}

/** The error that `act` ends with. */
async function errorOf(act: () => unknown): Promise<Failed> {
  try {
    await act()
  } catch (error) {
    return error as Failed
  }
  return { code: 'none', message: 'no error' }
}

async function expectAdvice(act: () => unknown, code: string, phrase: string): Promise<void> {
  const error = await errorOf(act)
  expect(error.message).toContain(phrase)
  expect(error.code).toBe(code)
}

/** A Nest app with these modules and routes, and an error where other apps would end the process. */
async function nestApp(imports: readonly unknown[], controllers: readonly Type[] = []): Promise<unknown> {
  class App {}
  Module({ imports: imports as [], controllers: [...controllers] })(App)
  const app = await NestFactory.create(App, new ExpressAdapter(), { logger: false, abortOnError: false })
  onTestFinished(() => app.close())
  return app.init()
}

/** The first line of an app with a limit, for each framework. */
const FRAMEWORKS: readonly (readonly [string, (options: unknown) => unknown])[] = [
  ['express', (options) => express().use(expressLimit(options as Untyped))],
  ['hono', (options) => new Hono().use(honoLimit(options as Untyped))],
  ['koa', (options) => new Koa().use(koaLimit(options as Untyped))],
  ['fetch', (options) => fetchLimit(options as Untyped)(() => new Response())],
  ['nest', (options) => nestApp([RateLimitModule.forRoot(options as Untyped)])],
  [
    'fastify',
    async (options) => {
      const app = Fastify()
      onTestFinished(() => app.close())
      await app.register(fastifyLimit, options as Untyped)
    },
  ],
]

const LIMIT = { limit: 5, window: '1m' } as const
const ADDRESS = 'redis://user:secret@localhost:6379'
const client = createClient({ url: 'redis://127.0.0.1:1' })

const RULE = 'SLUICE_INVALID_RULE'
const DURATION = 'SLUICE_INVALID_DURATION'
const OPTION = 'SLUICE_INVALID_OPTION'

const WRITE_LIMIT = 'Write "limit": the units in each window.'
const WRITE_WINDOW = 'Write "window": a string with its unit, such as "1m", or milliseconds.'

/** Mistakes in a limit, in front of a framework and without one. */
const WRONG_LIMITS: readonly (readonly [what: string, options: unknown, code: string, phrase: string])[] = [
  ['a limit in quotes', { limit: '100', window: '1m' }, RULE, 'Write the number without quotes: limit: 100.'],
  ['no limit', { window: '1m' }, RULE, 'Add "limit".'],
  ['a limit below 0', { limit: -1, window: '1m' }, RULE, 'Use 0 to deny all, or "off" not to limit.'],
  ['no window', { limit: 5 }, DURATION, 'Give "window" with its unit, for example "1m".'],
  ['a window in words', { limit: 5, window: '1 minute' }, DURATION, 'Write "1m".'],
  [
    'a window without unit',
    { limit: 5, window: '60' },
    DURATION,
    'Write "60s" for seconds, or "60ms" for milliseconds.',
  ],
  ['a misspelt algorithm', { ...LIMIT, algorithm: 'token_bucket' }, RULE, 'Did you mean "token-bucket"?'],
  ['another algorithm', { ...LIMIT, algorithm: 'token-bucket' }, RULE, 'This algorithm calls it "capacity".'],
  ['a name with blanks', { ...LIMIT, name: 'per user' }, RULE, '1 to 128 letters, digits or any of _ . : / * @ -'],
  ['an address as store', { ...LIMIT, store: ADDRESS }, OPTION, 'received "redis://..."; expected a store'],
  ['what to do with it', { ...LIMIT, store: ADDRESS }, OPTION, 'redisStore of "sluice/redis": store: redisStore(url)'],
  ['a client as store', { ...LIMIT, store: client }, OPTION, 'It is a client of Redis. Pass it to redisStore'],
  ['a function as store', { ...LIMIT, store: redisStore }, OPTION, 'Call the function: what it makes is the store.'],
  ['a promise as store', { ...LIMIT, store: Promise.resolve() }, OPTION, 'It is a promise: await it first.'],
  ['another store', { ...LIMIT, store: { increment: () => 1 } }, OPTION, 'It is a store of another library'],
  ['an object as store', { ...LIMIT, store: {} }, OPTION, 'Leave it out to count in the memory of this process.'],
  ['a list of rules', { rules: [LIMIT] }, OPTION, 'expected an object of rules by their names'],
  ['a rule of another library', { rules: { a: { max: 5, windowMs: 1000 } } }, RULE, WRITE_LIMIT],
]

const limiter = createLimiter({ limit: 5, window: '1m' })
const set = createLimiter({ rules: { a: { limit: 5, window: '1m' } } })
const engine = new PolicyEngine({ store: memoryStore() })

/** Mistakes in all the rest. */
const WRONG_OPTIONS: readonly (readonly [what: string, options: unknown, code: string, phrase: string])[] = [
  ['express-rate-limit', { max: 100, windowMs: 60_000 }, OPTION, WRITE_LIMIT],
  ['its window', { limit: 100, windowMs: 60_000 }, OPTION, WRITE_WINDOW],
  ['rate-limiter-flexible', { points: 100, duration: 60 }, OPTION, WRITE_LIMIT],
  ['its window', { limit: 100, duration: 60 }, OPTION, WRITE_WINDOW],
  ['@fastify/rate-limit', { limit: 100, timeWindow: '1 minute' }, OPTION, WRITE_WINDOW],
  ['@nestjs/throttler', { limit: 100, ttl: 60_000 }, OPTION, WRITE_WINDOW],
  ['limiter', { tokensPerInterval: 100, interval: 'minute' }, OPTION, WRITE_LIMIT],
  ['keyGenerator', { ...LIMIT, keyGenerator: () => 'a' }, OPTION, 'Write "key": a function that says who is counted.'],
  ['handler', { ...LIMIT, handler: () => 'a' }, OPTION, 'Write "onLimited"'],
  ['standardHeaders', { ...LIMIT, standardHeaders: true }, OPTION, 'Write "headers": "legacy", "draft-11"'],
  ['skipFailedRequests', { ...LIMIT, skipFailedRequests: true }, OPTION, 'Write "refund": the statuses'],
  ['passOnStoreError', { ...LIMIT, passOnStoreError: true }, OPTION, 'Write "failureMode"'],
  ['redis', { ...LIMIT, redis: client }, OPTION, 'Write "store": redisStore(client)'],
  ['throttlers', { throttlers: [LIMIT] }, OPTION, 'Write "rules": an object of rules by their names.'],
  ['a misspelt option', { limit: 5, windw: '1m' }, OPTION, 'Did you mean "window"?'],
  ['nothing at all', {}, OPTION, 'a limit such as { limit: 100, window: "1m" }'],
  ['rules and a limit', { ...LIMIT, rules: { a: LIMIT } }, OPTION, 'put all of them into "rules"'],
  ['a rule as limiter', { limiter: LIMIT }, OPTION, 'a limiter, such as createLimiter({ limit: 100, window: "1m" })'],
  ['a rule set as engine', { engine: { rules: [] } }, OPTION, 'an engine, such as new PolicyEngine({ store })'],
  ['the name of a key', { ...LIMIT, key: 'user' }, OPTION, '"ip" or a function such as (request) => request.user?.id'],
  ['trust in everybody', { ...LIMIT, trustProxy: true }, OPTION, 'say how many proxies there are, or which'],
  ['half a unit', { ...LIMIT, cost: 1.5 }, OPTION, 'received 1.5; expected a whole number of units'],
  [
    'more than the limit',
    { ...LIMIT, cost: 6 },
    OPTION,
    'received 6; expected at most 5. Lower the cost, or raise the limit',
  ],
  ['a number of proxies in quotes', { ...LIMIT, trustProxy: '1' }, OPTION, 'without quotes: trustProxy: 1.'],
  ['trust in quotes', { ...LIMIT, trustProxy: 'true' }, OPTION, 'say how many proxies there are, or which'],
  ['no trust in quotes', { ...LIMIT, trustProxy: 'false' }, OPTION, 'write false without quotes'],
  ['a network of Express', { ...LIMIT, trustProxy: 'uniquelocal' }, OPTION, 'Write "private".'],
  ['a list in one string', { ...LIMIT, trustProxy: 'loopback, 10.0.0.0/8' }, OPTION, '["loopback","10.0.0.0/8"]'],
  ['a clock that is none', { ...LIMIT, clock: Date }, OPTION, '{ nowMicros: () => Date.now() * 1000 }'],
  ['a limiter', limiter, OPTION, 'was given a limiter in place of options'],
  ['what to do with it', limiter, OPTION, 'Write: { limiter }.'],
  ['several limiters', set, OPTION, 'Write: { limiter, rules: { perUser: {} } }'],
  ['a store', memoryStore(), OPTION, 'Write: { limit: 100, window: "1m", store }.'],
  ['an engine', engine, OPTION, 'Write: { engine }.'],
  ['a list', [{ ttl: 60_000, limit: 10 }], OPTION, 'Several at once are "rules", by their names.'],
  ['limits by names', { default: { ttl: 60_000, limit: 10 } }, OPTION, 'Several at once are "rules": { "default": {'],
  ['a misspelt key of a rule', { rules: { a: { ...LIMIT, keys: 'ip' } } }, RULE, 'Did you mean "key"?'],
  ['a shadow for one rule', { rules: { a: { ...LIMIT, shadow: true } } }, RULE, 'put it beside "rules"'],
  ['a skip for one rule', { rules: { a: { ...LIMIT, skip: () => true } } }, RULE, 'put it beside "rules"'],
  ['a name in a rule', { rules: { a: { ...LIMIT, name: 'b' } } }, RULE, 'The rule has its name: it is "a".'],
  ['an old draft', { ...LIMIT, headers: 'draft-8' }, OPTION, 'expected one of legacy, draft-11, both, off'],
]

describe.each(FRAMEWORKS)('in front of %s', (_, limited) => {
  it.each([...WRONG_LIMITS, ...WRONG_OPTIONS])('%s', async (_what, options, code, phrase) => {
    await expectAdvice(() => limited(options), code, phrase)
  })

  it('no options', async () => {
    await expectAdvice(() => limited(undefined), OPTION, 'a limit such as { limit: 100, window: "1m" }')
  })

  it('a window in seconds is reported, because it may be intended', async () => {
    const warnings: MisuseWarning[] = []
    await limited({ limit: 5, window: 60, warn: (warning: MisuseWarning) => warnings.push(warning) })
    expect(warnings).toMatchObject([
      { code: 'SLUICE_USE_SHORT_WINDOW', message: expect.stringContaining('Write "60s" for seconds.') },
    ])
  })
})

describe('without a framework', () => {
  it.each([
    ...WRONG_LIMITS,
    ['no options', undefined, OPTION, 'a rule such as { limit: 100, window: "1m" }'],
    ['express-rate-limit', { max: 100, windowMs: 60_000 }, RULE, WRITE_LIMIT],
    ['@nestjs/throttler', { limit: 100, ttl: 60_000 }, RULE, WRITE_WINDOW],
    ['a misspelt option', { limit: 5, windw: '1m' }, RULE, 'Did you mean "window"?'],
    ['rules and a limit', { ...LIMIT, rules: { a: LIMIT } }, OPTION, 'Put the options of a rule into that rule.'],
  ] as const)('%s', async (_what, options, code, phrase) => {
    await expectAdvice(() => createLimiter(options as Untyped), code, phrase)
  })

  it.each([
    ['a key that is a number', () => limiter.check(7 as Untyped), 'SLUICE_INVALID_KEY', 'a string'],
    ['no key', () => limiter.check(undefined as Untyped), 'SLUICE_INVALID_KEY', 'a string'],
    ['half a unit', () => limiter.check('a', { cost: 1.5 }), 'SLUICE_INVALID_COST', 'whole number'],
  ] as const)('%s', async (_what, act, code, phrase) => {
    await expectAdvice(act, code, phrase)
  })
})

describe('redisStore', () => {
  it.each([
    ['an address without scheme', 'localhost:6379', 'redis://'],
    ['the scheme of another', 'http://localhost:6379', 'redis://'],
    ['no address', undefined, 'node-redis'],
    ['what is no client', {}, 'node-redis'],
  ])('%s', async (_what, target, phrase) => {
    await expectAdvice(() => redisStore(target), OPTION, phrase)
  })

  it('a misspelt option', async () => {
    await expectAdvice(
      () => redisStore('redis://127.0.0.1:1', { failuremode: 'open' } as Untyped),
      OPTION,
      'Did you mean "failureMode"?',
    )
  })

  it('a client that was not connected', async () => {
    const store = redisStore(client)
    onTestFinished(() => store.close())
    await expectAdvice(() => createLimiter({ ...LIMIT, store } as Untyped), 'none', 'no error')
    const remote = createLimiter({ limit: 5, window: '1m', store })
    await expectAdvice(() => remote.check('a'), OPTION, 'connect()')
  })

  it('a server that is not running is answered without it, and the decision says so', async () => {
    const store = redisStore('redis://127.0.0.1:1')
    onTestFinished(() => store.close())
    const decision = await createLimiter({ limit: 5, window: '1m', store }).check('a')
    expect(decision.failure).toMatchObject({ mode: 'open', cause: 'unreachable' })
  })
})

/** The answer of a server to its first request, and what it said of it where errors go. */
async function firstAnswer(listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } })
  await response.text()
  return response.status
}

type Answered = readonly [status: number, error: Failed]

/** An app of each framework with one middleware; its first answer, and the error behind it. */
const APPS: readonly (readonly [string, unknown, (middleware: unknown) => Promise<Answered>])[] = [
  [
    'express',
    expressLimit,
    async (middleware) => {
      let error = { code: 'none', message: '' } as Failed
      const app = express()
      app.use(middleware as express.RequestHandler)
      app.use((thrown: Failed, _: express.Request, response: express.Response, _next: express.NextFunction) => {
        error = thrown
        response.status(500).end()
      })
      app.use((_, response) => void response.end('done'))
      return [await firstAnswer(app), error]
    },
  ],
  [
    'hono',
    honoLimit,
    async (middleware) => {
      let error = { code: 'none', message: '' } as Failed
      const app = new Hono()
      app.use(middleware as Parameters<typeof app.use>[0])
      app.get('/', (c) => c.text('done'))
      app.onError((thrown, c) => {
        error = thrown as unknown as Failed
        return c.text('', 500)
      })
      return [await firstAnswer(getRequestListener(app.fetch)), error]
    },
  ],
  [
    'koa',
    koaLimit,
    async (middleware) => {
      let error = { code: 'none', message: '' } as Failed
      const app = new Koa()
      app.on('error', (thrown: Failed) => {
        error = thrown
      })
      app.use(middleware as Koa.Middleware)
      app.use((context) => {
        context.body = 'done'
      })
      return [await firstAnswer(app.callback()), error]
    },
  ],
]

describe.each(APPS)('a request to %s', (_, limit, answer) => {
  const make = limit as (options: unknown) => unknown

  it('that meets the function that makes limiters, and no limiter', async () => {
    const [status, error] = await answer(limit)
    expect([status, error.code]).toEqual([500, OPTION])
    expect(error.message).toContain('given a request in place of options')
    expect(error.message).toContain('Call it once, where the app is set up, and pass on what it returns')
  })

  it.each<[string, object, string, string]>([
    ['a number', { key: () => 7 }, 'SLUICE_INVALID_KEY', 'Turn the number into a string: String(id).'],
    ['an object', { key: () => ({ id: 7 }) }, 'SLUICE_INVALID_KEY', 'a string, { kind, value } of two strings'],
    ['half a unit', { cost: () => 1.5 }, 'SLUICE_INVALID_COST', 'whole number'],
    ['no number', { cost: () => Number.NaN }, 'SLUICE_INVALID_COST', 'whole number'],
  ])('whose key or cost is %s', async (_what, options, code, phrase) => {
    const [status, error] = await answer(make({ ...LIMIT, ...options }))
    expect([status, error.code]).toEqual([500, code])
    expect(error.message).toContain(phrase)
  })

  it.each<[string, unknown, string]>([
    ['true', true, 'Answer with what check() gives, not with that of tryAcquire().'],
    ['nothing', undefined, 'Return it.'],
  ])('whose check answers %s', async (_what, answered, phrase) => {
    const [status, error] = await answer(make({ check: () => answered }))
    expect([status, error.code]).toEqual([500, OPTION])
    expect(error.message).toContain(phrase)
  })

  it('whose key throws goes to the error handler of the app', async () => {
    const thrown = new Error('no session')
    const key = () => {
      throw thrown
    }
    expect(await answer(make({ ...LIMIT, key }))).toEqual([500, thrown])
  })

  it('whose key is undefined counts on its address', async () => {
    const store = memoryStore()
    const decisions: unknown[] = []
    const onDecision = (decision: { remaining: number }) => decisions.push(decision.remaining)
    const options = { ...LIMIT, store, onDecision }
    expect(await answer(make({ ...options, key: () => undefined }))).toMatchObject([200, { code: 'none' }])
    expect(await answer(make(options))).toMatchObject([200, { code: 'none' }])
    expect(decisions).toEqual([4, 3])
  })
})

describe.each(APPS)('a Redis that is not running, behind %s', (framework, limit, answer) => {
  it('is reported, and limits nothing unless its failure mode does', async () => {
    const store = redisStore('redis://127.0.0.1:1')
    onTestFinished(() => store.close())
    const warnings: MisuseWarning[] = []
    const options = { ...LIMIT, name: framework, store, warn: (warning: MisuseWarning) => warnings.push(warning) }
    const make = limit as (options: unknown) => unknown
    expect(await answer(make(options))).toMatchObject([200, { code: 'none' }])
    expect(await answer(make({ ...options, name: 'strict', failureMode: 'closed' }))).toMatchObject([503, {}])
    expect(warnings).toMatchObject([
      { code: 'SLUICE_USE_STORE_AWAY', message: expect.stringContaining('that the server runs') },
    ])
    expect(warnings[0]?.message).toContain('(unreachable): a request was answered by the failure mode "open"')
  })
})

describe('who is counted', () => {
  it.each([
    [
      'byUser without a function',
      () => byUser(undefined as Untyped),
      'Write: key: byUser((request) => request.user?.id)',
    ],
    ['byUser with a name', () => byUser('id' as Untyped), 'received "id"; expected a function such as'],
    ['byIp without a function', () => byIp(undefined as Untyped), 'Write: key: byIp((request) => request.ip)'],
    ['byApiKey without options', () => byApiKey(undefined as Untyped), 'expected an object such as { verify'],
    ['byApiKey with a function', () => byApiKey((() => 'a') as Untyped), 'expected an object such as { verify'],
    ['byApiKey without verify', () => byApiKey({} as Untyped), '"verify" is missing'],
    ['a misspelt verify', () => byApiKey({ verfy: () => 'a' } as Untyped), 'Did you mean "verify"?'],
    ['a misspelt header', () => byApiKey({ verify: () => 'a', headers: 'a' } as Untyped), 'Did you mean "header"?'],
    ['a number for a header', () => byApiKey({ verify: () => 'a', header: 5 } as Untyped), '"header" cannot be used'],
  ])('%s', async (_what, act, phrase) => {
    await expectAdvice(act, OPTION, phrase)
  })

  it('the function that makes functions', async () => {
    const limited = fetchLimit({ ...LIMIT, key: byUser as Untyped })(() => new Response())
    await expectAdvice(() => limited(new Request('http://a/')), OPTION, 'Write: key: byUser(')
  })
})

describe('handlers from Request to Response', () => {
  const options = { ...LIMIT, address: () => '192.0.2.1' } as const
  const limit = fetchLimit as (...given: unknown[]) => unknown
  const request = () => new Request('http://a/')

  it.each([
    ['the handler beside the options', () => limit(LIMIT, () => new Response()), 'Write: rateLimit({ limit: 100'],
    ['the handler before the options', () => limit(() => new Response(), LIMIT), 'Write: rateLimit({ limit: 100'],
    ['no handler', () => fetchLimit(options)(undefined as Untyped), 'expected a function from a Request to a Response'],
    ['a request for a handler', () => fetchLimit(options)(request() as Untyped), 'use begin()'],
    ['an address for its function', () => fetchLimit({ ...LIMIT, address: '1.2.3.4' as Untyped }), '"address" cannot'],
    ['the same in Hono', () => honoLimit({ ...LIMIT, address: '1.2.3.4' as Untyped }), '"address" cannot be used'],
  ])('%s', async (_what, act, phrase) => {
    await expectAdvice(act, OPTION, phrase)
  })

  it.each([
    ['nothing', undefined, 'what the handler answered cannot be used; received undefined; expected a Response'],
    ['a string', 'done', 'Make one of it, such as Response.json(value).'],
    ['an object', { done: true }, 'Make one of it, such as Response.json(value).'],
  ])('a handler that answers with %s', async (_what, answer, phrase) => {
    const handler = fetchLimit(options)(() => answer as Untyped)
    await expectAdvice(() => handler(request()), OPTION, phrase)
  })

  it('a denial that answers with nothing', async () => {
    const handler = fetchLimit({ ...options, limit: 0, onLimited: () => undefined as Untyped })(() => new Response())
    await expectAdvice(() => handler(request()), OPTION, 'what "onLimited" answered cannot be used')
  })
})

describe('Fastify', () => {
  it('with the function that makes hooks as a hook', async () => {
    const app = Fastify()
    onTestFinished(() => app.close())
    await app.register(fastifyLimit, { limit: 5, window: '1m' })
    app.get('/', { preHandler: app.rateLimit as Untyped }, () => 'done')
    expect((await app.inject('/')).json()).toMatchObject({
      code: OPTION,
      message: expect.stringContaining('Call it: { preHandler: app.rateLimit() }.'),
    })
  })

  it.each([
    ['hook', 'onSend', 'expected one of onRequest, preValidation, preHandler'],
    ['global', 'no', 'expected true or false'],
  ])('with a wrong "%s"', async (option, value, phrase) => {
    const app = Fastify()
    onTestFinished(() => app.close())
    await expectAdvice(
      async () => await app.register(fastifyLimit, { ...LIMIT, [option]: value } as Untyped),
      OPTION,
      phrase,
    )
  })

  it('with the plugin called, as middleware of other frameworks is', async () => {
    const called = fastifyLimit as unknown as (options: unknown) => unknown
    await expectAdvice(
      () => called(LIMIT),
      OPTION,
      'Write: await app.register(rateLimit, { limit: 100, window: "1m" })',
    )
  })

  it('with the plugin as a hook', async () => {
    const app = Fastify()
    onTestFinished(() => app.close())
    app.addHook('onRequest', fastifyLimit as Untyped)
    const answer = await app.inject('/')
    expect(answer.statusCode).toBe(500)
    expect(answer.json()).toMatchObject({
      code: OPTION,
      message: expect.stringContaining('await app.register(rateLimit'),
    })
  })

  it('with routes before the plugin limits them all the same', async () => {
    const app = Fastify()
    onTestFinished(() => app.close())
    app.get('/', () => 'done')
    await app.register(fastifyLimit, { limit: 1, window: '1m' })
    expect([(await app.inject('/')).statusCode, (await app.inject('/')).statusCode]).toEqual([200, 429])
  })

  it('with a route that brings half a limit', async () => {
    const app = Fastify()
    onTestFinished(() => app.close())
    await app.register(fastifyLimit, { limit: 1, window: '1m' })
    app.get('/', { config: { rateLimit: { limit: 5 } } }, () => 'done')
    await expectAdvice(() => app.ready(), DURATION, 'Give "window" with its unit')
  })
})

describe('Nest', () => {
  const limitRoute = RateLimit as unknown as (...given: unknown[]) => (target: unknown) => void
  const skipRoute = SkipRateLimit as unknown as (...given: unknown[]) => unknown

  class Routes {
    answer(): string {
      return 'done'
    }
  }
  Get()(Routes.prototype, 'answer', Object.getOwnPropertyDescriptor(Routes.prototype, 'answer')!)
  Controller()(Routes)

  it('with the guard and no module', async () => {
    class Guarded extends Routes {}
    UseGuards(RateLimitGuard)(Guarded)
    Controller()(Guarded)
    await expectAdvice(
      () => nestApp([], [Guarded]),
      OPTION,
      'Add RateLimitModule.forRoot({ limit: 100, window: "1m" })',
    )
  })

  it('with a limit of a route that is none', async () => {
    class Limited extends Routes {}
    RateLimit({ max: 5, windowMs: 1000 } as Untyped)(Limited)
    Controller()(Limited)
    await expectAdvice(
      () => nestApp([RateLimitModule.forRoot({ limit: 5, window: '1m' })], [Limited]),
      OPTION,
      WRITE_LIMIT,
    )
  })

  it.each<[string, () => unknown, string]>([
    ['numbers', () => limitRoute(5, '1m'), 'received an array of 2; expected options such as @RateLimit({ limit: 5'],
    ['false', () => limitRoute(false), 'For no limit, write @SkipRateLimit().'],
    ['a name', () => limitRoute('login'), 'received "login"; expected options such as'],
    ['nothing', () => limitRoute(), 'received undefined; expected options such as'],
    ['no call, on a method', () => limitRoute(Routes.prototype, 'answer', {}), '@RateLimit was not called'],
    ['no call, on a class', () => limitRoute(Routes), '@RateLimit was not called'],
    ['no call of the other', () => skipRoute(Routes.prototype, 'answer', {}), '@SkipRateLimit was not called'],
    ['no call of the other, on a class', () => skipRoute(Routes), '@SkipRateLimit was not called'],
    ['options for the other', () => skipRoute({ default: true }), '@SkipRateLimit takes nothing'],
  ])('with a decorator that has %s', async (_what, decorate, phrase) => {
    await expectAdvice(decorate, OPTION, phrase)
  })

  it('with limits of a route by their names', async () => {
    class Limited extends Routes {}
    limitRoute({ default: { limit: 5, ttl: 1000 } })(Limited)
    Controller()(Limited)
    await expectAdvice(
      () => nestApp([RateLimitModule.forRoot({ limit: 5, window: '1m' })], [Limited]),
      OPTION,
      'Several at once are "rules": { "default": {',
    )
  })

  it('with the class of the module in place of what it makes', async () => {
    await expectAdvice(
      () => nestApp([RateLimitModule], [Routes]),
      OPTION,
      'Write: imports: [RateLimitModule.forRoot({ limit: 100, window: "1m" })].',
    )
  })

  it('with the class of the module besides what it makes, which is there for all', async () => {
    class Feature {}
    Module({ imports: [RateLimitModule], controllers: [Routes] })(Feature)
    const root = RateLimitModule.forRoot({ limit: 5, window: '1m' })
    await expectAdvice(() => nestApp([root, Feature]), 'none', 'no error')
  })

  it('with an exchange that is none', async () => {
    const exchange = { request: {} } as Untyped
    await expectAdvice(
      () => nestApp([RateLimitModule.forRoot({ limit: 5, window: '1m', exchange })]),
      OPTION,
      '"exchange" cannot be used',
    )
  })

  it('with routes that are none', async () => {
    await expectAdvice(
      () => RateLimitModule.forRoot({ ...LIMIT, routes: 'some' } as Untyped),
      OPTION,
      '"all", or "chosen"',
    )
  })

  it('with options from nowhere', async () => {
    await expectAdvice(
      () => RateLimitModule.forRootAsync({}),
      OPTION,
      'Give it one of useFactory, useClass and useExisting.',
    )
  })
})
