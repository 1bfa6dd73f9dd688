import { FaultyProxy, freePort, slotOf, startRedisCluster } from '@sluice/testing/servers'
import { GlideClusterClient, Logger } from '@valkey/valkey-glide'
import { Cluster } from 'ioredis'
import { createCluster } from 'redis'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import type { RedisConnection } from '../connection/connection.ts'
import { serverCodeOf } from '../connection/connection.ts'
import { ScriptRunner } from '../wire/script-runner.ts'
import { scriptOf } from '../wire/scripts.ts'
import { clientSuite, pause, until, untilAnswered } from './client-trial.test.support.ts'
import { connectByUrl } from './connect-by-url.ts'
import { recogniseClient } from './recognise-client.ts'

interface Opened {
  readonly connection: RedisConnection
  close(): Promise<void>
}

interface Address {
  readonly host: string
  readonly port: number
}

type AddressMap = (address: Address) => Address

const COUNT = scriptOf('count', "return redis.call('INCR', KEYS[1])")
const COUNT_BOTH = scriptOf('count both', "return redis.call('INCR', KEYS[1]) + redis.call('INCR', KEYS[2])")

Logger.init('off')
const cluster = await startRedisCluster()
const nodes = (): Address[] => cluster.nodes.map(({ server }) => ({ host: server.host, port: server.port }))
const same: AddressMap = (address) => address

/**
 * How a connection to the cluster is made with each client, whose nodes may be reached by other addresses than they
 * tell.
 */
const CLIENTS: Readonly<Record<string, (map: AddressMap) => Promise<Opened>>> = {
  'a cluster of node-redis': async (map) => {
    const client = createCluster({
      rootNodes: nodes().map((socket) => ({ socket })),
      defaults: { socket: { reconnectStrategy: 50 } },
      topologyRefreshOnReconnectionAttemptStrategy: 100,
      nodeAddressMap: (text) => map(addressIn(text)),
    })
    client.on('error', () => undefined)
    await client.connect()
    return { connection: recogniseClient(client), close: async () => client.destroy() }
  },
  'a cluster of ioredis': (map) => {
    const natMap = ({ host, port }: Address): Address => map({ host, port: Number(port) })
    const client = new Cluster(nodes(), {
      natMap: (text) => natMap(addressIn(text)),
      scaleReads: 'slave',
      redisOptions: { disconnectTimeout: 200 },
    })
    client.on('error', () => undefined)
    const connection = recogniseClient(client)
    const close = async (): Promise<void> => {
      await connection.close()
      client.disconnect()
    }
    return Promise.resolve({ connection, close })
  },
  'a cluster of valkey-glide': async (map) => {
    const client = await GlideClusterClient.createClient({
      addresses: nodes(),
      requestTimeout: 1000,
      addressResolver: (host, port) => {
        const address = map({ host, port })
        return [address.host, address.port]
      },
    })
    return { connection: recogniseClient(client), close: async () => client.close() }
  },
  'URLs of a cluster': () => {
    const connection = connectByUrl(cluster.urls, { cluster: true })
    return Promise.resolve({ connection, close: () => connection.close() })
  },
}

function addressIn(text: string): Address {
  const [host = '', port] = text.split(':')
  return { host, port: Number(port) }
}

const opened: Record<string, Opened> = {}
for (const [name, open] of Object.entries(CLIENTS)) {
  opened[name] = await open(same)
  await untilAnswered(opened[name].connection, 'x')
}

afterAll(async () => {
  for (const { close } of Object.values(opened)) await close()
  await cluster.close()
})

/** valkey-glide tries again by itself, at first after a second, and by then its request has timed out. */
const WAITING = 'a cluster of valkey-glide'

for (const name of Object.keys(CLIENTS)) {
  clientSuite(name, () => opened[name]!.connection, { waitsForTheCluster: name === WAITING })
}

describe.each(Object.keys(CLIENTS))('%s', (name) => {
  const connection = (): RedisConnection => opened[name]!.connection
  const runner = (): ScriptRunner => new ScriptRunner(connection(), pause)

  it('finds the primary of every key, for scripts and for reads', async () => {
    for (let index = 0; index < 50; index++) {
      const key = `${name}:{${index}}`
      expect(await runner().run(COUNT, [key], [])).toBe(1)
      expect(String(await connection().send(['GET', key], key))).toBe('1')
    }
  })

  it('asks any node when there is no key', async () => {
    expect(String(await connection().send(['INFO', 'server'], ''))).toContain('redis_version')
  })

  it('follows a slot on its way: keys that have moved, keys that have not, and keys of both', async () => {
    const tag = `${name}-moving`
    const [here, there, absent] = [`{${tag}}here`, `{${tag}}there`, `{${tag}}absent`]
    const slot = slotOf(here)
    for (const key of [here, there]) await runner().run(COUNT, [key], [])
    const from = cluster.masterOf(slot)
    const to = cluster.nodes.find((node) => node.role === 'master' && node.id !== from.id)!
    const migration = await cluster.beginMigration(slot, to)
    // A slot that stays on its way would be lost by the fail-overs that follow.
    onTestFinished(async () => {
      await migration.moveKeys()
      await migration.finish()
    })
    await migration.moveKeys([there])
    // Still at home; moved, so the old home says ASK; absent, so it says ASK too.
    expect(await runner().run(COUNT, [here], [])).toBe(2)
    expect(await runner().run(COUNT, [there], [])).toBe(2)
    expect(await runner().run(COUNT, [absent], [])).toBe(1)
    // One here, one there: TRYAGAIN, until it is not so any more. Nothing is done before.
    const rejection = await runner().run(COUNT_BOTH, [here, there], []).catch(encodingOf)
    expect(rejection).toBe(name === WAITING ? 'SLUICE_OUTCOME_UNKNOWN' : 'SLUICE_STORE_UNAVAILABLE')
    await migration.moveKeys()
    expect(await runner().run(COUNT_BOTH, [here, there], [])).toBe(6)
    await migration.finish()
    // The client with the old slot map gets MOVED.
    expect(await runner().run(COUNT_BOTH, [here, there], [])).toBe(8)
  })
})

describe('a fail-over', () => {
  const runners = Object.values(opened).map(({ connection }) => new ScriptRunner(connection, pause))
  const countAll = (key: string): Promise<unknown[]> =>
    Promise.all(runners.map((runner, index) => runner.run(COUNT, [`${key}:${index}`], []).catch(() => 'refused')))
  const untilAllAnswered = async (key: string): Promise<void> => {
    await Promise.all(Object.values(opened).map(({ connection }) => untilAnswered(connection, key)))
  }

  it('in good order is followed by all clients', async () => {
    expect(await countAll('{good}')).toEqual([1, 1, 1, 1])
    await cluster.failover(cluster.masterOf(slotOf('good')))
    await untilAllAnswered('good')
    expect(await countAll('{good}')).toEqual([2, 2, 2, 2])
  })

  it('after the loss of a node is followed by all clients, and nothing is sent twice', async () => {
    expect(await countAll('{loss}')).toEqual([1, 1, 1, 1])
    const lost = cluster.masterOf(slotOf('loss'))
    // The replica has it before its primary is gone.
    await lost.server.command('WAIT', 1, 1000)
    await lost.server.kill()
    expect(await countAll('{loss}')).toEqual(['refused', 'refused', 'refused', 'refused'])
    for (const name of ['a cluster of node-redis', 'URLs of a cluster']) {
      const { connection } = opened[name]!
      await until(
        'it knows',
        async () => (await connection.send(['GET', '{loss}'], '{loss}').catch(isNotConnected)) === true,
      )
    }
    await cluster.failover(lost)
    await untilAllAnswered('loss')
    expect(await countAll('{loss}')).toEqual([2, 2, 2, 2])
  })
})

describe.each(Object.keys(CLIENTS).slice(0, 3))('%s whose reply is lost', (name) => {
  it('runs each command once', async () => {
    const key = `${name}-lost`
    const proxy = await FaultyProxy.start({ port: cluster.masterOf(slotOf(key)).server.port })
    const target = cluster.masterOf(slotOf(key)).server.port
    const { connection, close } = await CLIENTS[name]!((address) =>
      address.port === target ? { host: proxy.host, port: proxy.port } : address,
    )
    onTestFinished(async () => {
      await close()
      await proxy.close()
    })
    await untilAnswered(connection, key)
    proxy.resetMidReply(0)
    const error = await connection.send(['INCR', key], key).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(Error)
    expect(serverCodeOf(error)).toBeUndefined()
    await untilAnswered(connection, key)
    await pause(150)
    expect(String(await connection.send(['GET', key], key))).toBe('1')
  })
})

describe('URLs of a cluster', () => {
  it('need not all be of nodes that run, and may be closed before they are connected', async () => {
    const gone = [`redis://127.0.0.1:${await freePort()}`]
    const connection = connectByUrl([...gone, ...cluster.urls.slice(0, 3)], { cluster: true })
    onTestFinished(() => connection.close())
    await untilAnswered(connection, 'x')
    const lonely = connectByUrl(gone, { cluster: true })
    await until('it has tried', () => lonely.obstacle?.() !== undefined)
    expect(lonely.isReady()).toBe(false)
    await lonely.close()
  })
})

function isNotConnected(error: unknown): boolean {
  return (error as Error).message.includes('the node that has the key is not connected')
}

function encodingOf(error: unknown): unknown {
  return (error as { code?: unknown }).code
}
