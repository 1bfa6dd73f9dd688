import { createLimiter, isSluiceError } from '@sluice/core'
import type { RedisCluster } from '@sluice/testing/servers'
import { slotOf, startRedisCluster } from '@sluice/testing/servers'
import { GlideClusterClient, Logger } from '@valkey/valkey-glide'
import { Cluster } from 'ioredis'
import { createCluster } from 'redis'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { NodeRedisCluster } from '../clients/node-redis/node-redis-cluster-connection.ts'
import { nodeRedisClusterConnection } from '../clients/node-redis/node-redis-cluster-connection.ts'
import type { RedisStore, RedisStoreOptions } from '../redis-store.ts'
import { redisStore } from '../redis-store.ts'
import { figure } from '../scenarios/ground.test.support.ts'
import { RedisKeys } from '../wire/call-encoding.ts'
import { Callers, LONG_WINDOW, pause, until } from './fault-trial.test.support.ts'

Logger.init('off')

/** A store on the cluster with each kind of client. */
const CLIENTS: Readonly<Record<string, (cluster: RedisCluster, options: RedisStoreOptions) => Promise<RedisStore>>> = {
  urls: (cluster, options) => Promise.resolve(redisStore(cluster.urls, { ...options, cluster: true })),
  'node-redis': async (cluster, options) => {
    const client = createCluster({ rootNodes: cluster.urls.map((url) => ({ url })) })
    client.on('error', () => undefined)
    await client.connect()
    onTestFinished(() => client.destroy())
    return redisStore(client, options)
  },
  ioredis: (cluster, options) => {
    const client = new Cluster([...cluster.urls], { redisOptions: { disconnectTimeout: 200 } })
    client.on('error', () => undefined)
    onTestFinished(() => client.disconnect())
    return Promise.resolve(redisStore(client, options))
  },
  'valkey-glide': async (cluster, options) => {
    const addresses = cluster.nodes.map(({ server: { host, port } }) => ({ host, port }))
    const client = await GlideClusterClient.createClient({ addresses, requestTimeout: DEADLINE_MS })
    onTestFinished(() => client.close())
    return redisStore(client, options)
  },
}

type Server = RedisCluster['nodes'][number]['server']

interface Fault {
  readonly begin: (server: Server) => Promise<void>
  readonly end: (server: Server) => Promise<void>
}

const FAULTS: Readonly<Record<string, Fault>> = {
  killed: { begin: (server) => server.kill(), end: (server) => server.restart() },
  hanging: { begin: (server) => server.pause(), end: async (server) => server.resume() },
}

/** A busy machine must not miss it. */
const DEADLINE_MS = 2000

/** Longer than it takes to miss the deadline, and to give up a connection that owes answers. */
const FAULT_MS = 5000

describe.each([
  ['without replicas', 0],
  ['with replicas', 1],
])('one of three masters, %s', (_, replicasPerMaster) => {
  it.each(Object.keys(FAULTS))('%s: keys of the others are decided by Redis, with every client', async (name) => {
    const fault = FAULTS[name]!
    const cluster = await startRedisCluster({ replicasPerMaster, config: { 'cluster-require-full-coverage': 'no' } })
    onTestFinished(() => cluster.close())
    const lost = cluster.nodes.find(({ role }) => role === 'master')!
    const loads: Load[] = []
    for (const client of Object.keys(CLIENTS)) loads.push(await loadOn(cluster, client, lost.id))
    const isLoaded = ({ healthy, dead }: Load): boolean => healthy.tally.admitted > 20 && dead.tally.admitted > 20
    await until('there is load', () => loads.every(isLoaded))

    const before = loads.map(({ healthy }) => healthy.tally.admitted)
    await fault.begin(lost.server)
    await pause(FAULT_MS)
    for (const [index, { healthy, dead }] of loads.entries()) {
      expect(healthy.tally.admitted).toBeGreaterThan(before[index]! + 20)
      expect(dead.tally.fellBack).toBeGreaterThan(0)
    }
    await fault.end(lost.server)
    const admitted = loads.map(({ dead }) => dead.tally.admitted)
    await until('the keys of the lost master are decided by Redis again', () =>
      loads.every(({ dead }, index) => dead.tally.admitted > admitted[index]! + 20),
    )
    const withoutRedis = await Promise.all(
      loads.map(async ({ client, healthy, dead, store }) => {
        await dead.stop()
        const { fellBack } = await healthy.stop()
        figure(`master ${name}, ${client}: ${healthy.tally}; keys of the lost master: ${dead.tally}`)
        await until('all breakers are closed', () => store.stats().breaker === 'closed')
        return [client, fellBack]
      }),
    )
    expect(Object.fromEntries(withoutRedis)).toEqual({ urls: 0, 'node-redis': 0, ioredis: 0, 'valkey-glide': 0 })
  })
})

describe('a node of a cluster that is not connected', () => {
  it('owes no answer, so that it is not given up for a silent one', async () => {
    const cluster = await startRedisCluster({ replicasPerMaster: 0, config: { 'cluster-require-full-coverage': 'no' } })
    onTestFinished(() => cluster.close())
    const client = createCluster({ rootNodes: cluster.urls.map((url) => ({ url })) })
    client.on('error', () => undefined)
    await client.connect()
    onTestFinished(() => client.destroy())
    const told = { sent: 0, replied: 0 }
    const silence = { sent: () => void told.sent++, replied: () => void told.replied++ }
    const connection = nodeRedisClusterConnection(client as unknown as NodeRedisCluster, () => Promise.resolve(), {
      silence,
    })
    const count = (): Promise<unknown> => connection.send(['INCR', 'key'], 'key')
    expect(await count()).toBe(1)
    expect(told).toEqual({ sent: 1, replied: 1 })
    await cluster.masterOf(slotOf('key')).server.kill()
    await until('the connection is lost', async () => {
      const error: unknown = await count().catch((reason: unknown) => reason)
      return isSluiceError(error)
    })
    expect(told.replied).toBe(told.sent)
    const { sent } = told
    await expect(count()).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE', partial: true })
    expect(told).toEqual({ sent, replied: sent })
  })
})

interface Load {
  readonly client: string
  readonly store: RedisStore
  /** Callers of keys of the other masters. */
  readonly healthy: Callers
  /** Callers of keys of the lost master. */
  readonly dead: Callers
}

/** A store with a client, and load on it: most of it on the master that will be lost. */
async function loadOn(cluster: RedisCluster, client: string, lostId: string): Promise<Load> {
  const options = { prefix: client, deadlineMs: DEADLINE_MS, failureMode: 'open' as const, denyCache: false as const }
  const store = await CLIENTS[client]!(cluster, options)
  onTestFinished(() => store.close())
  expect(await store.ready()).toBe(true)
  const limiter = createLimiter({ name: 'rule', algorithm: 'fixed-window', limit: 1e9, window: LONG_WINDOW, store })
  const names = new RedisKeys(client)
  const callersOf = (count: number, isOnLost: boolean): Callers => {
    const keys = Array.from({ length: 100 }, (_, index) => `key-${index}`)
      .filter((key) => (cluster.masterOf(slotOf(names.record(key))).id === lostId) === isOnLost)
      .slice(0, count)
    return new Callers(count, async (caller) => {
      await pause(10)
      return await limiter.check(keys[caller]!)
    })
  }
  return { client, store, healthy: callersOf(5, false), dead: callersOf(15, true) }
}
