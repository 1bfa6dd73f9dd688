import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CheckAnswer, ReadinessAnswer } from '@sluice/contract'
import { decodeSnowflake } from '@sluice/runtime'
import type { PostgresServer } from '@sluice/testing/servers'
import { startPostgres } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { RunningNode } from '../service.fixture.ts'
import { startRealService } from '../service.fixture.ts'
import type { Settings } from '../settings/settings.ts'
import { startupMessage } from '../startup-message.ts'

// Configuration is in PostgreSQL: nodes share it, and it may be away at any time.

let postgres: PostgresServer

beforeAll(async () => {
  postgres = await startPostgres()
})

afterAll(() => postgres.close())

async function startOn(settings: Partial<Settings>): Promise<RunningNode> {
  const node = await startRealService({ logLevel: 'error', ...settings })
  onTestFinished(() => node.stop())
  return node
}

async function answerOf(node: RunningNode, userId: string): Promise<CheckAnswer> {
  return (await (await node.check({ userId, resource: '/x' })).json()) as CheckAnswer
}

describe('nodes that share a database', () => {
  it('make one first key, go by one set of rules, and know what another handed out', async () => {
    const { url } = await postgres.createDatabase()
    const nodes = await Promise.all(Array.from({ length: 3 }, () => startOn({ databaseUrl: url })))
    const keys = nodes.flatMap(({ adminKey = [] }) => adminKey)
    expect(keys).toHaveLength(1)
    const [key = ''] = keys
    for (const node of nodes) {
      const status = async (): Promise<number> => (await node.admin('GET', '/admin/ratelimits', { key })).status
      await expect.poll(status, { timeout: 30_000 }).toBe(200)
    }

    const rules = [{ dimension: 'user', limit: 5, window: '1m' }]
    const put = await nodes[0]!.admin('PUT', '/admin/ratelimits', { key, body: { resource: '/x', rules } })
    expect(put.status).toBe(200)
    await expect.poll(async () => (await answerOf(nodes[2]!, 'any')).limit, { timeout: 30_000 }).toBe(5)
  })

  it('sign with one secret: what one reserved another recognises', async () => {
    const { url } = await postgres.createDatabase()
    const [one, other] = [await startOn({ databaseUrl: url }), await startOn({ databaseUrl: url })]
    const post = (node: RunningNode, path: string, body: unknown): Promise<Response> =>
      fetch(`${node.origin}/internal/ratelimit/${path}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      })
    const reserved = await post(one, 'reserve', { userId: 'u1', resource: '/x', tokens: 3 })
    const { reservationId } = (await reserved.json()) as { reservationId: string }
    expect((await post(other, 'release', { reservationId })).status).toBe(200)
    expect((await post(other, 'release', { reservationId: reservationId.replace(/.$/, '') })).status).toBe(400)
  })

  it('never make the same id', async () => {
    const { url } = await postgres.createDatabase()
    const nodes = await Promise.all(Array.from({ length: 3 }, () => startOn({ databaseUrl: url })))
    const ids = await Promise.all(nodes.map(async (node) => BigInt((await answerOf(node, 'u1')).decisionId!)))
    const numbers = ids.map((id) => decodeSnowflake(id)).map(({ datacenter, machine }) => datacenter * 32 + machine)
    expect(new Set(numbers).size).toBe(3)
  })
})

describe('the database away at the start', () => {
  it('is calm: the service runs, is not ready, and goes on by itself when the database comes', async () => {
    const away = await startPostgres()
    onTestFinished(() => away.close())
    const { url } = await away.createDatabase()
    await away.stop()
    const node = await startOn({ databaseUrl: url })
    expect((await fetch(`${node.origin}/livez`)).status).toBe(200)
    const ready = await fetch(`${node.origin}/readyz`)
    expect(ready.status).toBe(503)
    expect(await ready.text()).toContain('no rules were loaded yet')
    expect(node.adminKey).toBeUndefined()
    expect((await node.check({ userId: 'u1', resource: '/x' })).status).toBe(503)
    await away.restart()
    await expect.poll(async () => (await fetch(`${node.origin}/readyz`)).status, { timeout: 30_000 }).toBe(200)
    expect((await answerOf(node, 'u1')).limit).toBe(100)
    await expect.poll(() => node.adminKey, { timeout: 30_000 }).toBeDefined()
    await expect.poll(async () => (await node.admin('GET', '/admin/ratelimits')).status, { timeout: 30_000 }).toBe(200)
    expect(node.errors).toEqual([])
  })

  it('changes nothing for a node that was there before: rules, keys and secret are those it knew last', async () => {
    const server = await startPostgres()
    onTestFinished(() => server.close())
    const { url } = await server.createDatabase()
    const first = await startRealService({ databaseUrl: url, logLevel: 'error' })
    const key = first.adminKey!
    const rules = [{ dimension: 'user', limit: 5, window: '1m' }]
    await first.admin('PUT', '/admin/ratelimits', { body: { resource: '/x', rules } })
    await first.service.stop()
    await server.stop()
    const again = await startOn({ databaseUrl: url, dataDir: first.settings.dataDir })
    onTestFinished(() => first.stop())
    const ready = await fetch(`${again.origin}/readyz`)
    expect(ready.status).toBe(200)
    expect(await ready.text()).toContain('from disk')
    const known = { rules: await again.service.rules(), reasons: await again.service.reasons() }
    const reported = startupMessage({ ...again, ports: again.service.ports, ...known })
    expect(reported).toMatch(/^ {2}rules +version 2, from the copy in \S+$/m)
    expect(reported).toMatch(/^ {2}WARNING +The configuration database \(postgres:\S+\) has not been readable for /m)
    expect((await answerOf(again, 'u1')).limit).toBe(5)
    expect((await again.admin('GET', '/admin/ratelimits/usage?userId=u1', { key })).status).toBe(200)
    expect((await again.admin('PUT', '/admin/ratelimits', { key, body: { resource: '/x', rules } })).status).toBe(503)
  })
})

describe('a database that dies while the service runs', () => {
  it('is reported in /readyz at once, and never called up to date', async () => {
    const server = await startPostgres()
    onTestFinished(() => server.close())
    const { url } = await server.createDatabase()
    const node = await startOn({ databaseUrl: url, logLevel: 'warn' })
    const readiness = async (): Promise<ReadinessAnswer> =>
      (await (await fetch(`${node.origin}/readyz`)).json()) as ReadinessAnswer
    const detail = ({ checks }: ReadinessAnswer): string => checks.find(({ name }) => name === 'config')!.detail
    expect(detail(await readiness())).toMatch(/^version 1 from database, confirmed \d+\.\d s ago$/)
    await server.stop()
    const dead = async (): Promise<unknown> => (await readiness()).reasons.map(({ code }) => code)
    await expect.poll(dead, { timeout: 30_000, interval: 20 }).toEqual(['config-unreachable'])
    const reported = await readiness()
    expect([reported.status, detail(reported)]).toEqual([
      'degraded',
      expect.stringMatching(/, not readable for \d+\.\d s$/),
    ])
    await server.restart()
    await expect.poll(dead, { timeout: 30_000 }).toEqual([])
    const messages = node.log.map(({ message }) => message)
    expect(
      messages.filter((message) => /could not read the configuration|configuration is readable/.test(message)),
    ).toEqual([
      'could not read the configuration; the last known one stays active',
      'the configuration is readable again',
    ])
  })

  it('is no secret of a service whose rules come from a file', async () => {
    const server = await startPostgres()
    onTestFinished(() => server.close())
    const { url } = await server.createDatabase()
    const folder = await mkdtemp(join(tmpdir(), 'sluice-away-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const rulesFile = join(folder, 'sluice.yaml')
    await writeFile(rulesFile, 'rules:\n  - { resource: "*", dimension: user, limit: 5, window: 1m }\n')
    const node = await startOn({ databaseUrl: url, rulesFile })
    const reasons = async (): Promise<unknown> => {
      const { status, reasons: reported } = (await (await fetch(`${node.origin}/readyz`)).json()) as ReadinessAnswer
      return [status, ...reported.map(({ code }) => code)]
    }
    expect(await reasons()).toEqual(['ready'])
    await server.stop()
    await expect.poll(reasons, { timeout: 30_000, interval: 20 }).toEqual(['degraded', 'config-unreachable'])
    expect((await answerOf(node, 'u1')).limit).toBe(5)
  })
})

describe('a database whose disk is full', () => {
  it('is not called unreachable: changes are answered with 507 and what to do, and limits go on', async () => {
    const { name, url } = await postgres.createDatabase()
    const node = await startOn({ databaseUrl: url })
    const reject_insert = `CREATE FUNCTION reject_insert() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      RAISE EXCEPTION 'could not extend file "base/5/16384": No space left on device' USING ERRCODE = 'disk_full';
    END $$; CREATE TRIGGER reject_insert BEFORE INSERT ON overrides FOR EACH ROW EXECUTE FUNCTION reject_insert()`
    await postgres.query(reject_insert, name)
    const body = { dimension: 'user', entity: 'u1', resource: '*', terms: { limit: 5 } }
    const response = await node.admin('PUT', '/admin/overrides', { body })
    expect([response.status, await response.json()]).toEqual([
      507,
      expect.objectContaining({
        code: 'SLUICE_HTTP_CONFIG_NOT_WRITABLE',
        detail: expect.stringMatching(/its disk is full\. Nothing was changed\. Free some space/),
      }),
    ])
    expect((await answerOf(node, 'u1')).limit).toBe(100)
    expect((await node.admin('GET', '/admin/overrides')).status).toBe(200)
  })
})
