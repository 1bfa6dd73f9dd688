import { memoryStore, sharedMemoryStore } from '@sluice/core'
import { type RedisStoreOptions, redisStore } from '@sluice/store-redis'
import { FakeClock } from '@sluice/testing'
import { type RedisServer, startRedis, startRedisCluster } from '@sluice/testing/servers'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { type SluiceRateLimitStore, type SluiceStoreOptions, sluiceStore } from './express-rate-limit.ts'

// What the tests that express-rate-limit and rate-limit-redis run on their own stores expect, on ours.

const WINDOW_MS = 60_000

let redis: RedisServer
let cluster: Awaited<ReturnType<typeof startRedisCluster>>

beforeAll(async () => {
  ;[redis, cluster] = await Promise.all([startRedis(), startRedisCluster({ masters: 3, replicasPerMaster: 0 })])
}, 60_000)

afterAll(async () => {
  await Promise.all([redis.close(), cluster.close()])
})

let prefixes = 0

/** A Redis store that decides at the time of `clock`, under a prefix of its own. */
async function openRedis(url: string | readonly string[], clock: FakeClock, options: RedisStoreOptions = {}) {
  const store = redisStore(url, { clock, deadlineMs: 20_000, prefix: `suite-${prefixes++}`, ...options })
  onTestFinished(() => store.close())
  await store.ready(20_000)
  return store
}

/** Makes the options of a store whose time is that of `clock`. */
type Making = (clock: FakeClock) => SluiceStoreOptions | Promise<SluiceStoreOptions>

const STORES: readonly { readonly name: string; readonly make: Making; readonly resetsAll: boolean }[] = [
  { name: 'a store of its own', make: (clock) => ({ clock }), resetsAll: true },
  { name: 'a memory store', make: (clock) => ({ clock, store: memoryStore({ clock }) }), resetsAll: false },
  {
    name: 'a shared memory store',
    make: (clock) => ({ clock, store: sharedMemoryStore({ clock, maxKeys: 64 }) }),
    resetsAll: false,
  },
  { name: 'Redis', make: async (clock) => ({ clock, store: await openRedis(redis.url, clock) }), resetsAll: true },
  {
    name: 'Redis with leases',
    make: async (clock) => ({ clock, store: await openRedis(redis.url, clock, { leases: true }) }),
    resetsAll: true,
  },
  {
    name: 'a cluster',
    make: async (clock) => ({ clock, store: await openRedis(cluster.urls, clock, { cluster: true }) }),
    resetsAll: true,
  },
]

describe.each(STORES)('a store for express-rate-limit on $name', ({ make, resetsAll }) => {
  let clock: FakeClock
  let store: SluiceRateLimitStore

  beforeEach(async () => {
    clock = new FakeClock()
    store = sluiceStore(await make(clock))
    return () => store.shutdown()
  })

  const hits = async (key: string): Promise<number> => (await store.increment(key)).totalHits

  it('counts 1 for the first hit, and one more for each', async () => {
    store.init({ windowMs: WINDOW_MS })
    expect([await hits('key'), await hits('key'), await hits('key')]).toEqual([1, 2, 3])
    expect(await hits('other')).toBe(1)
  })

  it('says when the window ends', async () => {
    store.init({ windowMs: WINDOW_MS })
    const { resetTime } = await store.increment('key')
    expect(resetTime).toBeInstanceOf(Date)
    const waitMs = resetTime!.getTime() - clock.nowMicros() / 1000
    expect(waitMs).toBeGreaterThan(0)
    expect(waitMs).toBeLessThanOrEqual(WINDOW_MS)
  })

  it('takes hits back, never below 0', async () => {
    store.init({ windowMs: WINDOW_MS })
    await store.increment('key')
    await store.increment('key')
    await store.decrement('key')
    expect(await hits('key')).toBe(2)
    for (let time = 0; time < 3; time++) await store.decrement('key')
    expect(await store.get('key')).toMatchObject({ totalHits: 0, resetTime: expect.any(Date) })
    expect(await hits('key')).toBe(1)
  })

  it('shows the hits of a key, 0 when all were taken back, undefined when there were none', async () => {
    store.init({ windowMs: WINDOW_MS })
    expect(await store.get('key')).toBeUndefined()
    const { resetTime } = await store.increment('key')
    expect(await store.get('key')).toEqual({ totalHits: 1, resetTime })
    await store.decrement('key')
    expect(await store.get('key')).toEqual({ totalHits: 0, resetTime })
    expect(await store.get('other')).toBeUndefined()
  })

  it('forgets one key', async () => {
    store.init({ windowMs: WINDOW_MS })
    await store.increment('key')
    await store.increment('other')
    await store.resetKey('key')
    expect(await store.get('key')).toBeUndefined()
    expect([await hits('key'), await hits('other')]).toEqual([1, 2])
  })

  it('forgets one key before init, and counts afterwards', async () => {
    await store.resetKey('key')
    store.init({ windowMs: WINDOW_MS })
    expect(await hits('key')).toBe(1)
  })

  it('forgets all keys, where it can', async () => {
    expect(typeof store.resetAll).toBe(resetsAll ? 'function' : 'undefined')
    await store.resetAll?.()
    store.init({ windowMs: WINDOW_MS })
    for (const key of ['one', 'two', '::1', '{a}b']) expect(await hits(key)).toBe(1)
    await store.resetAll?.()
    for (const key of ['one', 'two', '::1', '{a}b']) expect(await hits(key)).toBe(resetsAll ? 1 : 2)
  })

  it('starts again when the window is over', async () => {
    store.init({ windowMs: 50 })
    await store.increment('one')
    await store.increment('two')
    clock.advance(60)
    expect(await store.get('one')).toBeUndefined()
    expect([await hits('one'), await hits('two')]).toEqual([1, 1])
  })

  it('may get its window again, and continues to count', async () => {
    store.init({ windowMs: WINDOW_MS })
    await store.increment('key')
    store.init({ windowMs: WINDOW_MS })
    expect(await hits('key')).toBe(2)
  })

  it('may be shut down more than once', async () => {
    store.init({ windowMs: WINDOW_MS })
    await store.shutdown()
    await store.shutdown()
  })
})

it('forgets the hits of its own prefix only', async () => {
  const clock = new FakeClock()
  const shared = await openRedis(redis.url, clock)
  const [login, api] = ['login', 'api'].map((prefix) => sluiceStore({ store: shared, prefix, clock }))
  for (const store of [login!, api!]) {
    store.init({ windowMs: WINDOW_MS })
    for (let key = 0; key < 30; key++) await store.increment(`key-${key}`)
  }
  await login!.resetAll?.()
  for (let key = 0; key < 30; key++) {
    expect(await login!.get(`key-${key}`)).toBeUndefined()
    expect(await api!.get(`key-${key}`)).toMatchObject({ totalHits: 1 })
  }
})
