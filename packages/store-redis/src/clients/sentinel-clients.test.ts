import { FaultyProxy, startSentinel } from '@sluice/testing/servers'
import { Redis } from 'ioredis'
import { createSentinel } from 'redis'
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

/** Timers of the process that hold it open. */
const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
const timersBefore = timers()
const group = await startSentinel()
const sentinels = group.sentinels.map(({ host, port }) => ({ host, port }))
const same: AddressMap = (address) => address

const CLIENTS: Readonly<Record<string, (map: AddressMap) => Promise<Opened>>> = {
  // It is not connected: the store has a connection of its own.
  'a sentinel client of node-redis': (map) => {
    const client = createSentinel({
      name: group.masterName,
      sentinelRootNodes: sentinels,
      nodeAddressMap: (text) => map(addressIn(text)),
    })
    const connection = recogniseClient(client)
    return Promise.resolve({ connection, close: () => connection.close() })
  },
  'a client of ioredis with sentinels': (map) => {
    const natMap = (text: string): Address => map(addressIn(text))
    const client = new Redis({ sentinels, name: group.masterName, natMap })
    client.on('error', () => undefined)
    const connection = recogniseClient(client)
    const close = async (): Promise<void> => {
      await connection.close()
      client.disconnect()
    }
    return Promise.resolve({ connection, close })
  },
  'URLs of sentinels': () => {
    const urls = sentinels.map(({ host, port }) => `redis://${host}:${port}`)
    const connection = connectByUrl(urls, { sentinel: { name: group.masterName } })
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
  await group.close()
  // Both libraries wait out a pause between two tries that is in progress when they are closed, longer on a busy
  // machine.
  await until('their clients have ended', () => timers() <= timersBefore)
})

for (const name of Object.keys(CLIENTS)) clientSuite(name, () => opened[name]!.connection)

describe.each(Object.keys(CLIENTS))('%s', (name) => {
  const connection = (): RedisConnection => opened[name]!.connection
  const runner = (): ScriptRunner => new ScriptRunner(connection(), pause)

  it('answers many commands of one moment', async () => {
    const key = `${name}-many`
    const counts = await Promise.all(Array.from({ length: 200 }, () => runner().run(COUNT, [key], [])))
    expect(counts).toEqual(Array.from({ length: 200 }, (_, index) => index + 1))
  })
})

describe('a fail-over', () => {
  const runners = Object.entries(opened).map(([name, { connection }]) => ({
    key: `${name}-failover`,
    connection,
    runner: new ScriptRunner(connection, pause),
  }))
  const countAll = (): Promise<unknown[]> =>
    Promise.all(runners.map(({ runner, key }) => runner.run(COUNT, [key], []).catch(() => 'refused')))
  const untilAllAnswered = async (): Promise<void> => {
    await Promise.all(runners.map(({ connection, key }) => untilAnswered(connection, key)))
  }

  it('is followed by all clients', async () => {
    expect(await countAll()).toEqual([1, 1, 1])
    await (await group.currentPrimary()).command('WAIT', 1, 1000)
    await group.failover()
    await untilAllAnswered()
    expect(await countAll()).toEqual([2, 2, 2])
  })

  it('is not awaited: earlier commands fail at once, and are not sent later', async () => {
    const primary = await group.currentPrimary()
    await primary.command('WAIT', 1, 1000)
    await primary.kill()
    for (let round = 0; round < 3; round++) expect(await countAll()).toEqual(['refused', 'refused', 'refused'])
    await group.untilFailedOver(primary)
    await untilAllAnswered()
    expect(await countAll()).toEqual([3, 3, 3])
  })
})

describe.each(['a sentinel client of node-redis', 'a client of ioredis with sentinels'])(
  '%s whose reply is lost',
  (name) => {
    it('runs each command once', async () => {
      const { port } = await group.currentPrimary()
      const proxy = await FaultyProxy.start({ port })
      const { connection, close } = await CLIENTS[name]!((address) =>
        address.port === port ? { host: proxy.host, port: proxy.port } : address,
      )
      onTestFinished(async () => {
        await close()
        await proxy.close()
      })
      const key = `${name}-lost`
      await untilAnswered(connection, key)
      expect(proxy.connections).toBeGreaterThan(0)
      proxy.resetMidReply(0)
      const error = await connection.send(['INCR', key], key).catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(Error)
      expect(serverCodeOf(error)).toBeUndefined()
      await untilAnswered(connection, key)
      expect(String(await connection.send(['GET', key], key))).toBe('1')
    })
  },
)
