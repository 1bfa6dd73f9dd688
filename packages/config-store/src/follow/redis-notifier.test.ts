import { FaultyProxy, type RedisServer, startRedis } from '@sluice/testing/servers'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { platform } from '../clock-and-random.ts'
import { openConfigStore } from '../open-config-store.ts'
import { newFile } from '../sql/driver.test.support.ts'
import { until } from '../waiting.test.support.ts'
import { enforced, FakeFeed, RecordingTarget } from './fake-feed.test.support.ts'
import { followConfig } from './follow-config.ts'
import { type RedisPubSubClient, redisNotifier } from './redis-notifier.ts'

const server: RedisServer = await startRedis()

afterAll(() => server.close())

beforeEach(async () => {
  if (server.status === 'ended') await server.restart()
})

const clients = {
  'node-redis': async (url: string): Promise<RedisPubSubClient> => {
    const client = createClient({ url, socket: { reconnectStrategy: 20 } })
    client.on('error', () => undefined)
    onTestFinished(() => client.destroy())
    await client.connect()
    return client
  },
  ioredis: async (url: string): Promise<RedisPubSubClient> => {
    const client = new Redis(url, { retryStrategy: () => 20, disconnectTimeout: 100, keyPrefix: 'x:' })
    client.on('error', () => undefined)
    onTestFinished(() => client.disconnect())
    await client.ping()
    return client
  },
}

/** A notifier that is watched, and what came. */
async function watched(client: RedisPubSubClient, channel?: string) {
  const heard = { changed: 0, lost: [] as unknown[] }
  const notifier = redisNotifier(client, channel === undefined ? {} : { channel })
  const end = await notifier.watch(
    () => void heard.changed++,
    (error) => void heard.lost.push(error),
  )
  onTestFinished(end)
  return { notifier, heard, end }
}

const subscribers = async (channel = 'sluice:config'): Promise<number> =>
  ((await server.command('PUBSUB', 'NUMSUB', channel)) as [string, number])[1]

describe.each(['node-redis', 'ioredis'] as const)('a notifier over %s', (name) => {
  it('tells every watcher of an announcement, itself too', async () => {
    const one = await watched(await clients[name](server.url))
    const other = await watched(await clients[name](server.url))
    await until('both listen', () => one.heard.changed === 1 && other.heard.changed === 1)
    expect(await one.notifier.announce()).toBe(true)
    await until('both have heard', () => one.heard.changed === 2 && other.heard.changed === 2)
    expect([one.heard.lost, other.heard.lost]).toEqual([[], []])
  })

  it('is not heard on another channel', async () => {
    const client = await clients[name](server.url)
    const here = await watched(client, 'here')
    const there = await watched(client, 'there')
    await until('both listen', () => here.heard.changed === 1 && there.heard.changed === 1)
    await here.notifier.announce()
    await here.notifier.announce()
    await until('one has heard', () => here.heard.changed === 3)
    expect(there.heard.changed).toBe(1)
  })

  it('listens no more when the watch is ended, and leaves no connection', async () => {
    const { heard, end, notifier } = await watched(await clients[name](server.url))
    await until('it listens', () => heard.changed === 1)
    await end()
    await until('the subscription is gone', async () => (await subscribers()) === 0)
    await notifier.announce()
    expect(heard).toEqual({ changed: 1, lost: [] })
  })

  it('subscribes again by itself after an outage of the server, and reports that hints may be lost', async () => {
    const { heard, notifier } = await watched(await clients[name](server.url))
    await until('it listens', () => heard.changed === 1)
    await server.restart()
    await until('it says so', () => heard.lost.length > 0)
    expect(heard.lost).toEqual([expect.any(Error)])
    await until('it announces again', () => notifier.announce())
    await until('it hears again', () => heard.changed > 1)
  })

  it('announces nothing while the server is unavailable, without an error', async () => {
    const { heard, notifier } = await watched(await clients[name](server.url))
    await until('it listens', () => heard.changed === 1)
    await server.kill()
    await until('it is reported', async () => !(await notifier.announce()))
  })

  it('does not wait for a client that is not connected', async () => {
    const client = await clients[name](server.url)
    const notifier = redisNotifier(client, { announceWithinMs: 600_000 })
    await server.kill()
    await until('it is noticed', () => ('status' in client ? client.status !== 'ready' : !client.isReady))
    // Before anything else in this process has its turn.
    expect(await Promise.race([notifier.announce(), platform.nextTurn()])).toBe(false)
  })

  it('gives up an announcement without a reply', async () => {
    const proxy = await FaultyProxy.start({ port: server.port })
    onTestFinished(() => proxy.close())
    const client = await clients[name](`redis://${proxy.host}:${proxy.port}`)
    await proxy.blackHole()
    expect(await redisNotifier(client, { announceWithinMs: 50 }).announce()).toBe(false)
  })
})

describe('nodes whose database tells them nothing', () => {
  it('look as soon as a change is announced over Redis', async () => {
    const feed = new FakeFeed()
    feed.isMute = true
    const nodes = await Promise.all(
      (['node-redis', 'ioredis'] as const).map(async (name) => {
        const target = new RecordingTarget()
        const notifier = redisNotifier(await clients[name](server.url))
        const follower = followConfig({ feed, target, notifiers: [notifier], pollMs: 600_000 })
        onTestFinished(() => follower.close())
        await until('it listens', () => follower.stats().notifications === 1)
        return { target, follower, notifier }
      }),
    )
    feed.use(enforced(7))
    await nodes[0]!.notifier.announce()
    await until('all have it', () => nodes.every(({ target }) => target.versions.enforced?.number === 7))
    expect(nodes.map(({ follower }) => follower.stats().polls)).toEqual([0, 0])
  })
})

describe('a store that was opened with a notifier', () => {
  it('announces what it commits, so that a node whose database tells it nothing has it at once', async () => {
    const [path, client] = [await newFile(), await clients['node-redis'](server.url)]
    const writer = await openConfigStore(path, { notifiers: [redisNotifier(client)] })
    onTestFinished(() => writer.close())
    // It would look at the file again in ten minutes.
    const reader = await openConfigStore(path, { pollMs: 600_000 })
    onTestFinished(() => reader.close())
    const target = new RecordingTarget()
    const notifier = redisNotifier(await clients.ioredis(server.url))
    const follower = followConfig({ feed: reader.feed, target, notifiers: [notifier], pollMs: 600_000 })
    onTestFinished(() => follower.close())
    await until('it listens', async () => (await subscribers()) === 1)
    await follower.refresh()
    await writer.versions.edit(() => ({ rules: [] }), { name: 'ada' })
    await until('it has it', () => target.versions.enforced?.number === 1)
    expect(follower.stats().polls).toBe(0)
  })
})

describe('a notifier', () => {
  it.each([
    ['nothing', undefined],
    ['an object', {}],
    ['a cluster', { isReady: true, slots: [], publish: () => 0, duplicate: () => 0 }],
  ])('over %s is rejected', (_, client) => {
    expect(() => redisNotifier(client as never)).toThrow('SLUICE_INVALID_OPTION')
  })
})
