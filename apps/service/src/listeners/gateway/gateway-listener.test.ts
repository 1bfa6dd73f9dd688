import { hash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { GatewayAnswer, ReadinessAnswer } from '@sluice/contract'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RunningNode } from '../../service.fixture.ts'
import { startRealService, startService } from '../../service.fixture.ts'
import type { Settings } from '../../settings/settings.ts'

const RULES = `rules:
  - { name: orders, resource: "/orders/*", dimension: user, algorithm: fixed-window, limit: 3, window: 1h }
`

/** An upstream that says which one it is; it stops with the test. */
async function startUpstream(name: string): Promise<{ readonly url: string; readonly server: Server }> {
  const server = createServer((request, response) => {
    response.end(JSON.stringify({ name, url: request.url, user: request.headers['x-user-id'] ?? null }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    if (server.listening) await new Promise((resolve) => server.close(resolve))
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}

/** `demo` is a key of `acme`. */
function fileText(url: string): string {
  return `${RULES}
gateway:
  consumers: [{ name: acme, keys: ["sha256:2a97516c354b68848cdbd8f54a226a0a55b21ed138e207ad6c5cbb9c00aa5aea"] }]
routes:
  - { name: orders, match: { path: "/orders/*" }, upstream: shop, auth: required }
upstreams:
  shop: { instances: [{ url: "${url}" }] }
`
}

async function startGateway(text: string, more: Partial<Settings> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-gateway-'))
  const rulesFile = join(folder, 'sluice.yaml')
  const replace = async (content: string): Promise<void> => {
    await writeFile(`${rulesFile}.new`, content)
    await rename(`${rulesFile}.new`, rulesFile)
  }
  await replace(text)
  const node = await startRealService({ gateway: { port: 0, hasRoutes: true, isTls: false }, rulesFile, ...more })
  onTestFinished(async () => {
    await node.stop()
    await rm(folder, { recursive: true })
  })
  const ask = (path: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> =>
    fetch(`http://127.0.0.1:${node.gatewayPort}${path}`, { headers })
  return { node, ask, replace, folder }
}

async function readiness(node: RunningNode): Promise<ReadinessAnswer> {
  return (await (await fetch(`${node.origin}/readyz`)).json()) as ReadinessAnswer
}

const KEY = { 'x-api-key': 'demo' }

describe('the gateway of the service', () => {
  it('applies the rules of the service, and tells the upstream who calls', async () => {
    const { url } = await startUpstream('one')
    const { ask, node } = await startGateway(fileText(url))
    expect(await (await ask('/orders/7', KEY)).json()).toEqual({ name: 'one', url: '/orders/7', user: 'acme' })
    // The same counters as those of the check API.
    const checked = await node.check({ user: 'acme', resource: '/orders/1' })
    expect(await checked.json()).toMatchObject({ allowed: true, remaining: 1 })
    const statuses = [await ask('/orders/7', KEY), await ask('/orders/7', KEY), await ask('/orders/7'), await ask('/x')]
    expect(statuses.map(({ status }) => status)).toEqual([200, 429, 401, 404])
    expect(node.errors).toEqual([])
  })

  it('is shown by the admin API, by readiness and in metrics', async () => {
    const { url } = await startUpstream('one')
    const { ask, node } = await startGateway(fileText(url))
    await ask('/orders/1', KEY)
    const shown = (await (await node.admin('GET', '/admin/gateway')).json()) as GatewayAnswer
    expect(shown).toMatchObject({
      mode: 'routes',
      threads: 1,
      routes: [{ name: 'orders', path: '/orders/*', upstream: 'shop', auth: 'required', limited: true }],
      upstreams: [{ name: 'shop', available: true, instances: [{ instance: url, health: 'healthy', requests: 1 }] }],
      waitingFor: [],
    })
    const { status, checks } = await readiness(node)
    expect([status, checks.find(({ name }) => name === 'gateway')?.detail]).toEqual(['ready', '1 route to 1 upstream'])
    expect(checks.find(({ name }) => name === 'listener gateway')?.detail).toMatch(/each route says who may call$/)
    const metrics = await (await fetch(`${node.origin}/metrics`)).text()
    expect(metrics).toContain('sluice_gateway_requests_total{route="orders",status="2xx"} 1\n')
    expect(metrics).toContain('sluice_listener_connections{listener="gateway"}')
  })

  it('takes other routes from the file while it runs, and keeps what it has when they have a problem', async () => {
    const one = await startUpstream('one')
    const two = await startUpstream('two')
    const text = (url: string): string => fileText(url).replace('limit: 3', 'limit: 1000')
    const { ask, node, replace } = await startGateway(text(one.url))
    const answering = async (): Promise<unknown> => await (await ask('/orders/1', KEY)).json()
    expect(await answering()).toMatchObject({ name: 'one' })
    await replace(text(two.url))
    await expect.poll(answering, { timeout: 10_000 }).toMatchObject({ name: 'two' })
    await replace(text(two.url).replace('upstream: shop', 'upstream: shp'))
    await expect
      .poll(async () => (await readiness(node)).reasons.map(({ code }) => code), { timeout: 10_000 })
      .toEqual(['version-refused'])
    expect(node.log.some(({ level, error }) => level === 'error' && JSON.stringify(error).includes('shop'))).toBe(true)
    const { upstreams } = (await (await node.admin('GET', '/admin/gateway')).json()) as GatewayAnswer
    expect(upstreams.map(({ instances }) => instances.map(({ instance }) => instance))).toEqual([[two.url]])
  })

  it('warns of routes and rules that have no effect on each other, once as long as they stay', async () => {
    const { url } = await startUpstream('one')
    const other = fileText(url).replace('"/orders/*", dimension', '"/order/*", dimension')
    const { node, replace } = await startGateway(other)
    const warned = (): readonly unknown[] =>
      node.log.flatMap(({ level, code, subject }) => (level === 'warn' && subject ? [`${code} ${subject}`] : []))
    expect(warned()).toEqual(['route-unlimited orders', 'rule-unrouted orders'])
    await replace(`${other}  mail: { instances: [{ url: "${url}" }] }\n`)
    await expect.poll(() => warned().slice(2), { timeout: 10_000 }).toEqual(['upstream-unused mail'])
  })

  it('takes other keys from the file while it runs', async () => {
    const { url } = await startUpstream('one')
    const text = fileText(url).replace('limit: 3', 'limit: 1000')
    const { ask, replace } = await startGateway(text)
    const status = async (key: string): Promise<number> => (await ask('/orders/1', { 'x-api-key': key })).status
    expect([await status('demo'), await status('other')]).toEqual([200, 401])
    await replace(text.replace(/sha256:[0-9a-f]{64}/, `sha256:${hash('sha256', 'other')}`))
    await expect.poll(() => status('demo'), { timeout: 10_000 }).toBe(401)
    expect(await status('other')).toBe(200)
  })

  it('takes other services and other pages of denials while it runs', async () => {
    const { url } = await startUpstream('one')
    const { ask, node, replace, folder } = await startGateway(fileText(url))
    const page = join(folder, 'busy.html')
    await writeFile(page, 'first')
    const withPage = fileText(url)
      .replace('limit: 3', 'limit: 0')
      .replace('auth: required', 'auth: required, denial: { body: "file:busy.html" }')
    await replace(withPage)
    const answering = async (): Promise<string> => await (await ask('/orders/1', KEY)).text()
    await expect.poll(answering, { timeout: 10_000 }).toBe('first')
    await writeFile(page, 'second')
    await expect.poll(answering, { timeout: 10_000 }).toBe('second')
    const reasons = async (): Promise<readonly unknown[]> => (await readiness(node)).reasons.map(({ code }) => code)
    await rm(page)
    await expect.poll(reasons, { timeout: 10_000 }).toEqual(['gateway-config-refused'])
    expect(await answering()).toBe('second')
    await writeFile(page, 'third')
    await expect.poll(answering, { timeout: 10_000 }).toBe('third')
    expect(await reasons()).toEqual([])
    // Waits for what is not there, and stays ready: all nodes read the same file.
    await replace(withPage.replace('gateway:\n', 'gateway:\n  services: { mail: { url: "tcp://127.0.0.1:9" } }\n'))
    await expect.poll(reasons, { timeout: 10_000 }).toEqual(['gateway-waiting'])
    expect((await fetch(`${node.origin}/readyz`)).status).toBe(200)
    const { port } = new URL(url)
    await replace(
      withPage.replace('gateway:\n', `gateway:\n  services: { mail: { url: "tcp://127.0.0.1:${port}" } }\n`),
    )
    await expect.poll(reasons, { timeout: 10_000 }).toEqual([])
  })

  it('follows a file that has only routes, with the rules of the database', async () => {
    const one = await startUpstream('one')
    const two = await startUpstream('two')
    const folder = await mkdtemp(join(tmpdir(), 'sluice-gateway-'))
    const file = join(folder, 'sluice.yaml')
    const text = (url: string): string => fileText(url).slice(RULES.length)
    const replace = async (content: string): Promise<void> => {
      await writeFile(`${file}.new`, content)
      await rename(`${file}.new`, file)
    }
    await replace(text(one.url))
    const node = await startRealService({ gateway: { port: 0, hasRoutes: true, isTls: false, file } })
    onTestFinished(async () => {
      await node.stop()
      await rm(folder, { recursive: true })
    })
    const ask = (): Promise<Response> => fetch(`http://127.0.0.1:${node.gatewayPort}/orders/1`, { headers: KEY })
    const answering = async (): Promise<unknown> => await (await ask()).json()
    expect(await answering()).toMatchObject({ name: 'one' })
    await replace(text(two.url))
    await expect.poll(answering, { timeout: 10_000 }).toMatchObject({ name: 'two' })
    await replace(text(two.url).replace('upstream: shop', 'upstream: shp'))
    await expect
      .poll(async () => (await readiness(node)).reasons.map(({ code }) => code), { timeout: 10_000 })
      .toEqual(['gateway-config-refused'])
    expect(await answering()).toMatchObject({ name: 'two' })
    const rule = { dimension: 'user', algorithm: 'fixed-window', limit: 1, window: '1h' }
    const body = { resource: '/orders/*', rules: [rule] }
    expect((await node.admin('PUT', '/admin/ratelimits', { body })).status).toBe(200)
    expect([(await ask()).status, (await ask()).status]).toEqual([200, 429])
  })

  it('answers by a demo upstream while there are no routes', async () => {
    const node = await startService({ gateway: { port: 0, hasRoutes: false, isTls: false } })
    onTestFinished(() => node.stop())
    const ask = (path: string, headers: Readonly<Record<string, string>>): Promise<Response> =>
      fetch(`http://127.0.0.1:${node.gatewayPort}${path}`, { headers })
    expect(await (await ask('/anything', KEY)).json()).toMatchObject({ path: '/anything', user: 'demo' })
    expect(await (await node.admin('GET', '/admin/gateway')).json()).toMatchObject({ mode: 'demo' })
    // The first rules allow a user 100 requests a minute, 1 of which was used. The clock stands still.
    const statuses = await Promise.all(Array.from({ length: 105 }, async () => (await ask('/x', KEY)).status))
    expect(statuses.filter((status) => status === 429)).toHaveLength(6)
  })

  it('waits for upstreams that are not available at the start, and is degraded when one is lost later', async () => {
    const { url, server } = await startUpstream('one')
    const health = 'health: { active: { path: /, interval: 50ms, timeout: 1s, healthyAfter: 1, unhealthyAfter: 1 } }'
    const text = (instance: string): string => fileText(instance).replace('}] }\n', `}], ${health} }\n`)
    const { port } = new URL(url)
    const { node, replace } = await startGateway(text('http://127.0.0.1:9'))
    const before = await fetch(`${node.origin}/readyz`)
    expect([before.status, await before.text()]).toEqual([503, expect.stringContaining('waits for the upstream')])
    await replace(text(`http://127.0.0.1:${port}`))
    await expect.poll(async () => (await fetch(`${node.origin}/readyz`)).status, { timeout: 10_000 }).toBe(200)
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    await expect
      .poll(async () => (await readiness(node)).reasons.map(({ code }) => code), { timeout: 10_000 })
      .toEqual(['upstream-unavailable'])
  })

  it('counts failed authentications of all threads together', async () => {
    const { url } = await startUpstream('one')
    const { ask } = await startGateway(fileText(url), { threads: 2 })
    const statuses: number[] = []
    for (let attempt = 0; attempt < 25; attempt++) {
      statuses.push((await ask('/orders/1', { 'x-api-key': 'wrong', connection: 'close' })).status)
    }
    expect(statuses).toEqual([...Array<number>(20).fill(401), ...Array<number>(5).fill(429)])
  })

  it('is one over all threads', async () => {
    const { url } = await startUpstream('one')
    const { ask, node } = await startGateway(fileText(url), { threads: 2 })
    const statuses = await Promise.all(
      Array.from({ length: 40 }, async () => (await ask('/orders/1', { ...KEY, connection: 'close' })).status),
    )
    expect(statuses.filter((status) => status === 200)).toHaveLength(3)
    const shown = (await (await node.admin('GET', '/admin/gateway')).json()) as GatewayAnswer
    expect(shown).toMatchObject({ threads: 2, upstreams: [{ instances: [{ requests: 3, failures: 0 }] }] })
  })

  it('blocks a caller after configured responses in all threads; the admin API lists and lifts the block', async () => {
    const server = createServer((_request, response) => {
      response.statusCode = 403
      response.end()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const text = fileText(`http://127.0.0.1:${port}`)
      .replace('limit: 3', 'limit: 1000')
      .replace('auth: required', 'auth: required, blockAfter: { responses: 6, within: 1h, blockFor: 1h }')
    const { ask, node } = await startGateway(text, { threads: 2 })
    const statuses = async (count: number): Promise<readonly number[]> => {
      const found: number[] = []
      for (let call = 0; call < count; call++) {
        found.push((await ask('/orders/1', { ...KEY, connection: 'close' })).status)
      }
      return [...new Set(found)]
    }
    expect(await statuses(6)).toEqual([403])
    const blocks = async () => {
      const { items } = (await (await node.admin('GET', '/admin/blocks')).json()) as { items: readonly object[] }
      return items
    }
    await expect
      .poll(blocks, { timeout: 10_000 })
      .toMatchObject([{ entry: { dimension: 'user', entity: 'acme', rule: 'gateway:orders' } }])
    await expect.poll(() => statuses(10), { timeout: 10_000 }).toEqual([429])
    const lifted = await node.admin('DELETE', '/admin/blocks?dimension=user&entity=acme')
    expect(lifted.status).toBe(204)
    await expect.poll(() => statuses(2), { timeout: 10_000 }).toEqual([403])
  })
})
