import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import {
  configOf,
  ListedUpstream,
  openIdentifier,
  RawClient,
  routeOf,
  startGateway,
  startUpstream,
  until,
} from './gateway.test.support.ts'

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

/** An upstream that answers on demand. */
async function startHolding(): Promise<{ url: string; held: ServerResponse[] }> {
  const held: ServerResponse[] = []
  const app = await startUpstream((_request, response) => void held.push(response))
  return { url: app.url, held }
}

describe('another configuration', () => {
  it('is for new requests; those in flight keep theirs, and what they use is closed after them', async () => {
    const before = await startHolding()
    const after = await startUpstream()
    const created: ListedUpstream[] = []
    const { gateway, port, origin } = await startGateway({
      config: configOf([routeOf()], { app: [before.url], other: [after.url] }),
      createUpstream: (name, config) => {
        const upstream = new ListedUpstream(name, config)
        created.push(upstream)
        return upstream
      },
    })
    const client = new RawClient(port)
    client.send(GET)
    await until(() => before.held.length === 1)
    await gateway.use(configOf([routeOf()], { app: [after.url], other: [after.url] }))
    expect(await (await fetch(origin)).text()).toBe('ok')
    expect(created.map(({ name, isClosed }) => [name, isClosed])).toEqual([
      ['app', false],
      ['other', false],
      ['app', false],
    ])
    before.held[0]!.end('kept')
    await client.until('kept')
    await until(() => created[0]!.isClosed)
    // Unchanged, so it goes on.
    expect([created.length, created[1]!.isClosed]).toEqual([3, false])
  })

  it('does not close what a request of an earlier one may still use', async () => {
    const app = await startHolding()
    const created: ListedUpstream[] = []
    const shared = configOf([routeOf()], { app: [app.url] })
    const { gateway, port } = await startGateway({
      config: shared,
      createUpstream: (name, config) => {
        created.push(new ListedUpstream(name, config))
        return created.at(-1)!
      },
    })
    const client = new RawClient(port)
    client.send(GET)
    await until(() => app.held.length === 1)
    await gateway.use({ ...shared, accessLog: 'off' })
    const other = await startUpstream()
    await gateway.use(configOf([routeOf({ upstream: 'new' })], { new: [other.url] }))
    expect(created[0]!.isClosed).toBe(false)
    app.held[0]!.end('kept')
    await client.until('kept')
    await until(() => created[0]!.isClosed)
  })

  it('that cannot be used changes nothing', async () => {
    const app = await startUpstream()
    const { gateway, origin, upstreams } = await startGateway({ config: configOf([routeOf()], { app: [app.url] }) })
    const broken = configOf([routeOf({ upstream: 'missing' })], { app: [app.url], added: [app.url] })
    await expect(gateway.use(broken)).rejects.toThrow('missing')
    expect(await (await fetch(origin)).text()).toBe('ok')
    expect([upstreams.get('added')!.isClosed, upstreams.get('app')!.isClosed]).toEqual([true, false])
  })

  it('drops no request, however often it comes', async () => {
    const app = await startUpstream()
    const other = await startUpstream()
    const { gateway, origin } = await startGateway({ config: configOf([routeOf()], { app: [app.url] }) })
    let isDone = false
    const statuses = new Map<number, number>()
    const load = Array.from({ length: 8 }, async () => {
      while (!isDone) {
        const response = await fetch(origin, { method: 'POST', body: 'x' })
        await response.text()
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
      }
    })
    for (let change = 0; change < 30; change++) {
      await gateway.use(configOf([routeOf()], { app: [change % 2 === 0 ? other.url : app.url] }))
      const before = app.received.length + other.received.length
      await until(() => app.received.length + other.received.length > before + 5)
    }
    isDone = true
    await Promise.all(load)
    expect([...statuses.keys()]).toEqual([200])
    expect(statuses.get(200)).toBe(app.received.length + other.received.length)
  })
})

describe('the life of a gateway', () => {
  it('answers health paths itself, without limits: ready, then draining', async () => {
    const app = await startUpstream()
    const { gateway, port, upstreams } = await startGateway({
      config: configOf([routeOf()], { app: [app.url] }, { healthPaths: new Set(['/readyz']) }),
      ruleSet: { rules: [{ resource: '/*', dimension: 'ip', algorithm: 'fixed-window', limit: 0, window: '1h' }] },
    })
    const client = new RawClient(port)
    client.send('GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n')
    await client.until('{"status":"ok"}')
    upstreams.get('app')!.isAvailable = false
    client.send('GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n')
    await client.until('{"status":"unavailable"}')
    upstreams.get('app')!.isAvailable = true
    const draining = gateway.drain(1)
    client.send('GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n')
    expect(await client.closed()).toMatch(/503[\s\S]*503/)
    await draining
    expect(app.received).toEqual([])
  })

  it('closes connections after their answers while it drains', async () => {
    const app = await startUpstream()
    const { gateway, port } = await startGateway({ config: configOf([routeOf()], { app: [app.url] }) })
    const client = new RawClient(port)
    client.send(GET)
    await client.until('ok')
    const draining = gateway.drain(1)
    client.send(GET)
    expect(await client.closed()).toContain('Connection: close')
    await draining
  })

  it('ends with its requests, and cuts what does not end in time', async () => {
    const app = await startHolding()
    const started = { config: configOf([routeOf()], { app: [app.url] }) }
    const patient = await startGateway(started)
    const idle = new RawClient(patient.port)
    const client = new RawClient(patient.port)
    client.send(GET)
    await until(() => app.held.length === 1 && patient.gateway.connections === 2)
    const stopped = patient.gateway.stop()
    await idle.closed()
    app.held[0]!.end('last')
    expect(await client.closed()).toContain('last')
    await stopped
    expect(patient.upstreams.get('app')!.isClosed).toBe(true)
    const hasty = await startGateway({ ...started, graceMs: 10 })
    const cut = new RawClient(hasty.port)
    cut.send(GET)
    await until(() => app.held.length === 2)
    await hasty.gateway.stop()
    expect(await cut.closed()).toBe('')
  })

  it.each([
    [{ status: 401, challenge: 'Bearer', detail: 'no key' } as const, 'WWW-Authenticate: Bearer'],
    [{ status: 429, challenge: '', detail: 'slow down', retryAfterSeconds: 9 } as const, 'Retry-After: 9'],
    [{ status: 503, challenge: '', detail: 'no keys yet' } as const, 'credentials-unavailable'],
  ])('does not ask an upstream for callers without a valid credential: %j', async (answer, text) => {
    const app = await startUpstream()
    for (const identify of [() => answer, () => Promise.resolve(answer)]) {
      const { port } = await startGateway({
        config: configOf([routeOf()], { app: [app.url] }),
        identifier: { ...openIdentifier, identify },
      })
      const client = new RawClient(port)
      client.send(GET)
      const received = await client.until('}')
      expect(received).toMatch(new RegExp(`^HTTP/1\\.1 ${answer.status} `))
      expect(received).toContain(text)
    }
    expect(app.received).toEqual([])
  })

  it('answers 404 without a route, 400 for an ambiguous path, 503 when limits cannot be checked', async () => {
    const app = await startUpstream()
    const config = configOf([routeOf()], { app: [app.url] })
    const router = { routes: config.router.routes, find: () => undefined, isAmbiguous: () => false }
    const none = await startGateway({ config: { ...config, router } })
    expect((await fetch(none.origin)).status).toBe(404)
    const ambiguous = await startGateway({ config: { ...config, router: { ...router, isAmbiguous: () => true } } })
    expect((await fetch(ambiguous.origin)).status).toBe(400)
    const engine = {
      check: () => {
        throw new Error('no store')
      },
    }
    const broken = await startGateway({ config, engine: engine as never })
    const response = await fetch(broken.origin)
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1'])
    expect(broken.logged.join()).toContain('limits could not be checked')
    expect(app.received).toEqual([])
  })

  it('answers 500 for what must not happen, and goes on', async () => {
    const app = await startUpstream()
    const fail = (): never => {
      throw new Error('a mistake')
    }
    const config = configOf([routeOf()], { app: [app.url] })
    const identifying = { ...openIdentifier, identify: () => Promise.reject(new Error('a mistake')) }
    for (const broken of [
      { config: { ...config, router: { ...config.router, find: fail } } },
      { config: configOf([routeOf({ targetOf: fail })], { app: [app.url] }) },
      { config, identifier: { ...openIdentifier, identify: fail } },
      { config, identifier: identifying },
    ]) {
      const { origin, logged, gateway } = await startGateway(broken)
      expect((await fetch(origin)).status).toBe(500)
      expect((await fetch(origin)).status).toBe(500)
      await until(() => gateway.inFlight === 0)
      expect(logged.join()).toContain('a mistake')
    }
    const { origin, upstreams, gateway } = await startGateway({ config })
    upstreams.get('app')!.choose = fail
    expect((await fetch(origin)).status).toBe(500)
    await until(() => gateway.inFlight === 0)
    expect(app.received).toEqual([])
  })
})
