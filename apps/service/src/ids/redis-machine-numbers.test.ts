import { systemSleep } from '@sluice/runtime'
import type { RedisServer } from '@sluice/testing/servers'
import { startRedis, startRedisCluster, startSentinel } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { connectRedis } from '../config/redis-connection.ts'
import type { RedisSettings } from '../settings/settings.ts'
import { redisMachineNumbers } from './machine-number-source.ts'

let redis: RedisServer

beforeAll(async () => {
  redis = await startRedis()
})

afterAll(() => redis.close())

const COMMON = {
  isCluster: false,
  sentinel: undefined,
  prefix: 'sluice',
  leases: false,
  failureMode: 'open',
  deadlineMs: 50,
} as const

async function numbersOf(settings: RedisSettings): Promise<ReturnType<typeof redisMachineNumbers>> {
  const link = await connectRedis(settings, systemSleep)
  onTestFinished(() => link.close())
  return redisMachineNumbers(link, settings.prefix)
}

describe('numbers in Redis', () => {
  it('are had by one process at a time, however many ask at once', async () => {
    const nodes = await Promise.all(Array.from({ length: 4 }, () => numbersOf({ ...COMMON, urls: [redis.url] })))
    const taken = await Promise.all(
      nodes.flatMap((node, index) =>
        Array.from({ length: 8 }, (_, thread) =>
          node.take({ name: 'one', count: 32, holder: `${index}/${thread}`, leaseMs: 60_000 }),
        ),
      ),
    )
    expect(taken.toSorted((a, b) => a! - b!)).toEqual(Array.from({ length: 32 }, (_, number) => number))
    expect(await nodes[0]!.take({ name: 'one', count: 32, holder: 'one more', leaseMs: 60_000 })).toBeUndefined()
  })

  it('stay with their holder, and are free again when they are not renewed', async () => {
    const numbers = await numbersOf({ ...COMMON, urls: [redis.url] })
    const ask = (holder: string, leaseMs: number): Promise<number | undefined> =>
      numbers.take({ name: 'two', count: 2, holder, leaseMs })
    expect([await ask('a', 60_000), await ask('b', 60_000), await ask('a', 60_000)]).toEqual([0, 1, 0])
    expect(await ask('c', 60_000)).toBeUndefined()
    await ask('a', 1)
    await expect.poll(() => ask('c', 60_000), { timeout: 30_000 }).toBe(0)
    expect(await ask('a', 60_000)).toBeUndefined()
  })

  it('are those that are wanted where these are free, and no other where no other will do', async () => {
    const numbers = await numbersOf({ ...COMMON, urls: [redis.url] })
    const take = (holder: string, wanted: number, onlyWanted = false): Promise<number | undefined> =>
      numbers.take({ name: 'three', count: 9, holder, leaseMs: 60_000, wanted, onlyWanted })
    expect([await take('a', 7), await take('b', 7), await take('c', 7, true)]).toEqual([7, 0, undefined])
    // A holder keeps its number, whatever it prefers.
    expect([await take('a', 3), await take('a', 7, true), await take('b', 8)]).toEqual([7, 7, 0])
  })

  it('stay with their holder when Redis has lost its data', async () => {
    const server = await startRedis()
    onTestFinished(() => server.close())
    const numbers = await numbersOf({ ...COMMON, urls: [server.url] })
    const take = (holder: string, wanted: number): Promise<number | undefined> =>
      numbers.take({ name: 'machine', count: 9, holder, leaseMs: 60_000, wanted })
    expect([await take('a', 0), await take('b', 1)]).toEqual([0, 1])
    await server.command('FLUSHALL')
    expect([await take('b', 1), await take('a', 0)]).toEqual([1, 0])
  })

  it('of another prefix are others', async () => {
    const [one, other] = await Promise.all([
      numbersOf({ ...COMMON, urls: [redis.url], prefix: 'blue' }),
      numbersOf({ ...COMMON, urls: [redis.url], prefix: 'green' }),
    ])
    const request = { name: 'machine', count: 9, holder: 'x', leaseMs: 1000 }
    expect([await one.take(request), await other.take({ ...request, holder: 'y' })]).toEqual([0, 0])
  })

  it('fail at once while Redis is unreachable', async () => {
    const link = await connectRedis({ ...COMMON, urls: ['redis://127.0.0.1:1'] }, () => Promise.resolve())
    onTestFinished(() => link.close())
    await expect(
      redisMachineNumbers(link, 'sluice').take({ name: 'x', count: 1, holder: 'h', leaseMs: 1000 }),
    ).rejects.toThrow()
  })

  it('can be had from the server that sentinels know', async () => {
    const group = await startSentinel()
    onTestFinished(() => group.close())
    const urls = group.sentinels.map(({ url }) => url)
    const numbers = await numbersOf({ ...COMMON, urls, sentinel: group.masterName })
    const ask = (holder: string): Promise<number | undefined> =>
      numbers.take({ name: 'machine', count: 4, holder, leaseMs: 60_000 })
    expect([await ask('a'), await ask('b'), await ask('a')]).toEqual([0, 1, 0])
  })

  it('can be had from a cluster', async () => {
    const cluster = await startRedisCluster()
    onTestFinished(() => cluster.close())
    const numbers = await numbersOf({ ...COMMON, urls: cluster.urls, isCluster: true })
    const ask = (holder: string): Promise<number | undefined> =>
      numbers.take({ name: 'machine', count: 4, holder, leaseMs: 60_000 })
    expect([await ask('a'), await ask('b'), await ask('a')]).toEqual([0, 1, 0])
  })
})
