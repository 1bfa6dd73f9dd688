import type { CheckAnswer } from '@sluice/contract'
import { decodeSnowflake } from '@sluice/runtime'
import type { RedisServer } from '@sluice/testing/servers'
import { FaultyProxy, freePort, startRedis } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { RunningNode } from '../service.fixture.ts'
import { startRealService } from '../service.fixture.ts'
import type { RedisSettings } from '../settings/settings.ts'
import { readSettings } from '../settings/settings.ts'

// Counters live in Redis: nodes share them, and Redis may be away at any time.

let redis: RedisServer

beforeAll(async () => {
  redis = await startRedis()
})

afterAll(() => redis.close())

let prefixes = 0

/** Settings of nodes that share limits with each other, and with no other test. */
function sharedLimits(settings: Partial<RedisSettings> = {}): { readonly redis: RedisSettings } {
  prefixes++
  const common = { isCluster: false, sentinel: undefined, leases: false, failureMode: 'open' as const, deadlineMs: 50 }
  return { redis: { ...common, urls: [redis.url], prefix: `test-${prefixes}`, ...settings } }
}

async function startOn(settings: { readonly redis: RedisSettings }): Promise<RunningNode> {
  const node = await startRealService({ ...settings, logLevel: 'error' })
  onTestFinished(() => node.stop())
  return node
}

async function answerOf(node: RunningNode, userId: string, tokens = 1): Promise<CheckAnswer> {
  return (await (await node.check({ userId, resource: '/x', tokens })).json()) as CheckAnswer
}

describe('nodes that share a Redis', () => {
  it('hold one limit together', async () => {
    const settings = sharedLimits()
    const nodes = [await startOn(settings), await startOn(settings)]
    // A limit that nothing comes back to while the test runs.
    const rules = [{ dimension: 'user', algorithm: 'fixed-window', limit: 100, window: '1d' }]
    for (const node of nodes) {
      expect((await node.admin('PUT', '/admin/ratelimits', { body: { resource: '/x', rules } })).status).toBe(200)
    }
    const answers = await Promise.all(Array.from({ length: 300 }, (_, index) => answerOf(nodes[index % 2]!, 'shared')))
    // On a machine that is very busy, some are decided without waiting for Redis any longer.
    const decided = answers.filter(({ failure }) => failure === undefined)
    const allowed = decided.filter((answer) => answer.allowed).length
    expect(allowed).toBeLessThanOrEqual(100)
    expect(allowed + answers.length - decided.length).toBeGreaterThanOrEqual(100)
  })

  it('never make the same id', async () => {
    const settings = sharedLimits()
    const nodes = await Promise.all(Array.from({ length: 3 }, () => startOn(settings)))
    const pages = await Promise.all(nodes.map(({ origin }) => fetch(`${origin}/v1/ids?count=1000`)))
    const ids = await Promise.all(pages.map(async (page) => ((await page.json()) as { ids: string[] }).ids))
    expect(new Set(ids.flat()).size).toBe(3000)
    const numbers = ids
      .map(([id]) => decodeSnowflake(BigInt(id!)))
      .map(({ datacenter, machine }) => datacenter * 32 + machine)
    expect(new Set(numbers).size).toBe(3)
  })
})

describe('Redis unreachable at the start', () => {
  it('starts, decides by failure mode, reports it, and uses Redis as soon as it comes', async () => {
    const away = await startRedis()
    onTestFinished(() => away.close())
    await away.stop()
    const node = await startOn(sharedLimits({ urls: [away.url] }))
    expect((await fetch(`${node.origin}/livez`)).status).toBe(200)
    const ready = await fetch(`${node.origin}/readyz`)
    expect(ready.status).toBe(200)
    expect(await ready.json()).toMatchObject({ status: 'degraded', reasons: [{ code: 'redis-unreachable' }] })
    expect(await answerOf(node, 'u1')).toMatchObject({ allowed: true, failure: { mode: 'open' } })
    expect((await answerOf(node, 'u1')).decisionId).toBeUndefined()
    await away.restart()
    await expect.poll(async () => (await answerOf(node, 'u1')).failure, { timeout: 30_000 }).toBeUndefined()
    await expect.poll(async () => (await answerOf(node, 'u1')).decisionId, { timeout: 30_000 }).toBeDefined()
    const again = await (await fetch(`${node.origin}/readyz`)).json()
    expect(again).toMatchObject({
      status: 'ready',
      reasons: [],
      checks: [{ detail: 'Redis answers' }, {}, { name: 'listener http' }],
    })
    expect(node.errors).toEqual([])
  })

  it('with failure mode "closed" is not ready, and is when Redis comes without any request meanwhile', async () => {
    const away = await startRedis()
    onTestFinished(() => away.close())
    await away.stop()
    const node = await startOn(sharedLimits({ urls: [away.url], failureMode: 'closed' }))
    const ready = async (): Promise<number> => (await fetch(`${node.origin}/readyz`)).status
    expect(await ready()).toBe(503)
    expect(await (await fetch(`${node.origin}/readyz`)).json()).toMatchObject({
      reasons: [{ code: 'redis-unreachable' }],
    })
    expect(await answerOf(node, 'u1')).toMatchObject({ allowed: false, reason: 'unavailable' })
    await away.restart()
    await expect.poll(ready, { timeout: 30_000 }).toBe(200)
  })
})

describe('a wrong REDIS_URL', () => {
  const MODES = [
    ['open', 'every check is allowed'],
    ['closed', 'every check is denied'],
    ['local', 'each node counts on its own'],
  ] as const

  it.each(MODES)('is reported at the start, in /readyz and once in the log (%s)', async (failureMode, meaning) => {
    const port = await freePort()
    const urls = [`redis://user:hunter2@127.0.0.1:${port}`]
    const node = await startRealService({ ...sharedLimits({ urls, failureMode }), logLevel: 'warn' })
    onTestFinished(() => node.stop())
    const reason = {
      code: 'redis-unreachable',
      message: expect.stringMatching(`^Redis at redis://127\\.0\\.0\\.1:${port} .+"${failureMode}".+: ${meaning}`),
    }
    expect(await node.service.reasons()).toEqual([reason])
    const answers = await Promise.all(Array.from({ length: 50 }, () => answerOf(node, 'u1')))
    expect(answers.every(({ failure }) => failure?.mode === failureMode)).toBe(true)
    const ready = await fetch(`${node.origin}/readyz`)
    expect(ready.status).toBe(failureMode === 'closed' ? 503 : 200)
    expect(await ready.json()).toMatchObject({ reasons: [reason] })
    const reported = node.log.filter(({ message }) => message.startsWith('Redis is unavailable'))
    expect(reported).toMatchObject([{ redis: `redis://127.0.0.1:${port}`, failureMode }])
    expect(JSON.stringify(node.log)).not.toContain('hunter2')
  })
})

describe('the store deadline', () => {
  /** Longer than the default deadline, so that only the setting makes a check wait for the reply. */
  const REPLY_DELAY_MS = 150

  async function startBehindSlowNetwork(...flags: string[]): Promise<RunningNode> {
    const proxy = await FaultyProxy.start({ port: redis.port })
    onTestFinished(() => proxy.close())
    const args = ['--redis-url', `redis://127.0.0.1:${proxy.port}`, ...flags]
    const { urls, deadlineMs } = readSettings({ args, environment: {} }).redis!
    const node = await startOn(sharedLimits({ urls, deadlineMs }))
    await expect.poll(async () => (await answerOf(node, 'warm-up')).failure, { timeout: 30_000 }).toBeUndefined()
    proxy.delay(REPLY_DELAY_MS)
    return node
  }

  it('is 50 ms by default: a slower reply is not awaited', async () => {
    const node = await startBehindSlowNetwork()
    expect(await answerOf(node, 'u1')).toMatchObject({ failure: { cause: 'deadline' } })
  })

  it('of --store-deadline-ms reaches the store: a reply that takes three times the default is awaited', async () => {
    const node = await startBehindSlowNetwork('--store-deadline-ms', '10000')
    const answer = await answerOf(node, 'u1')
    expect(answer).toMatchObject({ allowed: true })
    expect(answer.failure).toBeUndefined()
  })
})

describe('leases', () => {
  it('go back when a node stops: another finds every unit that was not used', async () => {
    const settings = sharedLimits({ leases: true })
    const [leaving, staying] = [await startOn(settings), await startOn(settings)]
    let used = 0
    for (let asked = 0; asked < 30; asked++) if ((await answerOf(leaving, 'leased')).allowed) used++
    expect(used).toBe(30)
    const taken = /^ratelimit_lease_units_total\{.*\} [1-9]/m
    expect(await (await fetch(`${leaving.origin}/metrics`)).text()).toMatch(taken)
    await leaving.stop()
    // A unit comes back every 600 ms, which may have happened; nothing is missing.
    expect((await answerOf(staying, 'leased', 70)).allowed).toBe(true)
  })
})
