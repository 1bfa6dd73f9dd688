import type { ChildProcess } from 'node:child_process'
import { execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Limiter } from '@sluice/core'
import { createLimiter } from '@sluice/core'
import type { RedisServer } from '@sluice/testing/servers'
import { startRedis } from '@sluice/testing/servers'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { RedisStore } from '../redis-store.ts'
import { redisStore } from '../redis-store.ts'
import { until } from './fault-trial.test.support.ts'
import type { NodeAnswer, NodeOrder } from './local-mode.test.messages.ts'
import { LOCAL_LIMIT, LOCAL_RULE } from './local-mode.test.messages.ts'

// The bound of docs/decisions/2026-11-17-local-decisions-during-an-outage.md with real processes and a real Redis.

const NODES = 3
const limit = LOCAL_LIMIT
const share = Math.ceil(limit / NODES)

/** A process with a store of its own. */
class Node {
  readonly #child: ChildProcess
  readonly #ended: Promise<never>

  constructor(url: string, initialNodes = 1) {
    const file = fileURLToPath(new URL('./local-mode.test.child.ts', import.meta.url))
    this.#child = fork(file, [url, String(initialNodes)], { execArgv: ['--conditions=source'] })
    this.#ended = once(this.#child, 'exit').then(([code, signal]) =>
      Promise.reject(new Error(`it ended: ${code ?? signal}`)),
    )
    this.#ended.catch(() => undefined)
  }

  async tell(order: NodeOrder): Promise<NodeAnswer> {
    const answered = new Promise<NodeAnswer>((resolve) => this.#child.once('message', resolve))
    this.#child.send(order)
    return await Promise.race([answered, this.#ended])
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#ended.catch(() => undefined)
  }
}

let server: RedisServer
let nodes: Node[]

beforeEach(async () => {
  server = await startRedis()
  nodes = Array.from({ length: NODES }, () => new Node(server.url))
  await known(NODES)
})

afterEach(async () => {
  await Promise.all(nodes.map((node) => node.kill()))
  await server.close()
})

function all(order: NodeOrder): Promise<NodeAnswer[]> {
  return Promise.all(nodes.map((node) => node.tell(order)))
}

function sum(answers: readonly NodeAnswer[]): number {
  return answers.reduce((total, { admitted }) => total + admitted, 0)
}

/** Units that each node admits of a key, asked more often than the limit allows. */
async function drain(key: string): Promise<number[]> {
  return (await all({ do: 'check', key, times: limit + 1 })).map(({ admitted }) => admitted)
}

/** Resolves when every node counts `count` nodes. No checks run meanwhile. */
function known(count: number): Promise<number> {
  return until(`all nodes know of ${count}`, async () => {
    const answers = await all({ do: 'report' })
    return answers.every((answer) => answer.nodes === count)
  })
}

/** Resolves when every node uses Redis. */
function connected(): Promise<number> {
  return until('all nodes use Redis', async () => {
    const answers = await all({ do: 'peek', key: 'any' })
    return answers.every(({ fellBack }) => fellBack === 0)
  })
}

/** Takes units of a key on one node, with Redis. */
async function take(node: Node, key: string, units: number): Promise<void> {
  expect(await node.tell({ do: 'check', key, times: units })).toMatchObject({ admitted: units, fellBack: 0 })
}

/** Looks at Redis beside the nodes. */
async function beside<T>(look: (limiter: Limiter<'async'>, store: RedisStore) => Promise<T>): Promise<T> {
  const store = redisStore(server.url, { deadlineMs: 5000 })
  try {
    return await look(createLimiter({ ...LOCAL_RULE, store }), store)
  } finally {
    await store.close()
  }
}

describe('three processes that share a limit and lose Redis in mid-window', () => {
  it('admit together what was left, rounded up for each', async () => {
    await connected()
    await take(nodes[0]!, 'half', 49)
    await take(nodes[1]!, 'used up', limit)
    await take(nodes[2]!, 'not seen by others', 90)
    for (const key of ['half', 'used up']) expect(sum(await all({ do: 'peek', key }))).toBe(0)
    await server.kill()
    // 51 are left: 17 for each.
    expect(await drain('half')).toEqual([17, 17, 17])
    expect(await drain('used up')).toEqual([0, 0, 0])
    // A new key: a third of the limit for each node, at most limit + nodes - 1 together.
    expect(await drain('fresh')).toEqual([share, share, share])
    // The formula, reached to the unit: limit + (n - 1) + (90 + 90) / n.
    const stale = await drain('not seen by others')
    expect(stale).toEqual([share, share, 4])
    expect(90 + share + share + 4).toBe(limit + NODES - 1 + (90 + 90) / NODES)
    // What is given back can be taken again, here.
    await all({ do: 'refund' })
    expect(await drain('half')).toEqual([17, 17, 17])
  })

  it('admit no more than one share each in several outages of one window', async () => {
    await connected()
    await take(nodes[0]!, 'key', 40)
    await all({ do: 'peek', key: 'key' })
    await server.kill()
    expect(await drain('key')).toEqual([20, 20, 20])
    // Its data is lost: the key starts afresh in Redis, and not here.
    await server.restart()
    await connected()
    await all({ do: 'peek', key: 'key' })
    await server.kill()
    expect(await drain('key')).toEqual([0, 0, 0])
  })

  it('settle here what was charged here, also when Redis is back', async ({ annotate }) => {
    await server.kill()
    expect(await drain('key')).toEqual([share, share, share])
    await server.restart()
    const backMs = await connected()
    await beside(async (limiter) => {
      // Nothing of what was decided without it has reached it.
      expect((await limiter.peek('key')).remaining).toBe(limit)
      await limiter.check('key', { cost: 50 })
    })
    await all({ do: 'refund' })
    await beside(async (limiter) => expect((await limiter.peek('key')).remaining).toBe(limit - 50))
    expect(sum(await all({ do: 'check', key: 'key', times: limit }))).toBe(limit - 50)
    await annotate(`used again ${backMs.toFixed(0)} ms after the restart`)
  })
})

describe('the nodes that share a limit', () => {
  it('count one that is idle', async () => {
    await connected()
    const startedMicros = await serverMicros()
    // Longer than a node may be silent. Only the first node works meanwhile.
    await until('5 seconds have passed', async () => {
      await nodes[0]!.tell({ do: 'check', key: 'busy', times: 1 })
      return (await serverMicros()) - startedMicros > 5_000_000
    })
    expect((await all({ do: 'report' })).map(({ nodes: count }) => count)).toEqual([NODES, NODES, NODES])
    await server.kill()
    expect(await drain('fresh')).toEqual([share, share, share])
  })

  it('still have one share each when one restarts during the outage with the count that was known', async () => {
    await connected()
    await server.kill()
    expect(await drain('key')).toEqual([share, share, share])
    await nodes[0]!.kill()
    nodes[0] = new Node(server.url, NODES)
    // It has forgotten what it admitted: one share more, as stated.
    expect(await drain('key')).toEqual([share, 0, 0])
    await nodes[1]!.kill()
    // Without the count it knows no other node.
    nodes[1] = new Node(server.url)
    expect(await drain('key')).toEqual([0, limit, 0])
  })

  it('count those who join, and no more those who leave or are killed', async ({ annotate }) => {
    nodes.push(new Node(server.url))
    const joinedMs = await known(NODES + 1)
    await nodes.pop()!.tell({ do: 'leave' })
    const leftMs = await known(NODES)
    await nodes.pop()!.kill()
    await until('Redis has forgotten it', async () => (await server.command('ZCARD', 'sluice:1:{nodes}')) === NODES - 1)
    const killedMs = await known(NODES - 1)
    await connected()
    await server.kill()
    expect(await drain('fresh')).toEqual([limit / 2, limit / 2])
    const times = [joinedMs, leftMs, killedMs].map((ms) => `${ms.toFixed(0)} ms`)
    await annotate(
      `counted ${times[0]} after it joined; not any more ${times[1]} after it left, ${times[2]} after it was silent`,
    )
  })

  it('do not keep a process alive with their heartbeats', async () => {
    const script = `
      import { createClient } from 'redis'
      import { redisStore } from ${JSON.stringify(new URL('../redis-store.ts', import.meta.url).href)}
      const client = createClient({ url: ${JSON.stringify(server.url)} })
      await client.connect()
      const store = redisStore(client)
      await store.ready()
      client.unref()
    `
    const args = ['--conditions=source', '--input-type=module', '--eval', script]
    const { stderr } = await promisify(execFile)(process.execPath, args, { cwd: import.meta.dirname, timeout: 30_000 })
    expect(stderr).toBe('')
  })
})

async function serverMicros(): Promise<number> {
  const [seconds, micros] = (await server.command('TIME')) as [string, string]
  return Number(seconds) * 1_000_000 + Number(micros)
}
