import type { ChildProcess } from 'node:child_process'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Limiter } from '@sluice/core'
import { createLimiter } from '@sluice/core'
import type { RedisServer } from '@sluice/testing/servers'
import { startRedis } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RedisStore } from '../redis-store.ts'
import { redisStore } from '../redis-store.ts'
import { until } from './fault-trial.test.support.ts'
import type { NodeAnswer, NodeOrder } from './local-mode.test.messages.ts'
import { LOCAL_LIMIT, LOCAL_RULE } from './local-mode.test.messages.ts'

const NODES = 3
const limit = LOCAL_LIMIT

/** A process with a store of its own. */
class Node {
  readonly #child: ChildProcess
  readonly #ended: Promise<never>

  constructor(url: string) {
    const file = fileURLToPath(new URL('./local-mode.test.child.ts', import.meta.url))
    this.#child = fork(file, [url], { execArgv: ['--conditions=source'] })
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

beforeAll(async () => {
  server = await startRedis()
  nodes = Array.from({ length: NODES }, () => new Node(server.url))
})

afterAll(async () => {
  await Promise.all(nodes.map((node) => node.kill()))
  await server.close()
})

function all(order: NodeOrder): Promise<NodeAnswer[]> {
  return Promise.all(nodes.map((node) => node.tell(order)))
}

function sum(answers: readonly NodeAnswer[]): number {
  return answers.reduce((total, { admitted }) => total + admitted, 0)
}

/** Resolves when every node asks Redis and knows of so many. */
function known(count: number): Promise<number> {
  return until(`all nodes know of ${count}`, async () => {
    const answers = await all({ do: 'check', key: 'beat', times: 1 })
    return answers.every((answer) => answer.fellBack === 0 && answer.nodes === count)
  })
}

/** Looks at Redis beside the nodes. It only peeks, so it is a node for a moment each time: it leaves at once. */
async function beside<T>(look: (limiter: Limiter<'async'>, store: RedisStore) => Promise<T>): Promise<T> {
  const store = redisStore(server.url, { deadlineMs: 5000 })
  try {
    return await look(createLimiter({ ...LOCAL_RULE, store }), store)
  } finally {
    await store.close()
  }
}

describe('three processes that share a limit and lose Redis', () => {
  it('admit together what the limit gives, rounded up for each', async ({ annotate }) => {
    const knownMs = await known(NODES)
    // One key is used up before, the other is fresh.
    const before = sum(await all({ do: 'check', key: 'used', times: limit }))
    expect(before).toBe(limit)
    await server.kill()
    const fresh = await all({ do: 'check', key: 'fresh', times: limit })
    // What is given back can be taken again, here.
    await all({ do: 'refund' })
    const again = await all({ do: 'check', key: 'fresh', times: limit })
    expect(sum(again)).toBe(sum(fresh))
    const used = await all({ do: 'check', key: 'used', times: limit })
    for (const answer of [...fresh, ...used]) expect(answer).toMatchObject({ fellBack: limit, nodes: NODES })
    // Each has a third of 100, rounded up: the stated bound, used to the full.
    expect(sum(fresh)).toBe(limit + NODES - 1)
    expect(before + sum(used)).toBe(2 * limit + NODES - 1)
    await annotate(
      `local: ${NODES} nodes knew each other after ${knownMs.toFixed(0)} ms; admitted ${sum(fresh)} (bound ${limit + NODES - 1}), ` +
        `around the outage ${before + sum(used)} (bound ${2 * limit + NODES - 1})`,
    )
  })

  it('settle here what was charged here, also when Redis is back', async ({ annotate }) => {
    await server.restart()
    const backMs = await until('all use Redis again', async () => {
      const answers = await all({ do: 'check', key: 'beat', times: 1 })
      return answers.every(({ fellBack }) => fellBack === 0)
    })
    await beside(async (limiter) => {
      // Nothing of what was decided without it has reached it.
      expect((await limiter.peek('fresh')).remaining).toBe(limit)
      expect((await limiter.peek('used')).remaining).toBe(limit)
      await limiter.check('fresh', { cost: 50 })
    })
    await all({ do: 'refund' })
    await beside(async (limiter) => expect((await limiter.peek('fresh')).remaining).toBe(limit - 50))
    expect(sum(await all({ do: 'check', key: 'fresh', times: limit }))).toBe(limit - 50)
    expect(backMs).toBeLessThan(4000)
    await annotate(`used again ${backMs.toFixed(0)} ms after the restart (aim: 2000)`)
  })

  it('count no more who has left, or was killed', async ({ annotate }) => {
    await known(NODES)
    await nodes.pop()!.tell({ do: 'leave' })
    const leftMs = await known(NODES - 1)
    await nodes.pop()!.kill()
    const killedMs = await known(NODES - 2)
    await annotate(
      `gone from the count: after ${leftMs.toFixed(0)} ms when left, ${killedMs.toFixed(0)} ms when killed`,
    )
  })
})
