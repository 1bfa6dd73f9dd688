import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { NodesAnswer, SessionState } from '@sluice/contract'
import { freePort, startPostgres, startRedis } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ExampleProcess } from './examples-process.ts'
import { repositoryRoot } from './workspace.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-demo-test-'))
let demo: ExampleProcess
let link: string
let origin: string
let gateway: string

beforeAll(async () => {
  const [port, gatewayPort] = [await freePort(), await freePort()]
  demo = new ExampleProcess({
    command: process.execPath,
    args: [
      '--conditions=source',
      join(repositoryRoot, 'tools/demo.ts'),
      '--port',
      String(port),
      '--gateway-port',
      String(gatewayPort),
    ],
    cwd: repositoryRoot,
    env: { TMPDIR: folder },
  })
  link = await demo.printed(/(http:\/\/localhost:\d+\/[\w-]{22})/)
  origin = `http://localhost:${port}`
  gateway = `http://localhost:${gatewayPort}`
})

afterAll(async () => {
  await demo?.stop('SIGTERM')
  rmSync(folder, { recursive: true, force: true })
})

function follow(url: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, { redirect: 'manual', headers })
}

describe('npm run demo', () => {
  it('signs in only the first who opens its link', async () => {
    const foreign = await follow(link, { 'sec-fetch-site': 'cross-site' })
    expect(foreign.headers.getSetCookie()).toEqual([])
    const first = await follow(link)
    expect([first.status, first.headers.get('location')]).toEqual([303, `${origin}/`])
    const [cookie = ''] = first.headers.getSetCookie()
    expect(cookie).toMatch(/; HttpOnly.*SameSite=Strict|SameSite=Strict.*HttpOnly/)
    const state = await fetch(`${origin}/auth/session`, { headers: { cookie: cookie.split(';', 1)[0]! } })
    expect(((await state.json()) as SessionState).session?.role).toBe('admin')
    const second = await follow(link)
    expect([second.status, second.headers.getSetCookie()]).toEqual([303, []])
  })

  it('sends checks through the API, some of them denied, and measures a candidate', async () => {
    const figures = async (): Promise<readonly [allowed: boolean, denied: boolean, shadow: boolean]> => {
      const metrics = await (await fetch(`${origin}/metrics`)).text()
      const has = (pattern: RegExp): boolean => pattern.test(metrics)
      return [
        has(/^ratelimit_checks_total\{[^}]*result="allowed"[^}]*\} [1-9]/m),
        has(/^ratelimit_denials_total\{[^}]*\} [1-9]/m),
        has(/^ratelimit_shadow\w*\{[^}]*\} [1-9]/m),
      ]
    }
    await expect.poll(figures, { timeout: 20_000 }).toEqual([true, true, true])
  })

  it('has a gateway that limits by the same rules', async () => {
    const response = await fetch(`${gateway}/api/v1/search`)
    expect([200, 429]).toContain(response.status)
    expect(response.headers.get('x-ratelimit-limit')).toBe('300')
  })

  it('serves the dashboard', async () => {
    const page = await fetch(origin, { headers: { accept: 'text/html' } })
    expect(await page.text()).toContain('<div id="app">')
  })

  it('ends, and leaves nothing running, when its port is taken', async () => {
    const second = new ExampleProcess({
      command: process.execPath,
      args: ['--conditions=source', join(repositoryRoot, 'tools/demo.ts'), '--port', new URL(origin).port],
      cwd: repositoryRoot,
      env: { TMPDIR: folder },
    })
    const { code, complaints } = await second.end()
    expect([code, complaints]).toEqual([1, expect.stringContaining('SLUICE_SERVICE_PORT_IN_USE')])
  })

  it('leaves nothing behind', async () => {
    await demo.stop('SIGTERM')
    await expect
      .poll(() =>
        fetch(origin).then(
          () => true,
          () => false,
        ),
      )
      .toBe(false)
    expect(readdirSync(folder).filter((name) => name.startsWith('sluice'))).toEqual([])
  })
})

describe('npm run demo with Redis and a database', () => {
  it('has two nodes that share figures, both with traffic', async () => {
    const [redis, postgres, port, gatewayPort] = await Promise.all([
      startRedis(),
      startPostgres(),
      freePort(),
      freePort(),
    ])
    const ports = ['--port', String(port), '--gateway-port', String(gatewayPort)]
    const pair = new ExampleProcess({
      command: process.execPath,
      args: ['--conditions=source', join(repositoryRoot, 'tools/demo.ts'), ...ports],
      cwd: repositoryRoot,
      env: { TMPDIR: folder, REDIS_URL: redis.url, DATABASE_URL: (await postgres.createDatabase()).url },
    })
    try {
      const key = await pair.printed(/Key {4}(\S+)/)
      const nodes = async (): Promise<readonly (readonly [region: string | undefined, isBusy: boolean])[]> => {
        const headers = { authorization: `Bearer ${key}` }
        const answer = await fetch(`http://localhost:${port}/admin/nodes`, { headers })
        const listed = ((await answer.json()) as NodesAnswer).nodes
        return listed.map(({ region, checksPerSecond }) => [region, checksPerSecond > 0] as const)
      }
      await expect.poll(nodes, { timeout: 20_000 }).toEqual([
        ['EU', true],
        ['US', true],
      ])
    } finally {
      await pair.stop('SIGTERM')
      await Promise.all([redis.close(), postgres.close()])
    }
  })
})
