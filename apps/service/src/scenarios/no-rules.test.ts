import type { CheckAnswer } from '@sluice/contract'
import type { FailureMode } from '@sluice/core'
import type { PostgresServer } from '@sluice/testing/servers'
import { startPostgres, startRedis } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { RunningNode } from '../service.fixture.ts'
import { startRealService } from '../service.fixture.ts'
import type { RedisSettings, Settings } from '../settings/settings.ts'

// A node that knows no rules decides nothing: it answers 503, so that a caller or a load balancer can.

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

const CALL = { userId: 'u1', resource: '/x' }
const RESERVATION = { reservationId: 'rsv_from_another_node', tokens: 1 }

/** Every entry point that decides, counts or ends what was decided. */
const ENTRY_POINTS: readonly (readonly [path: string, body: unknown])[] = [
  ['/internal/ratelimit/check', CALL],
  ['/internal/ratelimit/check/batch', { requests: [CALL, CALL] }],
  ['/internal/ratelimit/batch', { requests: [CALL] }],
  ['/internal/ratelimit/peek', CALL],
  ['/internal/ratelimit/reserve', CALL],
  ['/internal/ratelimit/acquire', CALL],
  ['/internal/ratelimit/acquire', { ...CALL, maxWaitMs: 1000 }],
  ['/internal/ratelimit/settle', RESERVATION],
  ['/internal/ratelimit/release', { reservationId: RESERVATION.reservationId }],
  ['/internal/ratelimit/heartbeat', { reservationId: RESERVATION.reservationId }],
  ['/internal/ratelimit/report', { reports: [{ resource: '/x', failed: true }] }],
  ['/json', { domain: 'shop', descriptors: [{ entries: [{ key: 'api_key', value: 'abc' }] }] }],
]

/** On a connection of its own, so that every thread gets some. */
function post(node: RunningNode, path: string, body: unknown): Promise<Response> {
  const headers = { 'Content-Type': 'application/json', Connection: 'close' }
  return fetch(node.origin + path, { method: 'POST', headers, body: JSON.stringify(body) })
}

async function expectNotReady(node: RunningNode): Promise<void> {
  for (const [path, body] of ENTRY_POINTS) {
    const response = await post(node, path, body)
    expect([path, response.status, response.headers.get('retry-after'), await response.json()]).toEqual([
      path,
      503,
      '1',
      expect.objectContaining({ code: 'SLUICE_HTTP_NOT_READY', detail: expect.stringContaining('no rules') }),
    ])
  }
  expect(await readiness(node)).toEqual(new Set([503]))
  expect((await fetch(`${node.origin}/livez`)).status).toBe(200)
}

/** What all threads answer, each on connections of its own. */
async function readiness(node: RunningNode): Promise<ReadonlySet<number>> {
  const headers = { Connection: 'close' }
  const asked = Array.from({ length: 16 }, () => fetch(`${node.origin}/readyz`, { headers }))
  return new Set((await Promise.all(asked)).map(({ status }) => status))
}

/** A database server that is down, and an empty database on it. */
async function startAway(): Promise<{ readonly server: PostgresServer; readonly url: string }> {
  const server = await startPostgres()
  onTestFinished(() => server.close())
  const { url } = await server.createDatabase()
  await server.stop()
  return { server, url }
}

async function redisSettings(failureMode: FailureMode): Promise<RedisSettings> {
  const redis = await startRedis()
  onTestFinished(() => redis.close())
  const common = { isCluster: false, sentinel: undefined, leases: false, prefix: 'sluice', deadlineMs: 50 }
  return { ...common, urls: [redis.url], failureMode }
}

describe.each([1, 2])('with %i threads and the database away', (threads) => {
  it('answers 503 everywhere until the rules are loaded, and recovers by itself', async () => {
    const { server, url } = await startAway()
    const node = await startOn({ databaseUrl: url, threads })
    await expectNotReady(node)
    await server.restart()
    await expect.poll(() => readiness(node), { timeout: 30_000 }).toEqual(new Set([200]))
    const answer = (await (await post(node, '/internal/ratelimit/check', CALL)).json()) as CheckAnswer
    expect([answer.limit, answer.remaining]).toEqual([100, 99])
    expect(node.errors).toEqual([])
  })
})

it.each(['open', 'closed', 'local'] as const)('answers 503 whatever the failure mode is (%s)', async (failureMode) => {
  const { url } = await startAway()
  await expectNotReady(await startOn({ databaseUrl: url, redis: await redisSettings(failureMode) }))
})

describe('a database that answers', () => {
  it('and has rules that this version cannot use leaves a new node without rules', async () => {
    const { name, url } = await postgres.createDatabase()
    const first = await startOn({ databaseUrl: url })
    const query = (sql: string): Promise<string> => postgres.query(sql, name)
    await query(`UPDATE rules SET body = replace(body, '"limit"', '"quota"')`)
    const later = await startOn({ databaseUrl: url })
    await expectNotReady(later)
    expect(await (await fetch(`${later.origin}/readyz`)).text()).toContain('Version 1 cannot be used')
    // Valid rules are enforced.
    const rules = [{ dimension: 'user', limit: 5, window: '1m' }]
    await query(`UPDATE rules SET body = replace(body, '"quota"', '"limit"')`)
    expect((await first.admin('PUT', '/admin/ratelimits', { body: { resource: '/x', rules } })).status).toBe(200)
    await expect.poll(() => readiness(later), { timeout: 30_000 }).toEqual(new Set([200]))
    expect(((await (await later.check(CALL)).json()) as CheckAnswer).limit).toBe(5)
  })

  it('and is emptied while the service runs does not lift the limits', async () => {
    const { name, url } = await postgres.createDatabase()
    const node = await startOn({ databaseUrl: url })
    expect(((await (await node.check(CALL)).json()) as CheckAnswer).limit).toBe(100)
    await postgres.query('TRUNCATE versions, rules CASCADE; UPDATE feed_head SET position = 1', name)
    const ready = async (): Promise<string> => await (await fetch(`${node.origin}/readyz`)).text()
    await expect
      .poll(ready, { timeout: 30_000 })
      .toContain('The database has no enforced version. Version 1 stays active.')
    const answer = (await (await node.check(CALL)).json()) as CheckAnswer
    expect([answer.limit, answer.version]).toEqual([100, 1])
  })
})
