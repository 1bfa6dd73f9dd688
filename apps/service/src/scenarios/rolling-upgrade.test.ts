import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CheckAnswer, ReservationAnswer, UsageAnswer } from '@sluice/contract'
import type { PostgresServer, RedisServer } from '@sluice/testing/servers'
import { startPostgres, startRedis } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkOutPreviousVersion, hasPreviousVersion } from '../previous-version.test.support.ts'

// Half of the nodes are of the previous version, half of this one, on one Redis and one database. The previous version
// was there first; this one has changed the tables of the database meanwhile.

const LIMIT = 60

const RULES = {
  '/fixed': { algorithm: 'fixed-window', limit: LIMIT, window: '52w' },
  '/sliding': { algorithm: 'sliding-window-counter', limit: LIMIT, window: '52w' },
  '/log': { algorithm: 'sliding-window-log', limit: LIMIT, window: '52w' },
  '/gcra': { algorithm: 'gcra', limit: LIMIT, window: '52w' },
  '/bucket': { algorithm: 'token-bucket', capacity: LIMIT, refillPerSecond: 0.000_001 },
} as const

/** The machine may be busy. */
const PATIENCE = { timeout: 15_000, interval: 100 }

/** A node in a process of its own. */
interface NodeProcess {
  readonly version: 'previous' | 'this'
  readonly url: string
  readonly dataDir: string
  /** What it printed. */
  readonly output: string
  stop(): Promise<void>
}

let redis: RedisServer
let postgres: PostgresServer
let folder: string
let previousMain: string
let previous: NodeProcess
let current: NodeProcess
let key: string
const started: NodeProcess[] = []

async function startNode(
  version: NodeProcess['version'],
  main: string,
  dataDir: string = mkdtempSync(join(folder, 'data-')),
): Promise<NodeProcess> {
  const env = {
    ...{ PORT: '0', SLUICE_DATA_DIR: dataDir, SLUICE_DRAIN_MS: '0' },
    ...{ REDIS_URL: redis.url, DATABASE_URL: postgres.url, SLUICE_FAILURE_MODE: 'closed', SLUICE_LOG_LEVEL: 'error' },
  }
  const child = spawn(process.execPath, ['--conditions=source', main], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'close')
  let output = ''
  const port = await new Promise<string>((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
      const [, found] = /http:\/\/127\.0\.0\.1:(\d+)\/readyz/.exec(output) ?? []
      if (found !== undefined) resolve(found)
    })
    child.on('close', () => reject(new Error(`The ${version} version ended: ${output}`)))
  })
  const node = {
    ...{ version, url: `http://127.0.0.1:${port}`, dataDir, output },
    stop: async (): Promise<void> => {
      child.kill('SIGTERM')
      expect(await ended).toEqual([0, null])
    },
  }
  started.push(node)
  return node
}

async function stop(node: NodeProcess): Promise<void> {
  started.splice(started.indexOf(node), 1)
  await node.stop()
}

async function ask<T>(
  { url }: NodeProcess,
  target: string,
  body?: unknown,
  token: string = key,
): Promise<{ readonly status: number; readonly body: T }> {
  const [method = '', path = ''] = target.split(' ')
  const response = await fetch(url + path, {
    method,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: (text === '' ? undefined : JSON.parse(text)) as T }
}

async function check(node: NodeProcess, body: object): Promise<CheckAnswer> {
  const answer = await ask<CheckAnswer>(node, 'POST /internal/ratelimit/check', body)
  expect([200, 429, 503]).toContain(answer.status)
  return answer.body
}

/** Every ordered pair: what one does, the other must go by. */
function bothWays(): readonly (readonly [NodeProcess, NodeProcess])[] {
  return [
    [previous, current],
    [current, previous],
  ]
}

describe.skipIf(!hasPreviousVersion())('nodes of the previous version and of this one', () => {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-upgrade-'))
    redis = await startRedis()
    postgres = await startPostgres()
    previousMain = checkOutPreviousVersion(folder)
    previous = await startNode('previous', previousMain)
    ;[key = ''] = /slk_\w+/.exec(previous.output) ?? []
    for (const [resource, rule] of Object.entries(RULES)) {
      const body = { resource, rules: [{ dimension: 'user', ...rule }] }
      expect((await ask(previous, 'PUT /admin/ratelimits', body)).status).toBe(200)
    }
    current = await startNode('this', join(import.meta.dirname, '../main.ts'))
  }, 180_000)

  afterAll(async () => {
    for (const node of started) await node.stop()
    await redis?.close()
    await postgres?.close()
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
  })

  it('are of two versions', async () => {
    expect((await ask(previous, 'GET /admin/blocks.txt')).status).toBe(404)
    const response = await fetch(`${current.url}/admin/blocks.txt`, { headers: { Authorization: `Bearer ${key}` } })
    expect(response.status).toBe(200)
    await response.body?.cancel()
  })

  it.each(Object.keys(RULES))('count one limit together: %s', async (resource) => {
    let allowed = 0
    let unknown = 0
    for (let call = 0; call < 2 * LIMIT; call++) {
      const answer = await check(call % 2 === 0 ? previous : current, { userId: 'u1', resource })
      if (answer.allowed) allowed++
      else expect(['limit', 'unavailable']).toContain(answer.reason)
      // On a busy machine Redis may be slow to answer: what was denied for that may have been taken all the same.
      if (answer.failure !== undefined) unknown++
    }
    expect(allowed).toBeLessThanOrEqual(LIMIT)
    expect(allowed + unknown).toBeGreaterThanOrEqual(LIMIT)
    const path = `/admin/ratelimits/usage?userId=u1&resource=${resource}`
    for (const [node] of bothWays()) {
      const { body } = await ask<UsageAnswer>(node, `GET ${path}`)
      expect([node.version, body.usage[0]?.counters[0]]).toMatchObject([node.version, { limit: LIMIT, used: LIMIT }])
    }
  })

  it('enforce the rules that the other sets', async () => {
    for (const [one, other] of bothWays()) {
      const resource = `/set-by-${one.version}`
      const body = { resource, rules: [{ dimension: 'user', limit: 1, window: '52w' }] }
      expect((await ask(one, 'PUT /admin/ratelimits', body)).status).toBe(200)
      await expect
        .poll(async () => (await check(other, { userId: 'poll', resource, tokens: 0 })).limit, PATIENCE)
        .toBe(1)
      const answers = [await check(other, { userId: 'u1', resource }), await check(one, { userId: 'u1', resource })]
      expect([one.version, ...answers.map(({ reason }) => reason)]).toEqual([one.version, 'allowed', 'limit'])
    }
  })

  it('go by the overrides and blocks that the other sets, and lifts', async () => {
    for (const [one, other] of bothWays()) {
      const entity = `of-${one.version}`
      const call = { userId: entity, resource: '/gcra', tokens: 0 }
      const terms = { dimension: 'user', entity, resource: '/gcra', terms: { limit: 7, window: '52w' } }
      expect((await ask(one, 'PUT /admin/overrides', terms)).status).toBe(200)
      await expect.poll(async () => (await check(other, call)).limit, PATIENCE).toBe(7)
      const block = { dimension: 'user', entity, duration: '1h', reason: 'a test' }
      expect((await ask(one, 'PUT /admin/blocks', block)).status).toBe(200)
      await expect.poll(async () => (await check(other, call)).reason, PATIENCE).toBe('blocked')
      expect((await ask(other, `DELETE /admin/blocks?dimension=user&entity=${entity}`)).status).toBe(204)
      await expect.poll(async () => (await check(one, call)).reason, PATIENCE).toBe('allowed')
    }
  })

  it('settle the reservations of the other, and release its slots', async () => {
    const body = { resource: '/slots', rules: [{ dimension: 'user', algorithm: 'concurrency', limit: 1, lease: '1h' }] }
    await ask(previous, 'PUT /admin/ratelimits', body)
    for (const [one, other] of bothWays()) {
      const call = { userId: `reserves-at-${one.version}`, resource: '/fixed' }
      const reserved = await ask<ReservationAnswer>(one, 'POST /internal/ratelimit/reserve', { ...call, tokens: 9 })
      expect(reserved.status).toBe(200)
      const { reservationId } = reserved.body
      const settled = await ask(other, 'POST /internal/ratelimit/settle', { reservationId, tokens: 4 })
      expect(settled.body).toEqual({ outcome: 'settled', corrected: -5 })
      expect((await check(one, { ...call, tokens: 0 })).remaining).toBe(LIMIT - 4)

      const slot = { userId: one.version, resource: '/slots' }
      await expect.poll(async () => (await check(other, { ...slot, tokens: 0 })).limit, PATIENCE).toBe(1)
      const acquire = async (node: NodeProcess): Promise<{ status: number; body: ReservationAnswer }> =>
        await ask<ReservationAnswer>(node, 'POST /internal/ratelimit/acquire', slot)
      const held = await acquire(one)
      expect([held.status, (await acquire(other)).status]).toEqual([200, 429])
      const release = { reservationId: held.body.reservationId }
      expect((await ask(other, 'POST /internal/ratelimit/release', release)).status).toBe(200)
      expect((await acquire(other)).status).toBe(200)
    }
  })

  it('know the API keys of the other, and what it wrote to the audit log', async () => {
    for (const [one, other] of bothWays()) {
      const made = await ask<{ token: string; apiKey: { id: string } }>(one, 'POST /admin/api-keys', {
        name: `made by ${one.version}`,
        role: 'viewer',
      })
      expect(made.status).toBe(201)
      const { token, apiKey } = made.body
      const statusAt = async (node: NodeProcess): Promise<number> =>
        (await ask(node, 'GET /admin/blocks', undefined, token)).status
      await expect.poll(() => statusAt(other), PATIENCE).toBe(200)
      const { id } = apiKey
      const audit = await ask<{ items: { action: string; target: string }[] }>(other, 'GET /admin/audit?limit=5')
      expect(audit.body.items).toContainEqual(expect.objectContaining({ action: 'api-key.create', target: id }))
      expect((await ask(other, `DELETE /admin/api-keys/${id}`)).status).toBe(204)
      await expect.poll(() => statusAt(one), PATIENCE).toBe(401)
    }
  })

  it('keep limiting by the rules known last when one of the previous version is restarted', async () => {
    const call = { userId: 'restarted', resource: '/fixed' }
    await stop(previous)
    previous = await startNode('previous', previousMain, previous.dataDir)
    expect((await check(previous, { ...call, tokens: 25 })).remaining).toBe(LIMIT - 25)
    expect((await check(current, { ...call, tokens: 5 })).remaining).toBe(LIMIT - 30)
  })

  it('leave the counters as they are when the last of the previous version is replaced', async () => {
    const call = { userId: 'stays', resource: '/fixed' }
    expect((await check(previous, { ...call, tokens: 25 })).remaining).toBe(LIMIT - 25)
    await stop(previous)
    const next = await startNode('this', join(import.meta.dirname, '../main.ts'))
    expect((await check(next, { ...call, tokens: 5 })).remaining).toBe(LIMIT - 30)
    expect((await check(current, { ...call, tokens: 5 })).remaining).toBe(LIMIT - 35)
    const usage = await ask<UsageAnswer>(next, 'GET /admin/ratelimits/usage?userId=u1&resource=/log')
    expect(usage.body.usage[0]?.counters[0]).toMatchObject({ used: LIMIT, remaining: 0 })
  })
})
