import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CheckAnswer } from '@sluice/contract'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RunningService } from '../../service.fixture.ts'
import { RawConnection, START_MS, startService } from '../../service.fixture.ts'
import type { Settings } from '../../settings/settings.ts'

const CHECK = { userId: 'u1', resource: '/x' }

async function start(settings: Partial<Settings> = {}): Promise<RunningService> {
  const running = await startService(settings)
  onTestFinished(() => running.stop())
  return running
}

/** A key with this role, made by the first one. */
async function keyWith(node: RunningService, role: string): Promise<string> {
  const made = await node.admin('POST', '/admin/api-keys', { body: { name: role, role } })
  expect(made.status).toBe(201)
  return ((await made.json()) as { token: string }).token
}

describe('the check API', () => {
  it('asks for no key', async () => {
    const { check } = await start()
    expect((await check(CHECK)).status).toBe(200)
  })

  it('requires a key of any role if so configured; a request without one costs nothing', async () => {
    const node = await start({ checkKey: true })
    expect((await node.check(CHECK)).status).toBe(401)
    const key = await keyWith(node, 'none')
    const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${key}` }
    const response = await node.check(CHECK, headers)
    expect([response.status, ((await response.json()) as CheckAnswer).remaining]).toEqual([200, 99])
    const reports = [{ resource: '/x', failed: true }]
    const report = (more: object): Promise<Response> =>
      fetch(`${node.origin}/internal/ratelimit/report`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...more },
        body: JSON.stringify({ reports }),
      })
    expect([(await report({})).status, (await report(headers)).status]).toEqual([401, 200])
    expect((await fetch(`${node.origin}/livez`)).status).toBe(200)
    expect((await node.admin('GET', '/admin/ratelimits', { key })).status).toBe(403)
  })

  it('has headers by the profile of the settings', async () => {
    const { check } = await start({ headers: 'draft-11' })
    const response = await check(CHECK)
    expect([response.headers.has('ratelimit'), response.headers.has('x-ratelimit-limit')]).toEqual([true, false])
  })
})

describe('the admin API', () => {
  it('is let in by role', async () => {
    const node = await start()
    const viewer = await keyWith(node, 'viewer')
    expect((await fetch(`${node.origin}/admin/ratelimits`)).status).toBe(401)
    expect((await node.admin('GET', '/admin/ratelimits', { key: viewer })).status).toBe(200)
    const body = { resource: '/x', rules: [{ dimension: 'user', limit: 5, window: '1m' }] }
    expect((await node.admin('PUT', '/admin/ratelimits', { key: viewer, body })).status).toBe(403)
    expect((await node.admin('PUT', '/admin/ratelimits', { body })).status).toBe(200)
    expect(((await (await node.check(CHECK)).json()) as CheckAnswer).limit).toBe(5)
  })

  it('answers preflight requests of browsers with nothing that lets them in', async () => {
    const { origin } = await start()
    const headers = { Origin: 'https://evil.example', 'Access-Control-Request-Method': 'PUT' }
    const response = await fetch(`${origin}/admin/ratelimits`, { method: 'OPTIONS', headers })
    expect(response.status).toBe(405)
    expect([...response.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
  })
})

describe('every answer', () => {
  it('is counted, whichever layer answered', async () => {
    const node = await start()
    const ask = async (method: string, path: string): Promise<number> =>
      (await fetch(node.origin + path, { method })).status
    expect(await ask('GET', '/admin/tiers')).toBe(401)
    expect(await ask('GET', '/nowhere')).toBe(404)
    expect(await ask('GET', '/nowhere-else')).toBe(404)
    expect(await ask('DELETE', '/livez')).toBe(405)
    expect(await ask('GET', '/livez')).toBe(200)
    expect((await node.check('{')).status).toBe(400)
    expect((await node.admin('GET', '/admin/tiers?limit=0')).status).toBe(400)
    const broken = new RawConnection(node.port)
    broken.send('nonsense\r\n\r\n')
    await broken.end()
    node.setLoopDelay(1500)
    node.advance(250_000)
    expect((await node.check(CHECK)).status).toBe(503)
    const shown = await (await fetch(`${node.origin}/metrics`)).text()
    const counted = [...shown.matchAll(/^sluice_http_requests_total\{(.*)\} (\d+)$/gm)].map(([, labels, count]) => [
      labels,
      Number(count),
    ])
    expect(Object.fromEntries(counted)).toEqual({
      'operation="GET /admin/tiers",status="401"': 1,
      'operation="GET /admin/tiers",status="400"': 1,
      'operation="none",status="404"': 2,
      'operation="none",status="405"': 1,
      'operation="none",status="400"': 1,
      'operation="GET /livez",status="200"': 1,
      'operation="POST /internal/ratelimit/check",status="400"': 1,
      'operation="POST /internal/ratelimit/check",status="503"': 1,
    })
  })
})

describe('history', () => {
  it('is kept: what was decided before a restart is shown after it', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'sluice-history-'))
    onTestFinished(() => rm(dataDir, { recursive: true, force: true }))
    const before = await startService({ dataDir })
    await before.check({ ...CHECK, tokens: 100 })
    await before.check(CHECK)
    await before.stop()
    const after = await start({ dataDir })
    const path = `/admin/history?from=${START_MS - 120_000}&to=${START_MS + 60_000}&stepMs=60000`
    const response = await after.admin('GET', path, { key: before.adminKey! })
    expect(response.status).toBe(200)
    expect(await response.text()).toMatch(/"checks":2\b.*"denials":1\b|"denials":1\b.*"checks":2\b/)
  })
})

const FILED = `
incident: 0.5
rules:
  - { name: filed, resource: "*", dimension: user, limit: 3, window: 1m }
  - { name: strict, resource: /strict, dimension: user, limit: 1, window: 1m,
      penalty: { after: 1, within: 1m, block: 1h } }
`

describe('rules from a file', () => {
  async function startWithFile(settings: Partial<Settings> = {}): Promise<{ node: RunningService; file: string }> {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-rules-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const file = join(folder, 'sluice.yaml')
    await writeFile(file, FILED)
    return { node: await start({ ...settings, rulesFile: file }), file }
  }

  it('are enforced instead of those in the database, and keys still come from there', async () => {
    const { node } = await startWithFile()
    const answer = (await (await node.check(CHECK)).json()) as CheckAnswer
    expect([answer.limit, answer.rule]).toEqual([3, 'filed'])
    const ready = await (await fetch(`${node.origin}/readyz`)).text()
    expect(ready).toContain('version 1 from file')
    const listed = await node.admin('GET', '/admin/ratelimits')
    expect([listed.status, await listed.text()]).toEqual([200, expect.stringContaining('filed')])
  })

  it('are changed in the file only', async () => {
    const { node, file } = await startWithFile()
    const body = { resource: '/x', rules: [{ dimension: 'user', limit: 5, window: '1m' }] }
    const rejected = await node.admin('PUT', '/admin/ratelimits', { body })
    expect([rejected.status, await rejected.text()]).toEqual([409, expect.stringContaining(file)])
  })

  /** Stops a node and starts another one in its data folder. */
  async function restarted(node: RunningService): Promise<RunningService> {
    await node.stop()
    return await start({ dataDir: node.settings.dataDir, rulesFile: node.settings.rulesFile })
  }

  async function dataFolder(): Promise<string> {
    const dataDir = await mkdtemp(join(tmpdir(), 'sluice-data-'))
    onTestFinished(() => rm(dataDir, { recursive: true, force: true }))
    return dataDir
  }

  it('leave the blocks of their penalties to the API, which hold after a restart until they are lifted', async () => {
    const { node } = await startWithFile({ dataDir: await dataFolder() })
    const key = node.adminKey!
    const strict = { userId: 'u1', resource: '/strict' }
    expect((await node.check(strict)).status).toBe(200)
    expect((await node.check(strict)).status).toBe(429)
    const isBlocked = async (at: RunningService): Promise<boolean> =>
      ((await (await at.check(CHECK)).json()) as CheckAnswer).reason === 'blocked'
    const listed = async (at: RunningService): Promise<string> =>
      await (await at.admin('GET', '/admin/blocks', { key })).text()
    await expect.poll(() => listed(node)).toContain('"rule":"strict"')
    expect(await isBlocked(node)).toBe(true)
    const later = await restarted(node)
    expect([await isBlocked(later), await listed(later)]).toEqual([true, expect.stringContaining('"entity":"u1"')])
    const lifted = await later.admin('DELETE', '/admin/blocks?dimension=user&entity=u1', { key })
    expect([lifted.status, await isBlocked(later), await listed(later)]).toEqual([204, false, '{"items":[]}\n'])
    expect(await isBlocked(await restarted(later))).toBe(false)
  })

  it('leave the incident to the API, which lasts over a restart', async () => {
    const { node } = await startWithFile({ dataDir: await dataFolder() })
    const key = node.adminKey!
    const limit = async (at: RunningService): Promise<number | null> =>
      ((await (await at.check({ ...CHECK, tokens: 0 })).json()) as CheckAnswer).limit
    expect(await limit(node)).toBe(3)
    expect((await node.admin('PUT', '/admin/incident', { body: { active: true } })).status).toBe(200)
    expect(await limit(node)).toBe(1)
    const later = await restarted(node)
    expect(await limit(later)).toBe(1)
    expect((await later.admin('PUT', '/admin/incident', { body: { active: false }, key })).status).toBe(200)
    expect(await limit(later)).toBe(3)
  })

  it('leave both to the API in every thread', async () => {
    const { node } = await startWithFile({ threads: 2 })
    /** Over connections of their own, which come to either thread. */
    const answers = async (body: object): Promise<CheckAnswer[]> => {
      const headers = { 'Content-Type': 'application/json', Connection: 'close' }
      const all = await Promise.all(Array.from({ length: 16 }, () => node.check(body, headers)))
      return await Promise.all(all.map(async (response) => (await response.json()) as CheckAnswer))
    }
    const blocked = { userId: 'u9', resource: '/x', tokens: 0 }
    const block = { dimension: 'user', entity: 'u9', duration: '1h' }
    expect((await node.admin('PUT', '/admin/blocks', { body: block })).status).toBe(200)
    await expect
      .poll(async () => new Set((await answers(blocked)).map(({ reason }) => reason)))
      .toEqual(new Set(['blocked']))
    expect((await node.admin('PUT', '/admin/incident', { body: { active: true } })).status).toBe(200)
    const free = { userId: 'u1', resource: '/x', tokens: 0 }
    await expect.poll(async () => new Set((await answers(free)).map(({ limit }) => limit))).toEqual(new Set([1]))
    expect((await node.admin('DELETE', '/admin/blocks?dimension=user&entity=u9')).status).toBe(204)
    await expect
      .poll(async () => new Set((await answers(blocked)).map(({ reason }) => reason)))
      .toEqual(new Set(['allowed']))
  })
})
