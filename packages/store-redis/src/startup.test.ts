import { createLimiter, type Limiter, systemTimers } from '@sluice/core'
import { systemMonotonicMs } from '@sluice/core/internal'
import { FakeClock, FakeTimers, START_MICROS } from '@sluice/testing'
import { FaultyProxy, freePort, type RedisServer, startRedis, startRedisCluster } from '@sluice/testing/servers'
import { GlideClient, Logger } from '@valkey/valkey-glide'
import { Cluster, Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type RedisStore, type RedisStoreOptions, redisStore } from './redis-store.ts'
import type { ServerWarning } from './server-warnings.ts'
import { runAfterIo } from './system/event-loop.ts'
import { NEEDED_COMMANDS } from './wire/script-runner.ts'
import { DECIDE } from './wire/scripts.ts'

Logger.init('off')

let server: RedisServer

beforeAll(async () => {
  server = await startRedis({ aclUser: { name: 'admin', password: 'all' } })
})

afterAll(() => server.close())

const adminUrl = (): string => `redis://admin:all@127.0.0.1:${server.port}`

function opened(
  target: unknown,
  options: RedisStoreOptions = {},
): { readonly store: RedisStore; readonly limiter: Limiter<'async'> } {
  const store = redisStore(target, { denyCache: false, ...options })
  onTestFinished(() => store.close())
  return {
    store,
    limiter: createLimiter({ name: 'rule', algorithm: 'fixed-window', limit: 100, window: '52w', store }),
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void systemTimers.schedule(ms, resolve))
}

/** The first client of a process to use a URL of one server, with time that the test moves. */
function openedInFakeTime(target: unknown, options: RedisStoreOptions = {}) {
  const clock = new FakeClock()
  const timers = new FakeTimers(clock)
  const monotonicMs = (): number => (clock.nowMicros() - START_MICROS) / 1000
  return { timers, ...opened(target, { ...options, timers, monotonicMs, failureMode: 'closed' }) }
}

describe('the first checks', () => {
  it('wait for a server that comes later, and are decided by it', async () => {
    const port = await freePort()
    const { store, limiter } = opened(`redis://127.0.0.1:${port}`, { connectTimeoutMs: 60_000 })
    const answers = Promise.all(Array.from({ length: 20 }, () => limiter.check('key')))
    await pause(200)
    expect(store.stats().calls).toMatchObject({ asked: 0, pending: 20 })
    const late = await startRedis({ port })
    onTestFinished(() => late.close())
    const remaining = (await answers).map((decision) => decision.remaining)
    expect(remaining).toEqual(Array.from({ length: 20 }, (_, index) => 99 - index))
    expect(store.stats()).toMatchObject({ breaker: 'closed', calls: { failed: 0 } })
  })

  it('wait for 2 seconds by default, once; then their failure mode answers', async () => {
    const { limiter, timers } = openedInFakeTime(`redis://127.0.0.1:${await freePort()}`)
    let answered = 0
    const answer = limiter.check('key').finally(() => answered++)
    await new Promise<void>((resolve) => void runAfterIo(resolve))
    await timers.advance(1990)
    expect(answered).toBe(0)
    await timers.advance(20)
    expect(await answer).toMatchObject({ reason: 'unavailable', failure: { cause: 'unreachable', charged: 'no' } })
    // No time passes any more, so a check that waited for anything would not be answered.
    expect(await limiter.check('key')).toMatchObject({ reason: 'unavailable', failure: { cause: 'unreachable' } })
  })

  it('do not wait with connectTimeoutMs: 0', async () => {
    const { limiter } = openedInFakeTime(`redis://127.0.0.1:${await freePort()}`, { connectTimeoutMs: 0 })
    expect(await limiter.check('key')).toMatchObject({ reason: 'unavailable', failure: { cause: 'unreachable' } })
  })

  it('do not wait for a server that rejects the connection', async () => {
    const { limiter } = opened(`redis://admin:wrong@127.0.0.1:${server.port}`, { connectTimeoutMs: 60_000 })
    const { failure } = await limiter.check('key')
    expect(failure).toMatchObject({ cause: 'refused', charged: 'no', detail: expect.stringContaining('WRONGPASS') })
  })

  it('are decided by Redis although the thread was blocked for longer than they wait', async () => {
    const { limiter } = opened(adminUrl(), { prefix: 'blocked', connectTimeoutMs: 1000, deadlineMs: 5000 })
    const answer = limiter.check('key')
    for (const startedMs = systemMonotonicMs(); systemMonotonicMs() - startedMs < 1100; );
    expect(await answer).toMatchObject({ remaining: 99, failure: undefined })
  })

  it('do not open the breaker when they miss the deadline, however many there are', async () => {
    const proxy = await FaultyProxy.start({ port: server.port })
    onTestFinished(() => proxy.close())
    const url = `redis://admin:all@127.0.0.1:${proxy.port}`
    const { store, limiter } = opened(url, { prefix: 'cold', connectTimeoutMs: 60_000, deadlineMs: 100 })
    await store.ready()
    proxy.delay(400)
    const late = await Promise.all(Array.from({ length: 25 }, () => limiter.check('key')))
    expect(new Set(late.map(({ failure }) => failure?.cause))).toEqual(new Set(['deadline']))
    expect(store.stats().breaker).toBe('closed')
    proxy.delay(0)
    for (let tries = 0; (await limiter.check('other')).failure !== undefined; tries++) expect(tries).toBeLessThan(100)
    proxy.delay(400)
    await Promise.all(Array.from({ length: 25 }, () => limiter.check('key')))
    expect(store.stats().breaker).toBe('open')
  })

  it('is not a range that can be anything', () => {
    for (const connectTimeoutMs of [-1, 1.5, 60_001, Number.NaN]) {
      expect(() => redisStore('redis://127.0.0.1:1', { connectTimeoutMs })).toThrow(/"connectTimeoutMs"/)
    }
  })
})

describe('a store that is ready', () => {
  it('has loaded the script that decides, and left nothing behind', async () => {
    const own = await startRedis()
    onTestFinished(() => own.close())
    const { store } = opened(own.url)
    expect(await store.ready()).toBe(true)
    expect(await own.command('SCRIPT', 'EXISTS', DECIDE.digest)).toEqual([1])
    const names = (await own.command('KEYS', '*')) as unknown[]
    expect(names.map(String).filter((name) => name !== 'sluice:1:{nodes}')).toEqual([])
  })

  it('has loaded it on every primary of a cluster', async () => {
    const cluster = await startRedisCluster({ masters: 3, replicasPerMaster: 0 })
    onTestFinished(() => cluster.close())
    const { store } = opened(cluster.urls, { cluster: true })
    expect(await store.ready()).toBe(true)
    for (const { server: node } of cluster.nodes) {
      expect(await node.command('SCRIPT', 'EXISTS', DECIDE.digest)).toEqual([1])
    }
  })
})

describe('a user that lacks a permission', () => {
  const warnings: ServerWarning[] = []
  const onWarning = (warning: ServerWarning): void => void warnings.push(warning)

  /** A user with these rights, and the server's URL for it. */
  async function urlOf(name: string, ...rights: readonly string[]): Promise<string> {
    await server.command('ACL', 'SETUSER', name, 'reset', 'on', '>pass', ...rights)
    warnings.length = 0
    return `redis://${name}:pass@127.0.0.1:${server.port}`
  }

  const CLIENTS: Readonly<Record<string, (url: string) => Promise<unknown>>> = {
    'a URL': (url) => Promise.resolve(url),
    'node-redis': async (url) => {
      const client = createClient({ url })
      await client.connect()
      onTestFinished(() => client.destroy())
      return client
    },
    ioredis: (url) => {
      const client = new Redis(url, { enableReadyCheck: false, disconnectTimeout: 200 })
      onTestFinished(() => client.disconnect())
      return Promise.resolve(client)
    },
    'valkey-glide': async (url) => {
      const { username, password, port } = new URL(url)
      const addresses = [{ host: '127.0.0.1', port: Number(port) }]
      const client = await GlideClient.createClient({ addresses, credentials: { username, password } })
      onTestFinished(() => client.close())
      return client
    },
  }

  it.each(Object.keys(CLIENTS))('for the keys is reported by ready() and by a warning, with %s', async (name) => {
    const target = await CLIENTS[name]!(await urlOf('other-keys', '~other:*', '+@all'))
    const { store, limiter } = opened(target, { onWarning })
    await expect(store.ready()).rejects.toMatchObject({
      code: 'SLUICE_STORE_UNAVAILABLE',
      message: expect.stringContaining('NOPERM'),
      action: expect.stringContaining('Allow the user the keys that start with the prefix'),
    })
    expect(await limiter.check('key')).toMatchObject({ allowed: true, failure: { cause: 'refused', charged: 'no' } })
    expect(warnings.map(({ code }) => code)).toEqual(['SLUICE_NO_PERMISSION'])
    expect(warnings[0]!.message).toContain('NOPERM')
  })

  it.each(NEEDED_COMMANDS)('to run %s is reported by ready()', async (command) => {
    const { store } = opened(await urlOf('no-command', '~*', '+@all', `-${command.toLowerCase()}`), { onWarning })
    await expect(store.ready()).rejects.toMatchObject({
      code: 'SLUICE_STORE_UNAVAILABLE',
      action: expect.stringContaining(NEEDED_COMMANDS.join(', ')),
    })
    expect(warnings.map(({ code }) => code)).toEqual(['SLUICE_NO_PERMISSION'])
    expect(String(await server.command('KEYS', 'sluice:{*'))).toBe('')
  })

  it('is ready as soon as it is granted', async () => {
    const { store, limiter } = opened(await urlOf('granted', '~other:*', '+@all'), { onWarning, prefix: 'granted' })
    await expect(store.ready()).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
    await server.command('ACL', 'SETUSER', 'granted', '~granted:*')
    expect(await store.ready()).toBe(true)
    expect(await limiter.check('key')).toMatchObject({ remaining: 99, failure: undefined })
  })
})

describe('the keyPrefix of an ioredis client', () => {
  it('separates applications, and is enough for a user that may use nothing else', async () => {
    await server.command('ACL', 'SETUSER', 'app', 'reset', 'on', '>pass', '~app:*', '+@all')
    const clientWith = (keyPrefix: string, username: string, password: string): Redis => {
      const client = new Redis({ port: server.port, username, password, keyPrefix, disconnectTimeout: 200 })
      onTestFinished(() => client.disconnect())
      return client
    }
    const one = opened(clientWith('app:', 'app', 'pass'), { prefix: 'limits' })
    const other = opened(clientWith('shop:', 'admin', 'all'), { prefix: 'limits' })
    expect(await one.store.ready()).toBe(true)
    expect(await one.limiter.check('key')).toMatchObject({ remaining: 99, failure: undefined })
    expect(await one.limiter.check('key')).toMatchObject({ remaining: 98, failure: undefined })
    expect(await other.limiter.check('key')).toMatchObject({ remaining: 99, failure: undefined })
    const names = (await server.command('KEYS', '*limits:1:{=*')) as unknown[]
    expect(names.map(String).toSorted()).toEqual(['app:limits:1:{=key}', 'shop:limits:1:{=key}'])
  })

  it('counts in a cluster, wherever it is set', async () => {
    const cluster = await startRedisCluster({ masters: 3, replicasPerMaster: 0 })
    onTestFinished(() => cluster.close())
    for (const [index, options] of [{ keyPrefix: 'a:' }, { redisOptions: { keyPrefix: 'b:' } }, {}].entries()) {
      const client = new Cluster([...cluster.urls], options)
      onTestFinished(() => client.disconnect())
      const { store, limiter } = opened(client, { deadlineMs: 5000 })
      expect(await store.ready()).toBe(true)
      for (const key of ['x', 'y', 'z']) expect((await limiter.check(key)).remaining).toBe(99)
      const names = await Promise.all(cluster.nodes.map(({ server: node }) => node.command('KEYS', '*sluice:1:{=*')))
      expect(names.flat()).toHaveLength(3 * (index + 1))
    }
  })

  it.each(['{app}:', 'app *', 'x'.repeat(65)])('cannot be %j', (keyPrefix) => {
    const client = new Redis({ port: 1, keyPrefix, lazyConnect: true })
    expect(() => redisStore(client)).toThrow(/"keyPrefix" of the ioredis client .* set `prefix` of the Redis store/)
  })
})
