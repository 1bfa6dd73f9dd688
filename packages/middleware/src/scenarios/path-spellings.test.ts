import type { Server } from 'node:http'
import { Agent, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { HttpBindings } from '@hono/node-server'
import { serve } from '@hono/node-server'
import type { DecisionLike } from '@sluice/contract'
import { memoryStore } from '@sluice/core'
import { PolicyEngine } from '@sluice/core/policy'
import type { Request, Response, RouterOptions } from 'express'
import express from 'express'
import expressPackage from 'express/package.json' with { type: 'json' }
import fc from 'fast-check'
import type { FastifyServerOptions } from 'fastify'
import fastify from 'fastify'
import fastifyPackage from 'fastify/package.json' with { type: 'json' }
import { Hono } from 'hono'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { rateLimit as expressRateLimit } from '../adapters/express/express.ts'
import { rateLimit as fastifyRateLimit } from '../adapters/fastify/fastify.ts'
import { rateLimit as honoRateLimit } from '../adapters/hono/hono.ts'

// The real routers, asked over HTTP with paths in every spelling. Whatever a router takes for a route must be limited
// by the rule that is written for that route: as the middleware sees the request, and as somebody does who passes on
// what came.

const ROUTES = [
  ...['/health', '/orders', '/orders/open', '/orders/:id', '/orders/:id/items', '/orders/:id/:part/x'],
  ...['/files/*', '/lists/:id/*', '/:tenant/reports', '/:tenant/:year/:month'],
]

/** Rules of the same dimension: the most specific holds. */
const specific = engineOf({})
/** Rules that hold besides each other. */
const each = engineOf({ always: true })

function engineOf(more: { readonly always?: boolean }): PolicyEngine {
  const rules = ROUTES.map((resource) => {
    return { name: resource, resource, dimension: 'global', limit: 1_000_000, window: '1h', ...more } as const
  })
  return new PolicyEngine({ store: memoryStore(), ruleSet: { rules } })
}

/** What a handler says: its route, and the rules that the middleware in front of it has met. */
interface Reached {
  readonly route: string
  readonly rules: readonly string[]
}

function reached(route: string, decision: DecisionLike | undefined): Reached {
  return { route, rules: rulesOf(decision) }
}

function rulesOf(decision: DecisionLike | undefined): string[] {
  return decision?.limits?.map(({ rule }) => rule) ?? []
}

type Start = (engine: PolicyEngine) => Promise<Server>

const ROUTERS: Readonly<Record<string, Start>> = {
  Express: (engine) => startExpress(engine, {}),
  'Express, strict and case sensitive': (engine) => startExpress(engine, { strict: true, caseSensitive: true }),
  'Express with routers in routers': (engine) => startMounted(engine, {}),
  'Express with routers in routers, strict': (engine) => startMounted(engine, { strict: true, caseSensitive: true }),
  Fastify: (engine) => startFastify(engine, {}),
  'Fastify that ignores a slash at the end': (engine) => startFastify(engine, { ignoreTrailingSlash: true }),
  'Fastify that ignores repeated slashes': (engine) => startFastify(engine, { ignoreDuplicateSlashes: true }),
  'Fastify that ignores all it can': (engine) =>
    startFastify(engine, {
      ignoreTrailingSlash: true,
      ignoreDuplicateSlashes: true,
      caseSensitive: false,
      useSemicolonDelimiter: true,
    }),
  Hono: (engine) => startHono(engine, true),
  'Hono, not strict': (engine) => startHono(engine, false),
}

/** How Express writes a route: from version 5 on, a `*` has a name. */
const inExpress = (route: string): string =>
  expressPackage.version.startsWith('4.') ? route : route.replace(/\/\*$/, '/{*rest}')

function startExpress(engine: PolicyEngine, { strict = false, caseSensitive = false }: RouterOptions): Promise<Server> {
  const app = express()
  app.set('strict routing', strict)
  app.set('case sensitive routing', caseSensitive)
  app.use(expressRateLimit({ engine }))
  for (const route of ROUTES) app.get(inExpress(route), answer(route))
  return listening(app)
}

/** Every route in a router that is mounted at its first segment. */
function startMounted(engine: PolicyEngine, options: RouterOptions): Promise<Server> {
  const app = express()
  app.set('strict routing', options.strict ?? false)
  app.use(expressRateLimit({ engine }))
  for (const base of new Set(ROUTES.map((route) => route.split('/')[1]!))) {
    const router = express.Router(options)
    for (const route of ROUTES.filter((one) => one.split('/')[1] === base)) {
      router.get(inExpress(route.slice(base.length + 1) || '/'), answer(route))
    }
    app.use(`/${base}`, router)
    // Strict, it is another path.
    app.use(`/${base}/`, router)
  }
  return listening(app)
}

function answer(route: string) {
  return (incoming: Request, response: Response): void => {
    response.json(reached(route, (incoming as { rateLimit?: DecisionLike }).rateLimit))
  }
}

function listening(app: express.Express): Promise<Server> {
  return new Promise((resolve) => {
    const server: Server = app.listen(0, '127.0.0.1', () => resolve(server))
  })
}

/** One of them is not declared. */
type FastifyRouting = NonNullable<FastifyServerOptions['routerOptions']> & { readonly useSemicolonDelimiter?: boolean }

async function startFastify(engine: PolicyEngine, routerOptions: FastifyRouting): Promise<Server> {
  const isVersion4 = fastifyPackage.version.startsWith('4.')
  const app = fastify(isVersion4 ? routerOptions : { routerOptions })
  await app.register(fastifyRateLimit, { engine })
  for (const route of ROUTES) app.get(route, (incoming) => reached(route, incoming.rateLimit))
  await app.listen({ port: 0, host: '127.0.0.1' })
  return app.server
}

function startHono(engine: PolicyEngine, strict: boolean): Promise<Server> {
  const app = new Hono<{ Bindings: HttpBindings }>({ strict })
  app.use(honoRateLimit({ engine }))
  for (const route of ROUTES) app.get(route, (c) => c.json(reached(route, c.get('rateLimit'))))
  return new Promise((resolve) => {
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, () => resolve(server as Server))
  })
}

function stop(server: Server): Promise<unknown> {
  server.closeAllConnections()
  return new Promise((closed) => server.close(closed))
}

const agent = new Agent({ keepAlive: true, maxSockets: 4 })

/** The route that a server takes a target for; undefined when it takes it for none. */
function ask(server: Server, path: string): Promise<Reached | undefined> {
  const { port } = server.address() as AddressInfo
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, path, agent }, (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (piece: string) => {
        body += piece
      })
      response.on('end', () => resolve(response.statusCode === 200 ? (JSON.parse(body) as Reached) : undefined))
    })
    asked.on('error', reject)
    asked.end()
  })
}

const SEPARATORS = ['/', '/', '/', '/', '//', '/./', '/../', '/..', '/.', '%2f', '\\', '%5c', ';', ';x=1', '%3b']
const WORDS = [
  ...['orders', 'orders', '%6frders', 'open', 'o%70en', 'items', 'files', 'lists'],
  ...['health', 'reports', 'x', '17'],
]
// Not what Express escapes when it reads a path with a `#` or a whole URL (quotes, braces, `^` and their like): it then
// hands a router that is mounted at a parameter a string that is cut in the wrong place.
const ODDITIES = [
  ...['%', '%00', '%20', '%252f', '%c0%af', '%2e', '%2E%2e', '.'],
  ...['#', '?', '?q=/../', '%3f', ':id', 'a*', '@', '~'],
]
const CAPITALS = ['ORDERS', 'Open', '%4frders', 'HEALTH', 'Reports']
const HOSTS = ['http://h', 'HTTPS://u:p@h:80', 'http://[::1]', 'http://h;x', 'http:///', 'http://h?', 'x://h']

/** Paths that routers know, with some of their characters replaced, and paths made of pieces; a few as whole URLs. */
function targets(more: readonly string[]): fc.Arbitrary<string> {
  const pieces = fc.constantFrom(...SEPARATORS, ...WORDS, ...ODDITIES, ...more)
  const made = fc.array(pieces, { minLength: 1, maxLength: 7 }).map((parts) => `/${parts.join('')}`)
  const known = fc.constantFrom(
    ...['/orders', '/orders/', '/orders/open', '/orders/17', '/orders/17/items', '/orders/17/a/x'],
    ...['/health', '/files', '/files/a/b', '/lists/1/a', '/t/reports', '//reports', '/a/b/c'],
  )
  const change = fc.record({ at: fc.nat(20), drops: fc.nat(1), piece: pieces })
  const changed = fc.tuple(known, fc.array(change, { maxLength: 3 })).map(([path, changes]) =>
    changes.reduce((text, { at, drops, piece }) => {
      const from = 1 + (at % text.length)
      return text.slice(0, from) + piece + text.slice(from + drops)
    }, path),
  )
  const host = fc.oneof({ weight: 9, arbitrary: fc.constant('') }, { weight: 1, arbitrary: fc.constantFrom(...HOSTS) })
  return fc.tuple(host, fc.oneof(made, changed)).map(([before, path]) => before + path)
}

describe.each([
  ['in any case', each, CAPITALS],
  ['where the most specific rule holds', specific, []],
] as const)('a path is limited as the route that it is taken for, %s', (_title, engine, more) => {
  describe.each(Object.entries(ROUTERS))('by %s', (_router, start) => {
    let server: Server

    beforeAll(async () => {
      server = await start(engine)
    })

    afterAll(() => stop(server))

    it('whatever its spelling', async () => {
      let routed = 0
      await fc.assert(
        fc.asyncProperty(targets(more), async (target) => {
          const taken = await ask(server, target)
          if (taken === undefined) return
          routed++
          expect(taken.rules).toContain(taken.route)
          expect(rulesOf(await engine.check({ resource: target, method: 'GET' }))).toContain(taken.route)
        }),
        { numRuns: 500 },
      )
      expect(routed).toBeGreaterThan(60)
    })
  })
})

it('a whole URL is passed on as it came: where its path begins, servers differ', async () => {
  const server = await startExpress(each, {})
  const check = vi.spyOn(each, 'check')
  await ask(server, 'http://h?x/orders/open')
  await ask(server, '/orders/open?x/health')
  expect(check.mock.calls.map(([{ resource }]) => resource)).toEqual(['http://h?x/orders/open', '/orders/open'])
  expect(rulesOf(await each.check({ resource: 'http://h?x/orders/open', method: 'GET' }))).toContain('/orders/open')
  await stop(server)
})

afterAll(() => agent.destroy())
