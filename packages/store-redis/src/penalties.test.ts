import { compileRule, createBatch, createItem } from '@sluice/core/internal'
import type { Block, RuleSet } from '@sluice/core/policy'
import { PolicyEngine } from '@sluice/core/policy'
import { FakeClock } from '@sluice/testing'
import type { RedisServer } from '@sluice/testing/servers'
import { startRedis } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { redisStore } from './redis-store.ts'

const [SETTLED] = compileRule('settled', { limit: 1, window: '1m' })
const BLOCK_MS = 60_000
const REQUEST = { resource: '/orders', user: 'ann' } as const

let server: RedisServer
let prefixes = 0

beforeAll(async () => {
  server = await startRedis()
})

afterAll(() => server.close())

function ruleSetOf(after: number): RuleSet {
  const penalty = { after, within: '1m', block: '1m' } as const
  return { rules: [{ name: 'orders', resource: '*', dimension: 'user', limit: 1, window: '20s', penalty }] }
}

interface Node {
  readonly engine: PolicyEngine<'async'>
  /** The blocks that this node made. */
  readonly made: Block[]
  check(): Promise<string>
  /** Waits until what the node has sent is answered, and what followed from that. */
  settled(): Promise<void>
}

/** Nodes with one Redis and one clock, by which their deny caches go too. */
async function nodes(count: number, ruleSet: RuleSet, options: { denyCache?: false; leases?: boolean } = {}) {
  const clock = new FakeClock()
  const prefix = `penalties-${prefixes++}`
  const monotonicMs = (): number => clock.nowMicros() / 1000
  const made = Array.from({ length: count }, async (): Promise<Node> => {
    const store = redisStore(server.url, { prefix, clock, deadlineMs: 5000, monotonicMs, ...options })
    onTestFinished(() => store.close())
    await store.ready()
    const blocks: Block[] = []
    const engine = new PolicyEngine({ store, clock, ruleSet, keepBlock: (block) => void blocks.push(block) })
    return {
      engine,
      made: blocks,
      async check() {
        const { allowed, reason, retryAfterMs } = await engine.check(REQUEST)
        return allowed ? 'allowed' : `${reason} ${retryAfterMs}`
      },
      async settled() {
        for (let call = 0; call < 5; call++) await store.decide(createBatch([createItem(SETTLED!, 'idle', 0)]))
      },
    }
  })
  return { nodes: await Promise.all(made), clock }
}

describe('one violation on Redis', () => {
  it.each([
    ['after 1 denial, 4 in flight', 1, 4, {}],
    ['after 1 denial, 100 in flight', 1, 100, {}],
    ['after 20 denials, 60 in flight', 20, 60, {}],
    ['after 20 denials, 60 in flight, without a deny cache', 20, 60, { denyCache: false }],
    ['after 200 denials, 600 in flight, with leases', 200, 600, { leases: true }],
  ] as const)('causes one block: %s', async (_title, after, inFlight, options) => {
    const { nodes: all, clock } = await nodes(3, ruleSetOf(after), options)
    for (let violation = 0; violation < 3; violation++) {
      const previous = all.flatMap((node) => node.made)
      expect(await all[0]!.check()).toBe('allowed')
      await Promise.all(Array.from({ length: inFlight }, (_, call) => all[call % 3]!.check()))
      for (const node of all) await node.settled()
      // Again on each node: also answers that a deny cache gave.
      for (const node of all) await Promise.all(Array.from({ length: inFlight }, () => node.check()))
      for (const node of all) await node.settled()
      const made = all.flatMap((node) => node.made)
      expect(made).toHaveLength(previous.length + 1)
      const [block] = made.filter((one) => !previous.includes(one))
      // Nodes that hear nothing of each other double only their own blocks.
      const lengthMs = BLOCK_MS * 2 ** (block!.strikes - 1)
      expect(block!.until).toBe(clock.nowMicros() / 1000 + lengthMs)
      for (const node of all) expect(await node.check()).toBe(`blocked ${lengthMs}`)
      clock.advance(lengthMs)
    }
  })
})

describe('a block on Redis', () => {
  it('is in the answers of its node at once, and of others after one denial', async () => {
    const { nodes: all } = await nodes(2, ruleSetOf(1))
    expect(await all[0]!.check()).toBe('allowed')
    // Both are denied before either has blocked, and the deny caches of both know it.
    expect(await Promise.all(all.map((node) => node.check()))).toEqual(['limit 20000', 'limit 20000'])
    for (const node of all) await node.settled()
    const [here, there] = all.toSorted((one, other) => other.made.length - one.made.length) as [Node, Node]
    expect(await here.check()).toBe(`blocked ${BLOCK_MS}`)
    // Maybe from the deny cache, which learns of the block by the count of this denial.
    await there.check()
    await there.settled()
    expect(await there.check()).toBe(`blocked ${BLOCK_MS}`)
    expect(there.made).toEqual([])
  })
})
