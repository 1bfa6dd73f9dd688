import 'reflect-metadata'
import type {
  ArgumentsHost,
  DynamicModule,
  ExceptionFilter,
  ExecutionContext,
  INestApplication,
  Type,
} from '@nestjs/common'
import { Catch, Controller, Get, HttpException, Injectable, Module, Req, UseFilters, UseGuards } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { memoryStore } from '@sluice/core'
import { FakeClock } from '@sluice/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { NestRateLimitOptions } from './nest.ts'
import { RateLimit, RateLimitException, RateLimitGuard, RateLimitModule, SkipRateLimit } from './nest.ts'

type Decorator = ClassDecorator & MethodDecorator

/** What `@one @two` before a method would do. */
function decorate(owner: Type, method: string, ...decorators: MethodDecorator[]): void {
  const descriptor = Object.getOwnPropertyDescriptor(owner.prototype, method)!
  for (const apply of decorators.toReversed()) apply(owner.prototype, method, descriptor)
}

/** A controller that answers `GET /<path>/<route>` with its decision, for each of these routes. */
function controller(
  path: string,
  routes: Readonly<Record<string, readonly Decorator[]>>,
  ...decorators: ClassDecorator[]
) {
  class Routes {}
  for (const [route, ofRoute] of Object.entries(routes)) {
    Object.defineProperty(Routes.prototype, route, { value: () => 'done', configurable: true, writable: true })
    decorate(Routes, route, Get(route), ...ofRoute)
  }
  for (const apply of [Controller(path), ...decorators]) apply(Routes)
  Object.defineProperty(Routes, 'name', { value: path })
  return Routes
}

const platforms = [
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
] as const

describe.each(platforms)('on %s', (_, adapter) => {
  async function start(imports: DynamicModule, controllers: Type[], providers: Type[] = []): Promise<INestApplication> {
    class App {}
    Module({ imports: [imports], controllers, providers })(App)
    const app = await NestFactory.create(App, adapter(), { logger: false, abortOnError: false })
    onTestFinished(() => app.close())
    return app
  }

  /** The statuses of answers to GET requests of these paths, one after the other. */
  async function statuses(app: INestApplication, ...paths: string[]): Promise<number[]> {
    const found: number[] = []
    for (const path of paths) {
      const response = await get(app, path)
      found.push(response.status)
      await response.text()
    }
    return found
  }

  async function get(app: INestApplication, path: string): Promise<Response> {
    if (!app.getHttpServer().listening) await app.listen(0, '127.0.0.1')
    return fetch(`${await app.getUrl()}/${path}`)
  }

  const two: NestRateLimitOptions = { limit: 2, window: '1h', algorithm: 'fixed-window' }

  const three = (): Type[] => [controller('a', { x: [], y: [] }), controller('b', { x: [] })]

  it('limits every route of the app by itself', async () => {
    const app = await start(RateLimitModule.forRoot(two), three())
    expect(await statuses(app, 'a/x', 'a/x', 'a/x', 'a/y', 'b/x', 'b/x', 'b/x')).toEqual([
      200, 200, 429, 200, 200, 200, 429,
    ])
  })

  it('limits all routes together by a limit with a name, and by rules', async () => {
    const rules = { all: { algorithm: 'fixed-window', limit: 2, window: '1h' } } as const
    for (const options of [{ ...two, name: 'all' }, { rules }]) {
      const app = await start(RateLimitModule.forRoot(options), three())
      expect(await statuses(app, 'a/x', 'a/y', 'b/x')).toEqual([200, 200, 429])
    }
  })

  it('denies with a problem document', async () => {
    const app = await start(RateLimitModule.forRoot({ ...two, limit: 0 }), [controller('a', { x: [] })])
    const response = await get(app, 'a/x')
    expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json\b/)
    expect(response.headers.get('x-ratelimit-limit')).toBe('0')
    expect(await response.json()).toMatchObject({ status: 429, 'violated-policies': ['a.x'], limit: 0 })
  })

  it('counts a route with a limit of its own by itself', async () => {
    const strict = RateLimit({ limit: 1, window: '1h', algorithm: 'fixed-window' })
    const app = await start(RateLimitModule.forRoot(two), [controller('a', { x: [strict], y: [strict], z: [] })])
    expect(await statuses(app, 'a/x', 'a/x', 'a/y', 'a/y', 'a/z', 'a/z', 'a/z')).toEqual([
      200, 429, 200, 429, 200, 200, 429,
    ])
  })

  it('names the limit of each route after class and method, also that of a controller', async () => {
    const none = RateLimit({ limit: 0, window: '1h' })
    const app = await start(RateLimitModule.forRoot(two), [
      controller('Orders', { list: [none] }),
      controller('Bills', { list: [], show: [] }, none),
    ])
    const problems: unknown[] = []
    for (const path of ['Orders/list', 'Bills/list', 'Bills/show']) problems.push(await (await get(app, path)).json())
    expect(problems).toMatchObject([
      { 'violated-policies': ['Orders.list'] },
      { 'violated-policies': ['Bills.list'] },
      { 'violated-policies': ['Bills.show'] },
    ])
  })

  it('counts routes whose limits have one name together', async () => {
    const shared = RateLimit({ limit: 1, window: '1h', name: 'logins' })
    const app = await start(RateLimitModule.forRoot(two), [
      controller('a', { x: [shared] }),
      controller('b', { y: [shared] }),
    ])
    expect(await statuses(app, 'a/x', 'b/y')).toEqual([200, 429])
  })

  it('lets the route go before the controller, and the controller before the module', async () => {
    const none = RateLimit({ limit: 0, window: '1h' })
    const app = await start(RateLimitModule.forRoot(two), [
      controller('a', { x: [RateLimit({ limit: 1, window: '1h' })], y: [SkipRateLimit()], z: [] }, none),
      controller('b', { x: [none], y: [] }, SkipRateLimit()),
    ])
    expect(await statuses(app, 'a/x', 'a/x', 'a/y', 'a/y', 'a/z')).toEqual([200, 429, 200, 200, 429])
    expect(await statuses(app, 'b/x', 'b/y', 'b/y', 'b/y')).toEqual([429, 200, 200, 200])
  })

  it('keeps the limit of the module when a route says only how it is applied', async () => {
    const twice = { x: [RateLimit({ cost: 2 })], y: [] }
    const app = await start(RateLimitModule.forRoot(two), [controller('a', twice)])
    expect(await statuses(app, 'a/x', 'a/x', 'a/y')).toEqual([200, 429, 200])
    const together = await start(RateLimitModule.forRoot({ ...two, name: 'all' }), [controller('a', twice)])
    expect(await statuses(together, 'a/x', 'a/y')).toEqual([200, 429])
  })

  it('limits an inherited route for each controller, and lets one take the place of another', async () => {
    const base = controller('base', {
      x: [RateLimit({ limit: 1, window: '1h' })],
      y: [RateLimit({ limit: 9, window: '1h' })],
    })
    class One extends base {}
    class Two extends base {
      y(): string {
        return 'own'
      }
    }
    Controller('one')(One)
    Controller('two')(Two)
    decorate(Two, 'y', Get('y'), RateLimit({ limit: 0, window: '1h' }))
    const app = await start(RateLimitModule.forRoot(two), [One, Two])
    expect(await statuses(app, 'one/x', 'one/x', 'two/x', 'one/y', 'two/y')).toEqual([200, 429, 200, 200, 429])
  })

  it('limits only routes that say so when the limit of the module is off', async () => {
    const strict = RateLimit({ limit: 0, window: '1h' })
    const app = await start(RateLimitModule.forRoot({ limit: 'off', window: '1h' }), [
      controller('a', { x: [strict], y: [] }),
    ])
    expect(await statuses(app, 'a/x', 'a/y', 'a/y')).toEqual([429, 200, 200])
  })

  it('guards only chosen routes when told so', async () => {
    const options: NestRateLimitOptions = { ...two, limit: 0, routes: 'chosen' }
    const app = await start(RateLimitModule.forRoot(options), [
      controller('a', { x: [UseGuards(RateLimitGuard)], y: [] }),
      controller('b', { x: [], y: [SkipRateLimit()] }, UseGuards(RateLimitGuard)),
    ])
    expect(await statuses(app, 'a/x', 'a/y', 'b/x', 'b/y')).toEqual([429, 200, 429, 200])
  })

  it('throws what exception filters can catch', async () => {
    class Filter implements ExceptionFilter<RateLimitException> {
      catch(exception: RateLimitException, host: ArgumentsHost): void {
        const { rule, reason } = exception.decision
        const response = host.switchToHttp().getResponse()
        response.status(418).send({ rule, reason, status: exception.getStatus(), document: exception.getResponse() })
      }
    }
    Catch(RateLimitException)(Filter)
    const app = await start(RateLimitModule.forRoot({ ...two, limit: 1 }), [controller('a', { x: [] })])
    app.useGlobalFilters(new Filter())
    expect(await statuses(app, 'a/x', 'a/x')).toEqual([200, 418])
    const response = await get(app, 'a/x')
    expect(await response.json()).toMatchObject({
      rule: 'a.x',
      reason: 'limit',
      status: 429,
      document: { title: 'Too many requests', status: 429 },
    })
  })

  it('throws what onLimited makes', async () => {
    const onLimited = (context: ExecutionContext): Error => new HttpException(context.getHandler().name, 420)
    const app = await start(RateLimitModule.forRoot({ ...two, limit: 0, onLimited }), [controller('a', { x: [] })])
    const response = await get(app, 'a/x')
    expect([response.status, response.headers.get('x-ratelimit-limit')]).toEqual([420, '0'])
  })

  it('tells handlers what was decided', async () => {
    class Told {
      show(context: { rateLimit?: { remaining: number } }): unknown {
        return { remaining: context.rateLimit?.remaining }
      }
    }
    Controller('told')(Told)
    decorate(Told, 'show', Get())
    Req()(Told.prototype, 'show', 0)
    const app = await start(RateLimitModule.forRoot(two), [Told])
    expect(await (await get(app, 'told')).json()).toEqual({ remaining: 1 })
  })

  it('takes its options from a factory, with what is injected', async () => {
    class Settings {
      readonly limit = 1
    }
    Injectable()(Settings)
    class SettingsModule {}
    Module({ providers: [Settings], exports: [Settings] })(SettingsModule)
    const store = memoryStore({ clock: new FakeClock() })
    const limits = RateLimitModule.forRootAsync({
      imports: [SettingsModule],
      inject: [Settings],
      useFactory: async ({ limit }: Settings) => ({ limit: await Promise.resolve(limit), window: '1h', store }),
    })
    const app = await start(limits, [controller('a', { x: [] })])
    expect(await statuses(app, 'a/x', 'a/x')).toEqual([200, 429])
    expect(store.stats().keys).toBe(1)
  })

  it('takes its options from a class', async () => {
    class Options {
      createRateLimitOptions(): NestRateLimitOptions {
        return { limit: 0, window: '1h' }
      }
    }
    Injectable()(Options)
    class OptionsModule {}
    Module({ providers: [Options], exports: [Options] })(OptionsModule)
    const byClass = await start(RateLimitModule.forRootAsync({ useClass: Options }), [controller('a', { x: [] })])
    expect(await statuses(byClass, 'a/x')).toEqual([429])
    const existing = RateLimitModule.forRootAsync({ imports: [OptionsModule], useExisting: Options, routes: 'chosen' })
    const byExisting = await start(existing, [controller('a', { x: [], y: [UseGuards(RateLimitGuard)] })])
    expect(await statuses(byExisting, 'a/x', 'a/y')).toEqual([200, 429])
  })

  it('limits what the app says has a request and an answer', async () => {
    const options: NestRateLimitOptions = {
      ...two,
      limit: 0,
      exchange: (context) => {
        const http = context.switchToHttp()
        const request = http.getRequest()
        return request.url.endsWith('free') ? undefined : { request, response: http.getResponse() }
      },
    }
    const app = await start(RateLimitModule.forRoot(options), [controller('a', { x: [], free: [] })])
    expect(await statuses(app, 'a/x', 'a/free')).toEqual([429, 200])
  })

  it('tells the route by its pattern', async () => {
    const told: unknown[] = []
    const skip: NestRateLimitOptions['skip'] = (_context, request) => {
      told.push(request.route, request.url, request.method)
      return false
    }
    const app = await start(RateLimitModule.forRoot({ ...two, skip }), [controller('a', { ':id': [] })])
    await statuses(app, 'a/7?full=1')
    expect(told).toEqual(['/a/:id', '/a/7?full=1', 'GET'])
  })

  it('finds mistakes in the options of routes when the app starts', async () => {
    const wrong = controller('a', { x: [RateLimit({ limit: -1, window: '1h' })] })
    const app = await start(RateLimitModule.forRoot(two), [wrong])
    await expect(app.init()).rejects.toMatchObject({ code: 'SLUICE_INVALID_RULE' })
  })

  it('closes the store it made when the app closes, and not one that it was given', async () => {
    let context: ExecutionContext | undefined
    const skip: NestRateLimitOptions['skip'] = (of) => {
      context = of
      return false
    }
    // The same request is shown to it again, which deserves a warning.
    const warn = (): void => undefined
    const given = memoryStore()
    const other = await start(RateLimitModule.forRoot({ ...two, skip, warn, store: given }), [
      controller('a', { x: [] }),
    ])
    const own = await start(RateLimitModule.forRoot({ ...two, skip, warn }), [controller('a', { x: [] })])
    for (const app of [other, own]) {
      await statuses(app, 'a/x')
      await app.close()
    }
    expect(given.stats().keys).toBe(1)
    expect(() => own.get(RateLimitGuard).canActivate(context!)).toThrow(
      expect.objectContaining({ code: 'SLUICE_CLOSED' }),
    )
  })
})

/** As the adapters of Nest 11 and older do: they know no JSON but `application/json`. */
class OldExpressAdapter extends ExpressAdapter {
  readonly warned: unknown[] = []

  override reply(response: ExpressResponse, body: unknown, statusCode?: number): unknown {
    const type = response.getHeader('Content-Type')
    if (typeof type === 'string' && !type.startsWith('application/json') && (statusCode ?? 0) >= 400) {
      this.warned.push(type)
      response.setHeader('Content-Type', 'application/json')
    }
    return super.reply(response, body, statusCode)
  }
}

/** What the adapter uses of an answer of Express. */
interface ExpressResponse {
  getHeader(name: string): unknown
  setHeader(name: string, value: string): void
}

describe('on Express with Nest 11', () => {
  it('denies with a problem document, without a warning, and leaves answers of filters alone', async () => {
    class Teapot implements ExceptionFilter<RateLimitException> {
      catch(_exception: RateLimitException, host: ArgumentsHost): void {
        host.switchToHttp().getResponse().status(418).send({ own: true })
      }
    }
    Catch(RateLimitException)(Teapot)
    const adapter = new OldExpressAdapter()
    class App {}
    const controllers = [controller('a', { plain: [], filtered: [UseFilters(new Teapot())] })]
    Module({ imports: [RateLimitModule.forRoot({ limit: 0, window: '1h' })], controllers })(App)
    const app = await NestFactory.create(App, adapter, { logger: false, abortOnError: false })
    onTestFinished(() => app.close())
    await app.listen(0, '127.0.0.1')
    const types: (string | null)[] = []
    for (const route of ['plain', 'filtered']) {
      const response = await fetch(`${await app.getUrl()}/a/${route}`)
      types.push(`${response.status} ${response.headers.get('content-type')}`)
      await response.text()
    }
    expect(types).toEqual(['429 application/problem+json; charset=utf-8', '418 application/json; charset=utf-8'])
    expect(adapter.warned).toEqual([])
  })
})

it('needs a source of its options', () => {
  expect(() => RateLimitModule.forRootAsync({})).toThrow(expect.objectContaining({ code: 'SLUICE_INVALID_OPTION' }))
})

it('does not start without a limit', async () => {
  class App {}
  Module({ imports: [RateLimitModule.forRoot({})] })(App)
  const starting = NestFactory.create(App, new ExpressAdapter(), { logger: false, abortOnError: false })
  await expect(starting).rejects.toMatchObject({ code: 'SLUICE_INVALID_OPTION' })
})
