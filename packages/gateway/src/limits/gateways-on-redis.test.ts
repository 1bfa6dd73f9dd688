import { type Block, PolicyEngine, type PolicyRule } from '@sluice/core/policy'
import { redisStore } from '@sluice/store-redis'
import { type RedisServer, startRedis } from '@sluice/testing/servers'
import { Agent, request } from 'undici'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { compileGateway } from '../config/compile-gateway.ts'
import type { RouteConfig } from '../config/gateway-config.ts'
import { startGateway, startUpstream } from '../gateway.test.support.ts'

let redis: RedisServer

beforeAll(async () => {
  redis = await startRedis()
})

afterAll(async () => {
  await redis.close()
})

interface Node {
  readonly origin: string
  readonly blocks: Block[]
  readonly engine: PolicyEngine<'async'>
  readonly store: ReturnType<typeof redisStore>
}

interface NodeOptions extends Partial<RouteConfig> {
  /** Whether the store takes units in blocks. */
  readonly leases?: boolean
}

/** A gateway with a store of its own on the same Redis, in front of the same upstream. */
async function startNode(upstream: string, rules: readonly PolicyRule[], options: NodeOptions): Promise<Node> {
  const { leases = false, ...route } = options
  const store = redisStore(redis.url, { deadlineMs: 20_000, leases })
  onTestFinished(() => store.close())
  await store.ready()
  const blocks: Block[] = []
  const engine = new PolicyEngine({ store, ruleSet: { rules }, keepBlock: (block: Block) => void blocks.push(block) })
  const config = compileGateway(
    {
      routes: [{ name: 'all', match: {}, upstream: 'app', ...route }],
      upstreams: { app: { instances: [{ url: upstream }] } },
    },
    { folder: '/' },
  )
  const { origin } = await startGateway({ config, engine })
  return { origin, blocks, engine, store }
}

/** Statuses of requests that go to the gateways in turn, 32 at once. */
async function load(nodes: readonly Node[], count: number, path = '/'): Promise<readonly number[]> {
  const agent = new Agent({ connections: 16 })
  onTestFinished(() => agent.close())
  const statuses: number[] = []
  let sent = 0
  const send = async (): Promise<void> => {
    for (let index = sent++; index < count; index = sent++) {
      const url = `${nodes[index % nodes.length]!.origin}${path}`
      const { statusCode, body } = await request(url, { dispatcher: agent, headers: { 'x-user': 'ada' } })
      await body.dump()
      statuses.push(statusCode)
    }
  }
  await Promise.all(Array.from({ length: 32 }, send))
  return statuses
}

const countOf = (statuses: readonly number[], status: number): number => statuses.filter((one) => one === status).length

describe('two gateways on one Redis', () => {
  it('admit exactly the limit together under load, and the upstream sees no more', async () => {
    const app = await startUpstream()
    const rules: PolicyRule[] = [
      { name: 'user', resource: '*', dimension: 'user', algorithm: 'fixed-window', limit: 137, window: '52w' },
      { name: 'all', resource: '*', dimension: 'global', algorithm: 'fixed-window', limit: 5000, window: '52w' },
    ]
    const nodes = [await startNode(app.url, rules, {}), await startNode(app.url, rules, {})]
    const statuses = await load(nodes, 600)
    expect([countOf(statuses, 200), countOf(statuses, 429), app.received.length]).toEqual([137, 463, 137])
    const [usage] = await nodes[0]!.engine.usage({ user: 'ada' })
    expect(usage?.counters[0]?.used).toBe(137)
  })

  it('admit no more than the limit with leases, and strand at most what they hold', async () => {
    const app = await startUpstream()
    const rules: PolicyRule[] = [
      { name: 'user', resource: '*', dimension: 'user', algorithm: 'fixed-window', limit: 800, window: '52w' },
    ]
    const nodes = [await startNode(app.url, rules, { leases: true }), await startNode(app.url, rules, { leases: true })]
    const statuses = await load(nodes, 1600)
    const admitted = countOf(statuses, 200)
    expect(admitted + countOf(statuses, 429)).toBe(1600)
    expect(admitted).toBeLessThanOrEqual(800)
    // Two leases of the other node, each an eighth of the limit.
    expect(admitted).toBeGreaterThanOrEqual(800 - 200)
    expect(app.received.length).toBe(admitted)
    for (const { store } of nodes) expect(store.stats().leases?.localDecisions).toBeGreaterThan(0)
  })

  it('give back what a route does not charge, so that exactly the charged responses count', async () => {
    const app = await startUpstream((incoming, response) => {
      response.statusCode = incoming.url === '/fails' ? 503 : 200
      response.end()
    })
    const rules: PolicyRule[] = [
      { name: 'charged', resource: '*', dimension: 'user', algorithm: 'fixed-window', limit: 50, window: '52w' },
    ]
    const route = { charge: { refund: ['5xx'] }, retries: { attempts: 0 } }
    const nodes = [await startNode(app.url, rules, route), await startNode(app.url, rules, route)]
    expect(countOf(await load(nodes, 40, '/fails'), 503)).toBe(40)
    await expect.poll(async () => (await nodes[0]!.engine.usage({ user: 'ada' }))[0]?.counters[0]?.used).toBe(0)
    expect(countOf(await load(nodes, 80), 200)).toBe(50)
  })

  it('count responses towards one block together, and both hold it', async () => {
    const app = await startUpstream((_incoming, response) => {
      response.statusCode = 401
      response.end()
    })
    const route = { name: 'login', blockAfter: { responses: 20, within: '1h', blockFor: '1h' } }
    const nodes = [await startNode(app.url, [], route), await startNode(app.url, [], route)]
    for (let call = 0; call < 20; call++) expect(await load([nodes[call % 2]!], 1)).toEqual([401])
    const blocks = (): readonly number[] => nodes.map((node) => node.blocks.length)
    await expect.poll(() => blocks().reduce((sum, count) => sum + count, 0)).toBe(1)
    // The one that was not told lets one more response through, and learns of the block by it.
    const other = nodes[blocks().indexOf(0)]!
    expect(await load([other], 1)).toEqual([401])
    await expect.poll(blocks).toEqual([1, 1])
    expect(await load(nodes, 10)).toEqual(Array.from({ length: 10 }, () => 429))
    expect(app.received.length).toBe(21)
  })
})
