import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CheckRequest, Page as Listed, NodesAnswer, Session } from '@sluice/contract'
import { freePort, startPostgres, startRedis } from '@sluice/testing/servers'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startBrowser } from './browser.ts'
import { ExampleProcess } from './examples-process.ts'
import { repositoryRoot } from './workspace.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-demo-test-'))
let demo: ExampleProcess
let link: string
let origin: string
let gateway: string
let browser: Browser
let page: Page

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
  browser = await startBrowser()
})

afterAll(async () => {
  await browser?.close()
  await demo?.stop('SIGTERM')
  rmSync(folder, { recursive: true, force: true })
})

async function check(request: CheckRequest): Promise<number> {
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify(request)
  return (await fetch(`${origin}/internal/ratelimit/check`, { method: 'POST', headers, body })).status
}

function follow(url: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, { redirect: 'manual', headers })
}

describe('npm run demo', () => {
  it('signs in only the first browser that opens its link, and shows live traffic', async () => {
    const foreign = await follow(link, { 'sec-fetch-site': 'cross-site' })
    expect(foreign.headers.getSetCookie()).toEqual([])
    page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
    page.setDefaultTimeout(20_000)
    await page.goto(link)
    expect(page.url()).toBe(`${origin}/`)
    await page.getByText('live', { exact: true }).waitFor()
    const figure = page.getByRole('term').filter({ hasText: 'Requests' }).locator('..')
    const requests = async (): Promise<number> =>
      Number.parseFloat(await figure.getByRole('definition').first().innerText())
    await expect.poll(requests, { timeout: 20_000 }).toBeGreaterThan(0)
    const [cookie] = await page.context().cookies()
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' })
    const sessions = await page.context().request.get(`${origin}/admin/sessions?of=own`)
    const [session] = ((await sessions.json()) as Listed<Session>).items
    expect([session?.role, session?.browser]).toEqual(['admin', expect.stringContaining('Chrome/')])
    const second = await follow(link)
    expect([second.status, second.headers.getSetCookie()]).toEqual([303, []])
  })

  it('lets a newcomer change a limit, which holds within a second and is seen on the overview', async () => {
    const review = (): Promise<number> => check({ user: 'newcomer', resource: '/api/v1/reviews', method: 'POST' })
    expect([await review(), await review()]).toEqual([200, 200])
    await page.getByRole('link', { name: 'Rules', exact: true }).click()
    await page
      .getByRole('row', { name: /^\/api\/v1\/reviews/ })
      .getByRole('link', { name: 'Edit' })
      .click()
    await page.getByLabel('Limit', { exact: true }).fill('1')
    await page.getByText('Each user may call /api/v1/reviews once a minute.').first().waitFor()
    await page.getByRole('button', { name: 'Review and publish' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Publish', exact: true }).click()
    const publishedMs = performance.now()
    await expect.poll(review, { interval: 20, timeout: 5000 }).toBe(429)
    expect(performance.now() - publishedMs).toBeLessThan(1000)
    await page.getByText(/Version \d+ is enforced/).waitFor()
    await page.getByRole('link', { name: 'Overview', exact: true }).click()
    const share = page.getByRole('figure', { name: 'Denial rate by resource' }).getByTitle('/api/v1/reviews')
    const percent = async (): Promise<number> => Number.parseFloat((await share.innerText()).split(/\s+/).at(-1)!)
    // The resources with most denials have a line, and they are chosen again every 15 seconds.
    await share.waitFor({ timeout: 60_000 })
    // Of the last 15 minutes: the longer the demo has run, the slower it rises.
    const first = await percent()
    await expect.poll(percent, { timeout: 60_000 }).toBeGreaterThan(first + 5)
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
    await page.getByRole('link', { name: 'Gateway', exact: true }).click()
    const flow = page.getByRole('region', { name: 'Routes to catalogue' })
    await expect.poll(() => flow.getByText('healthy', { exact: true }).count(), { timeout: 20_000 }).toBe(2)
    const requests = flow.getByText(/^[1-9][\d,]* requests?, 0% failed/)
    await expect.poll(() => requests.count(), { timeout: 20_000 }).toBe(2)
  })

  it('serves the dashboard', async () => {
    const answer = await fetch(origin, { headers: { accept: 'text/html' } })
    expect(await answer.text()).toContain('<div id="app">')
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
