import { describe, expect, it, onTestFinished } from 'vitest'
import type { RunningNode } from '../../service.fixture.ts'
import { startRealService, startService } from '../../service.fixture.ts'
import type { Settings } from '../../settings/settings.ts'

async function start(settings: Partial<Settings> = {}): Promise<RunningNode> {
  const node = await startService({ admin: { port: 0 }, ...settings })
  onTestFinished(() => node.stop())
  return node
}

/** The status of an answer. Its body is read: a connection with half an answer stays open. */
async function statusOf(url: string, request: RequestInit = {}): Promise<number> {
  const response = await fetch(url, request)
  await response.arrayBuffer()
  return response.status
}

/** The status of each path. */
async function statuses(origin: string, paths: readonly string[]): Promise<readonly number[]> {
  return await Promise.all(paths.map((path) => statusOf(origin + path)))
}

const OPEN = ['/livez', '/readyz', '/openapi.json', '/v1/ids'] as const
const OF_ADMIN = ['/metrics', '/admin/ratelimits', '/admin/versions/1', '/auth/session'] as const

describe('the admin listener', () => {
  it('leaves checks and health to the public listener, which says where the rest is', async () => {
    const node = await start()
    expect(await statuses(node.origin, OPEN)).toEqual([200, 200, 200, 200])
    expect(await statuses(node.origin, OF_ADMIN)).toEqual([404, 404, 404, 404])
    const problem = (await (await fetch(`${node.origin}/admin/ratelimits`)).json()) as { code: string; detail: string }
    expect(problem.code).toBe('SLUICE_HTTP_NOT_FOUND')
    expect(problem.detail).toContain('The admin API and metrics have a listener of their own')
    expect((await node.check({ user: 'a', resource: '/x' })).status).toBe(200)
  })

  it('serves everything', async () => {
    const node = await start()
    expect(node.adminOrigin).not.toBe(node.origin)
    expect(await statuses(node.adminOrigin, OPEN)).toEqual([200, 200, 200, 200])
    expect(await statuses(node.adminOrigin, ['/metrics', '/admin/ratelimits'])).toEqual([200, 401])
    const body = { resource: '/x', rules: [{ dimension: 'user', limit: 2, window: '1h' }] }
    expect((await node.admin('PUT', '/admin/ratelimits', { body })).status).toBe(200)
    const check = (origin: string): Promise<Response> =>
      fetch(`${origin}/internal/ratelimit/check`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ user: 'a', resource: '/x' }),
      })
    const answers = [await check(node.origin), await check(node.adminOrigin), await check(node.origin)]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
    const shown = await (await fetch(`${node.adminOrigin}/metrics`)).text()
    expect(shown).toContain('sluice_listener_connections{listener="admin"}')
    expect(shown).toContain('ratelimit_checks_total{dimension="user",resource="/x",result="denied"} 1')
  })

  it('names its port where it was chosen', async () => {
    const settings = { port: 0, admin: { port: 0 } }
    const { service } = await start(settings)
    const { admin: port } = service.ports
    await service.stop()
    const node = await start({ admin: { port: port! } })
    expect(node.service.ports.admin).toBe(port)
    expect(await (await fetch(`${node.origin}/metrics`)).text()).toContain(`on port ${port}.`)
  })

  it('has an address of its own, with the access that fits it', async () => {
    const admin = { port: 0, host: '127.0.0.2', checkKey: true }
    const node = await start({ admin })
    const text = await (await fetch(`${node.origin}/readyz`)).text()
    expect(text).toMatch(/"listener http","ready":true,"detail":"127.0.0.1:\d+; no API key needed"/)
    expect(text).toMatch(/"listener admin","ready":true,"detail":"127.0.0.2:\d+; API key needed for checks"/)
    const origin = `http://127.0.0.2:${node.service.ports.admin}`
    const post = {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"user":"a","resource":"/"}',
    }
    expect(await statusOf(`${origin}/internal/ratelimit/check`, post)).toBe(401)
    expect(await statusOf(`${node.origin}/internal/ratelimit/check`, post)).toBe(200)
    await expect(fetch(`http://127.0.0.1:${node.service.ports.admin}/livez`)).rejects.toThrow('fetch failed')
    // It answers to the name of its own address.
    expect(await statusOf(`${origin}/metrics`)).toBe(200)
  })

  it('is shared by threads', async () => {
    const node = await startRealService({ threads: 2, admin: { port: 0 } })
    onTestFinished(() => node.stop())
    expect((await node.admin('GET', '/admin/ratelimits')).status).toBe(200)
    expect(await statuses(node.origin, OF_ADMIN)).toEqual([404, 404, 404, 404])
  })

  it('that cannot listen names its settings', async () => {
    await expect(startRealService({ admin: { port: 0, host: '192.0.2.1' } })).rejects.toMatchObject({
      cause: { code: 'SLUICE_SERVICE_HOST_UNAVAILABLE', received: 'ADMIN_HOST=192.0.2.1' },
    })
  })
})

describe('an address of its own', () => {
  it.each(['resp', 'grpc'] as const)('is used by the listener %s', async (name) => {
    const address = { port: 0, host: '127.0.0.3', tls: undefined }
    const node = await startService({ [name]: { ...address, ...(name === 'grpc' && { deadlineMs: 15 }) } })
    onTestFinished(() => node.stop())
    const text = await (await fetch(`${node.origin}/readyz`)).text()
    expect(text).toContain(`"listener ${name}","ready":true,"detail":"127.0.0.3:${node.service.ports[name]};`)
  })

  it.each([
    ['0.0.0.0', '0.0.0.0'],
    ['::', '[::]'],
  ])('is shown as it is, also where it is every address of the machine: %s', async (host, shown) => {
    const node = await startService({ resp: { port: 0, host, checkKey: true, tls: undefined } })
    onTestFinished(() => node.stop())
    const text = await (await fetch(`${node.origin}/readyz`)).text()
    expect(text).toContain(`"listener resp","ready":true,"detail":"${shown}:${node.respPort}; API key needed"`)
  })
})
