import { memoryStore } from '@sluice/core'
import { type Block, PolicyEngine, type PolicyRule } from '@sluice/core/policy'
import { FakeClock } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { compileGateway } from '../config/compile-gateway.ts'
import type { GatewayConfig, RouteConfig } from '../config/gateway-config.ts'
import { RawClient, startGateway, startUpstream, until } from '../gateway.test.support.ts'

const RULE: PolicyRule = { name: 'base', resource: '*', dimension: 'user', limit: 3, window: '1h' }

/** A gateway with these routes, before an upstream that answers with the status in the path. */
async function scene({ rules = [RULE], ...config }: GatewayConfig & { readonly rules?: readonly PolicyRule[] }) {
  const app = await startUpstream((request, response) => {
    if (request.url === '/stream') {
      response.write('begun')
      return
    }
    response.statusCode = Number(/\d{3}/.exec(request.url ?? '')?.[0] ?? 200)
    response.end('from the upstream')
  })
  const kept: Block[] = []
  const clock = new FakeClock()
  const engine = new PolicyEngine({
    store: memoryStore({ clock }),
    clock,
    ruleSet: { rules },
    keepBlock: (block: Block) => void kept.push(block),
  })
  const compiled = compileGateway({ upstreams: { app: { instances: [{ url: app.url }] } }, ...config }, { folder: '/' })
  const running = await startGateway({ config: compiled, engine, clock, headers: 'both' })
  const ask = async (path: string, user = 'ada'): Promise<Response> => {
    const response = await fetch(`${running.origin}${path}`, { headers: { 'x-user': user } })
    return response
  }
  const statuses = async (...paths: readonly string[]): Promise<readonly number[]> => {
    const found: number[] = []
    for (const path of paths) {
      const response = await ask(path)
      await response.text()
      found.push(response.status)
    }
    return found
  }
  return { ...running, app, ask, statuses, engine, kept }
}

function routeOf(route: Partial<RouteConfig> = {}): RouteConfig {
  return { name: 'all', match: {}, upstream: 'app', ...route }
}

describe('through the gateway', () => {
  it('a denied request gets the page of its route, and the upstream does not see it', async () => {
    const denial = { status: 503, contentType: 'text/html', body: '<p>{rule} {retryAfter}</p>' }
    const { ask, statuses, app } = await scene({ routes: [routeOf({ denial })] })
    expect(await statuses('/a', '/b', '/c')).toEqual([200, 200, 200])
    const denied = await ask('/d')
    expect([denied.status, await denied.text()]).toEqual([503, '<p>base 1200</p>'])
    expect(denied.headers.get('content-type')).toBe('text/html')
    expect([denied.headers.get('retry-after'), denied.headers.get('x-ratelimit-remaining')]).toEqual(['1200', '0'])
    expect(app.received.length).toBe(3)
  })

  it('only the responses that a route names are charged', async () => {
    const { statuses } = await scene({ routes: [routeOf({ charge: { only: [401] } })] })
    const sent = ['/200', '/401', '/500', '/200', '/401', '/404', '/401', '/200']
    expect(await statuses(...sent)).toEqual([200, 401, 500, 200, 401, 404, 401, 429])
  })

  it('failures of the upstream are not charged if the route gives them back', async () => {
    const { statuses } = await scene({ routes: [routeOf({ charge: { refund: ['5xx'] } })] })
    expect(await statuses('/500', '/503', '/200', '/502', '/200', '/500', '/200', '/200')).toEqual([
      500, 503, 200, 502, 200, 500, 200, 429,
    ])
  })

  it('a caller is blocked after failed logins, and listed as blocked', async () => {
    const blockAfter = { responses: 2, within: '1m', blockFor: '10m' }
    const { ask, statuses, kept, engine } = await scene({ rules: [], routes: [routeOf({ blockAfter })] })
    expect(await statuses('/401', '/500', '/200', '/403', '/200')).toEqual([401, 500, 200, 403, 429])
    expect(kept).toMatchObject([{ dimension: 'user', entity: 'ada', rule: 'gateway:all' }])
    expect((await ask('/200', 'bob')).status).toBe(200)
    expect(await engine.unblock('user', 'ada')).toBe(true)
    expect((await ask('/200')).status).toBe(200)
  })

  it('a stream holds its slot until the client leaves', async () => {
    const slots = { algorithm: 'concurrency', limit: 1, lease: '1m' } as const
    const { ask, origin, statuses } = await scene({
      rules: [{ name: 's', resource: '*', dimension: 'user', ...slots }],
      routes: [routeOf()],
    })
    const leaving = new AbortController()
    const headers = { 'x-user': 'ada' }
    const streaming = await fetch(`${origin}/stream`, { headers, signal: leaving.signal })
    await streaming.body?.getReader().read()
    expect(await statuses('/200', '/200')).toEqual([429, 429])
    expect((await ask('/200', 'bob')).status).toBe(200)
    leaving.abort()
    await expect.poll(() => statuses('/200')).toEqual([200])
  })

  it('a client that leaves before the decision holds no slot, and the upstream does not see its request', async () => {
    const app = await startUpstream()
    const local = new PolicyEngine({
      store: memoryStore(),
      ruleSet: { rules: [{ resource: '*', dimension: 'user', algorithm: 'concurrency', limit: 1, lease: '1m' }] },
    })
    const waiting: (() => void)[] = []
    let isRemote = true
    // Its first decisions take time, as those of a remote store do.
    const engine = new Proxy(local, {
      get: (target, name) => {
        const value = Reflect.get(target, name) as unknown
        if (typeof value !== 'function') return value
        return (...parts: unknown[]): unknown => {
          const answer: unknown = value.apply(target, parts)
          if (!isRemote || (name !== 'check' && name !== 'acquire')) return answer
          return new Promise((resolve) => void waiting.push(() => resolve(answer)))
        }
      },
    })
    const compiled = compileGateway(
      { upstreams: { app: { instances: [{ url: app.url }] } }, routes: [routeOf()] },
      { folder: '/' },
    )
    const { port, origin, gateway } = await startGateway({ config: compiled, engine })
    const client = new RawClient(port)
    client.send('GET / HTTP/1.1\r\nHost: a\r\nX-User: ada\r\n\r\n')
    await until(() => waiting.length === 1)
    client.socket.destroy()
    await until(() => gateway.inFlight === 0)
    isRemote = false
    waiting[0]!()
    const status = async (): Promise<number> => (await fetch(origin, { headers: { 'x-user': 'ada' } })).status
    await expect.poll(status).toBe(200)
    expect(app.received).toHaveLength(1)
  })

  it('a rule that is not announced is in no header', async () => {
    const hidden: PolicyRule = { ...RULE, name: 'hidden', resource: '/x', limit: 1, announce: false }
    const { ask } = await scene({ rules: [hidden], routes: [routeOf()] })
    const answers = [await ask('/x'), await ask('/x')]
    expect(answers.map(({ status }) => status)).toEqual([200, 429])
    const names = answers.flatMap(({ headers }) => [...headers.keys()].filter((name) => name.includes('ratelimit')))
    expect(names).toEqual([])
    expect(await answers[1]?.text()).not.toContain('hidden')
  })

  it('a route without limits and with another resource counts nothing, or that resource', async () => {
    const rules: PolicyRule[] = [
      { ...RULE, resource: 'checkout', limit: 1 },
      { ...RULE, name: 'internal', resource: '/internal/*', limit: 0 },
    ]
    const { statuses } = await scene({
      rules,
      routes: [
        routeOf({ match: { path: '/internal/*' }, limits: 'off' }),
        routeOf({ name: 'pay', match: { path: '/pay/*' }, resource: 'checkout' }),
      ],
    })
    expect(await statuses('/pay/1', '/pay/2', '/internal/1', '/internal/2')).toEqual([200, 429, 200, 200])
  })

  it('an ambiguous path gets 400, a path without route 404, and the upstream sees neither', async () => {
    const { port, app } = await scene({
      routes: [
        routeOf({ match: { path: '/open/*' }, limits: 'off' }),
        routeOf({ name: 'admin', match: { path: '/admin/*' } }),
      ],
    })
    const client = new RawClient(port)
    const send = async (path: string, status: string): Promise<void> => {
      client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
      await client.until(status)
    }
    await send('/open/..%2fadmin/x', '400 Bad Request')
    await send('/none', '404 Not Found')
    expect(app.received).toEqual([])
    await send('/open/%61;v=1', '200 OK')
    expect(app.received.map(({ url }) => url)).toEqual(['/open/a;v=1'])
  })

  it('health paths say whether it runs and whether it can serve, without limits', async () => {
    const { statuses, upstreams } = await scene({ rules: [{ ...RULE, limit: 0 }], routes: [routeOf()] })
    expect(await statuses('/livez', '/readyz', '/other')).toEqual([200, 200, 429])
    upstreams.get('app')!.isAvailable = false
    expect(await statuses('/livez', '/readyz')).toEqual([200, 503])
  })
})
