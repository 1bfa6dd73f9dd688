import { openConfigStore } from '@sluice/config-store'
import type { Alert } from '@sluice/contract'
import { systemSleep } from '@sluice/runtime'
import { startPostgres, startRedis } from '@sluice/testing/servers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Receiver, status } from '../alerts/alerts.test.support.ts'
import type { ClusterState } from '../alerts/cluster-state.ts'
import { connectRedis, redisDocuments } from '../config/redis-connection.ts'
import type { RunningNode } from '../service.fixture.ts'
import { startRealService } from '../service.fixture.ts'
import type { RedisSettings, Settings } from '../settings/settings.ts'

// Two nodes, real servers, and what a receiver of alerts gets.

const ALWAYS = { threshold: 0, forSeconds: 0, windowSeconds: 60, leastSamples: 1 }

async function startNodes(receiver: Receiver, settings: Partial<Settings>): Promise<readonly RunningNode[]> {
  const options = { 'denial-rate': ALWAYS, 'store-errors': ALWAYS, 'store-latency': { enabled: false } }
  const alerts = { options, webhooks: [receiver.origin] }
  const nodes: RunningNode[] = []
  for (let number = 0; number < 2; number++) {
    const node = await startRealService({ ...settings, alerts })
    onTestFinished(() => node.stop())
    nodes.push(node)
  }
  return nodes
}

async function startRedisFor(): Promise<{ settings: RedisSettings; stop: () => Promise<void> }> {
  const server = await startRedis()
  onTestFinished(() => server.close())
  const defaults = {
    isCluster: false,
    sentinel: undefined,
    prefix: 'sluice',
    leases: false,
    failureMode: 'open',
    deadlineMs: 50,
  } as const
  return { settings: { ...defaults, urls: [server.url] }, stop: () => server.close() }
}

/** Has a check of this node denied. */
async function deny(node: RunningNode, adminKey: string): Promise<void> {
  const body = { dimension: 'user', entity: 'u1', duration: '1h' }
  await node.admin('PUT', '/admin/blocks', { body, key: adminKey })
  expect((await node.check({ userId: 'u1', resource: '/orders' })).status).toBe(429)
}

async function alertsOf(node: RunningNode, key: string): Promise<readonly Alert[]> {
  const page = (await (await node.admin('GET', '/admin/alerts', { key })).json()) as {
    readonly items: readonly Alert[]
  }
  return page.items
}

/** Messages about a rule, as type and alert. */
function toldOf({ posts }: Receiver, rule: string): readonly string[] {
  return posts
    .map(({ body }) => JSON.parse(body) as { readonly type: string; readonly data: Alert })
    .filter(({ data }) => data.rule === rule)
    .map(({ type, data }) => `${type} ${data.scope}`)
}

/** How many nodes have entered themselves for a rule. */
function holdersIn(body: string | undefined, rule: 'denial-rate' | 'store-errors'): number {
  return Object.keys((JSON.parse(body ?? '{"holders":{}}') as ClusterState).holders[rule] ?? {}).length
}

const SOON = { timeout: 20_000 }

describe('two nodes that see the same', () => {
  it('tell it once, coordinated through PostgreSQL, also when Redis is gone', async () => {
    const postgres = await startPostgres()
    onTestFinished(() => postgres.close())
    const { url } = await postgres.createDatabase()
    const redis = await startRedisFor()
    const receiver = await Receiver.start(status(200))
    const nodes = await startNodes(receiver, { databaseUrl: url, redis: redis.settings })
    const key = nodes[0]!.adminKey!
    const config = await openConfigStore(url)
    onTestFinished(() => config.close())
    const holders = async (rule: 'denial-rate' | 'store-errors'): Promise<number> =>
      holdersIn((await config.documents.get('alerts-2:sluice'))?.body, rule)

    // Only one node denies; both evaluate the sum of their checks.
    await deny(nodes[0]!, key)
    await expect.poll(() => holders('denial-rate'), SOON).toBe(2)
    await receiver.untilPosts(1)
    expect(toldOf(receiver, 'denial-rate')).toEqual(['alert.firing cluster'])
    const one = await alertsOf(nodes[0]!, key)
    expect(one).toMatchObject([{ rule: 'denial-rate', scope: 'cluster', state: 'firing' }])
    await expect.poll(() => alertsOf(nodes[1]!, key), SOON).toMatchObject([{ id: one[0]!.id }])

    await redis.stop()
    for (const node of nodes) await node.check({ userId: 'u2', resource: '/orders' })
    await expect.poll(() => holders('store-errors'), SOON).toBe(2)
    await expect.poll(() => toldOf(receiver, 'store-errors'), SOON).toEqual(['alert.firing cluster'])
    expect(toldOf(receiver, 'denial-rate')).toEqual(['alert.firing cluster'])
  })

  it('tell it once, coordinated through Redis alone', async () => {
    const redis = await startRedisFor()
    const receiver = await Receiver.start(status(200))
    const nodes = await startNodes(receiver, { redis: redis.settings })
    const link = await connectRedis(redis.settings, systemSleep)
    onTestFinished(() => link.close())
    const documents = redisDocuments(link, redis.settings.prefix)
    await deny(nodes[1]!, nodes[1]!.adminKey!)
    await expect
      .poll(async () => holdersIn((await documents.get('alerts-2:sluice'))?.body, 'denial-rate'), SOON)
      .toBe(2)
    await receiver.untilPosts(1)
    expect(toldOf(receiver, 'denial-rate')).toEqual(['alert.firing cluster'])
    const [first] = await alertsOf(nodes[0]!, nodes[0]!.adminKey!)
    expect(first!.summary).toContain('100 % of checks in the last 60 seconds were denied')
    const acknowledged = await nodes[1]!.admin('POST', `/admin/alerts/${first!.id}/acknowledge`, {
      body: { note: 'n' },
    })
    expect(await acknowledged.json()).toMatchObject({ id: first!.id, acknowledgedBy: 'first' })
    await expect
      .poll(() => alertsOf(nodes[0]!, nodes[0]!.adminKey!), SOON)
      .toMatchObject([{ acknowledgedBy: 'first', acknowledgedNote: 'n' }])
  })
})

it('nodes that share only a database tell the denial rate once', async () => {
  const postgres = await startPostgres()
  onTestFinished(() => postgres.close())
  const { url } = await postgres.createDatabase()
  const receiver = await Receiver.start(status(200))
  const nodes = await startNodes(receiver, { databaseUrl: url })
  const key = nodes[0]!.adminKey!
  await deny(nodes[0]!, key)
  await expect.poll(() => alertsOf(nodes[1]!, key), SOON).toMatchObject([{ rule: 'denial-rate', scope: 'cluster' }])
  await receiver.untilPosts(1)
  expect(toldOf(receiver, 'denial-rate')).toEqual(['alert.firing cluster'])
})

it('a node that shares nothing tells for itself', async () => {
  const receiver = await Receiver.start(status(200))
  const alerts = { options: { 'denial-rate': ALWAYS }, webhooks: [receiver.origin] }
  const node = await startRealService({ alerts })
  onTestFinished(() => node.stop())
  await deny(node, node.adminKey!)
  await receiver.untilPosts(1)
  expect(toldOf(receiver, 'denial-rate')).toEqual(['alert.firing node'])
})
