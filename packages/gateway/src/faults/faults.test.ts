import type { RedisServer } from '@sluice/testing/servers'
import { startRedis } from '@sluice/testing/servers'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { idsWith, Load, type NodeOrder, TestNode } from './node.test.support.ts'

// Real processes that end by `kill -9` under load, and a real Redis.

const CONCURRENCY = 32

let redis: RedisServer

beforeEach(async () => {
  redis = await startRedis()
})

afterEach(() => redis.close())

type GatewayOrder = Partial<Extract<NodeOrder, { kind: 'gateway' }>>

/** Two gateways on one Redis, in front of some upstream instances. */
async function startCluster(instances: number, order: GatewayOrder) {
  const upstreams = await Promise.all(
    Array.from({ length: instances }, () => TestNode.start({ kind: 'upstream', delayMs: 5 })),
  )
  const urls = upstreams.map(({ origin }) => origin)
  const full = {
    kind: 'gateway',
    upstreams: urls,
    redisUrl: redis.url,
    limit: 1,
    failureMode: 'closed',
    ...order,
  } as const
  const gateways = await Promise.all([TestNode.start(full), TestNode.start(full)])
  return { upstreams, gateways, origins: gateways.map(({ origin }) => origin) }
}

describe('two gateways on one Redis', () => {
  it('admit exactly the limit together', async () => {
    const { upstreams, origins } = await startCluster(2, { limit: 500 })
    const answered = await new Load({ origins, requests: 1000, concurrency: CONCURRENCY }).run()
    expect(idsWith(answered, 200)).toHaveLength(500)
    expect(idsWith(answered, 429)).toHaveLength(500)
    const received = upstreams.flatMap((upstream) => upstream.received)
    expect(received.toSorted()).toEqual(idsWith(answered, 200).toSorted())
    for (const origin of origins) {
      const share = answered.filter((answer) => answer.origin === origin && answer.status === 200).length
      expect(share).toBeGreaterThan(0)
    }
  })
})

describe('when an upstream instance dies', () => {
  it('requests without a body are sent to the other; of the others only those in flight on it fail', async () => {
    const { upstreams, origins } = await startCluster(2, { limit: 1_000_000 })
    const [dying, other] = upstreams as [TestNode, TestNode]
    let sentAtDeath = 0
    let killed: Promise<void> | undefined
    const load = new Load({
      origins,
      requests: 1000,
      concurrency: CONCURRENCY,
      methodOf: (index) => (index % 2 === 0 ? 'GET' : 'POST'),
      onProgress: ({ answered: ended }) => {
        if (killed !== undefined || ended.length < 400) return undefined
        killed = dying.kill().then(() => {
          sentAtDeath = ended.length + CONCURRENCY
        })
        return undefined
      },
    })
    const answered = await load.run()
    await killed
    // Nothing but a 502 for requests with a body that were on their way to the dead process.
    const failed = answered.filter(({ status }) => status !== 200)
    expect(failed.filter(({ method, status }) => method === 'GET' || status !== 502)).toEqual([])
    expect(failed.length).toBeLessThanOrEqual(CONCURRENCY)
    expect(failed.filter(({ id }) => Number(id) >= sentAtDeath + CONCURRENCY)).toEqual([])
    // No request with a body was sent twice.
    const isPost = (id: string): boolean => Number(id) % 2 === 1
    const executed = [...dying.received, ...other.received].filter(isPost)
    expect(new Set(executed).size).toBe(executed.length)
    expect(idsWith(answered, 200).filter((id) => isPost(id) && !executed.includes(id))).toEqual([])
    expect(failed.filter(({ id }) => other.received.includes(id))).toEqual([])
    expect(dying.received.length).toBeGreaterThan(150)
    expect(other.received.length).toBeGreaterThan(600)
  })
})

describe('when one gateway process dies', () => {
  it('only its requests in flight fail, and the limit holds over both', async () => {
    const limit = 700
    const { upstreams, gateways, origins } = await startCluster(1, { limit })
    let killed: Promise<void> | undefined
    let lost: string[] = []
    const load = new Load({
      origins,
      requests: 1000,
      concurrency: CONCURRENCY,
      onProgress: ({ answered: ended, inFlight, origins: alive }) => {
        if (killed !== undefined || ended.length < 400) return undefined
        const [dying] = alive.splice(0, 1)
        lost = [...inFlight.values()].filter(({ origin }) => origin === dying).map(({ id }) => id)
        killed = gateways[0]!.kill()
        return undefined
      },
    })
    const answered = await load.run()
    await killed
    const failed = idsWith(answered, 0)
    expect(failed.filter((id) => !lost.includes(id))).toEqual([])
    expect(answered.filter(({ status }) => status !== 200 && status !== 429 && status !== 0)).toEqual([])
    // Units that the dead process had taken stay charged: at most its requests in flight are missing.
    const admitted = idsWith(answered, 200).length
    expect(admitted).toBeLessThanOrEqual(limit)
    expect(admitted).toBeGreaterThanOrEqual(limit - failed.length)
    expect(new Set(upstreams[0]!.received).size).toBeLessThanOrEqual(limit)
  })
})

describe('when Redis dies', () => {
  it('nothing is admitted that Redis has not decided, in failure mode closed', async () => {
    const { upstreams, origins } = await startCluster(1, { limit: 1_000_000 })
    let killing: Promise<void> | undefined
    let isDead = false
    const late = new Set<string>()
    const load = new Load({
      origins,
      requests: 800,
      concurrency: CONCURRENCY,
      onProgress: ({ answered: ended }) => {
        if (ended.length < 400) return undefined
        killing ??= redis.kill().then(() => {
          isDead = true
        })
        // The rest is sent after Redis has ended.
        return isDead ? undefined : killing
      },
    })
    const answered = await load.run()
    for (const { id } of answered) if (Number(id) >= 400 + 2 * CONCURRENCY) late.add(id)
    const admittedLate = answered.filter(({ id, status }) => late.has(id) && status === 200)
    expect(admittedLate).toEqual([])
    expect(upstreams[0]!.received.filter((id) => late.has(id))).toEqual([])
    expect(new Set(answered.filter(({ id }) => late.has(id)).map(({ status }) => status))).toEqual(new Set([503]))
    expect(idsWith(answered, 200).length).toBeGreaterThanOrEqual(400)
  })

  it('gateways go on with their shares of what remained, in failure mode local', async () => {
    const limit = 600
    const { upstreams, gateways, origins } = await startCluster(1, { limit, failureMode: 'local' })
    await expect
      .poll(() => Promise.all(gateways.map((gateway) => gateway.countNodes())), { timeout: 10_000 })
      .toEqual([2, 2])
    let killing: Promise<void> | undefined
    let admittedBefore = 0
    const load = new Load({
      origins,
      requests: 1000,
      concurrency: CONCURRENCY,
      onProgress: ({ answered: ended }) => {
        if (killing !== undefined || ended.length < 200) return undefined
        admittedBefore = idsWith(ended, 200).length
        killing = redis.kill()
        return undefined
      },
    })
    const answered = await load.run()
    await killing
    const admitted = idsWith(answered, 200).length
    // limit + (n - 1) + (u_1 + u_2) / 2: what the other gateway took since a gateway last saw the key is in flight.
    expect(admitted).toBeLessThanOrEqual(limit + 1 + CONCURRENCY)
    expect(admitted).toBeGreaterThan(limit - CONCURRENCY)
    expect(admitted - admittedBefore).toBeGreaterThan(limit / 2)
    expect(upstreams[0]!.received).toHaveLength(admitted)
    expect(idsWith(answered, 429)).toHaveLength(1000 - admitted)
  })
})
