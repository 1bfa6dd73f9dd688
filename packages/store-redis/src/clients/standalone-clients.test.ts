import { systemRandom, systemTimers } from '@sluice/core'
import { FaultyProxy, startRedis } from '@sluice/testing/servers'
import { GlideClient, Logger } from '@valkey/valkey-glide'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
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

const ADDRESS = '127.0.0.1'
const IOREDIS_SAFE = { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0, enableOfflineQueue: false }

/** How a connection to a port is made with each client. */
const CLIENTS: Readonly<Record<string, (port: number) => Promise<Opened>>> = {
  'a client of node-redis': async (port) => {
    const client = createClient({ socket: { host: ADDRESS, port, reconnectStrategy: 50 } })
    client.on('error', () => undefined)
    await client.connect()
    return { connection: recogniseClient(client), close: async () => client.destroy() }
  },
  'a client of ioredis': (port) => openIoRedis(port, {}),
  'a client of ioredis with safe options': (port) => openIoRedis(port, IOREDIS_SAFE),
  'a client of valkey-glide': async (port) => {
    const client = await GlideClient.createClient({ addresses: [{ host: ADDRESS, port }], requestTimeout: 500 })
    return { connection: recogniseClient(client), close: async () => client.close() }
  },
  'a URL': (port) => {
    const connection = connectByUrl(`redis://${ADDRESS}:${port}`)
    return Promise.resolve({ connection, close: () => connection.close() })
  },
}

function openIoRedis(port: number, options: object): Promise<Opened> {
  const client = new Redis({ host: ADDRESS, port, retryStrategy: () => 50, ...options })
  client.on('error', () => undefined)
  const connection = recogniseClient(client, { random: systemRandom, timers: systemTimers })
  const close = async (): Promise<void> => {
    await connection.close()
    client.disconnect()
  }
  return Promise.resolve({ connection, close })
}

Logger.init('off')
const server = await startRedis()
const opened: Record<string, Opened> = {}
for (const [name, open] of Object.entries(CLIENTS)) {
  opened[name] = await open(server.port)
  await untilAnswered(opened[name].connection, 'x')
}

afterAll(async () => {
  for (const { close } of Object.values(opened)) await close()
  await server.close()
})

for (const name of Object.keys(CLIENTS)) clientSuite(name, () => opened[name]!.connection)

describe.each(Object.entries(CLIENTS))('%s whose server fails', (name, open) => {
  it('runs a command once when its reply is lost, and reports the outcome as unknown', async () => {
    const proxy = await FaultyProxy.start({ port: server.port })
    const { connection, close } = await open(proxy.port)
    onTestFinished(async () => {
      await close()
      await proxy.close()
    })
    const key = `${name}-lost`
    await untilAnswered(connection, key)
    proxy.resetMidReply(0)
    const error = await connection.send(['INCR', key], key).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(Error)
    expect(serverCodeOf(error)).toBeUndefined()
    expect((error as { code?: unknown }).code).not.toBe('SLUICE_STORE_UNAVAILABLE')
    await untilAnswered(connection, key)
    // Whatever was kept to be sent again has been sent by now: replies come in order.
    expect(String(await connection.send(['GET', key], key))).toBe('1')
  })

  it('knows no script after a restart and goes on', async () => {
    const own = await startRedis()
    const { connection, close } = await open(own.port)
    onTestFinished(async () => {
      await close()
      await own.close()
    })
    await untilAnswered(connection, 'x')
    const runner = new ScriptRunner(connection, pause)
    const script = scriptOf('count', "return redis.call('INCR', KEYS[1])")
    expect(await runner.run(script, ['n'], [])).toBe(1)
    await own.restart()
    await untilAnswered(connection, 'x')
    expect(await runner.run(script, ['n'], [])).toBe(1)
    await own.command('SCRIPT', 'FLUSH')
    expect(await runner.run(script, ['n'], [])).toBe(2)
  })

  it('sends nothing that was asked while it was away', async () => {
    const own = await startRedis()
    const { connection, close } = await open(own.port)
    onTestFinished(async () => {
      await close()
      await own.close()
    })
    await untilAnswered(connection, 'x')
    await own.kill()
    if (!name.includes('glide')) await until('it knows', () => !connection.isReady())
    const runner = new ScriptRunner(connection, pause)
    const failures = await Promise.all([1, 2, 3].map(() => runner.command(['INCR', 'n'], 'n').catch(encodingOf)))
    const expected = name.includes('glide') ? 'SLUICE_OUTCOME_UNKNOWN' : 'SLUICE_STORE_UNAVAILABLE'
    expect(failures).toEqual([expected, expected, expected])
    await own.restart()
    await untilAnswered(connection, 'x')
    expect(await connection.send(['GET', 'n'], 'n')).toBeNull()
  })
})

function encodingOf(error: unknown): unknown {
  return (error as { code?: unknown }).code
}
