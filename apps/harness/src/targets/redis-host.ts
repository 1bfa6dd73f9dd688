import type { Random, Timers } from '@sluice/core'
import { startRedis } from '@sluice/testing/servers'
import { createClient } from 'redis'
import { HarnessError } from '../tests/harness-error.ts'

/** Time for a Redis to accept a connection and to answer the greeting. */
const CONNECT_WITHIN_MS = 3000

/** Keys to look at in one call when those of this run are removed. */
const SCAN_COUNT = 1000

/** A Redis to run on. */
export interface RedisHost {
  readonly url: string
  /** A client of node-redis, connected; it does not connect again. */
  readonly client: object
  /** Begins every key of this run, and no key of another. */
  readonly prefix: string
  /** Ends a server that was started, and removes the keys of this run from one that was there. */
  close(): Promise<void>
}

/** Where time and chance come from. */
export interface RedisHostParts {
  readonly timers: Timers
  readonly random: Random
}

/**
 * The Redis at `url`, or without one a server started for this run.
 *
 * @throws HarnessError `SLUICE_HARNESS_REDIS_UNAVAILABLE`
 */
export async function openRedisHost(url: string | undefined, { timers, random }: RedisHostParts): Promise<RedisHost> {
  const prefix = `sluice-harness-${random.nextUint32().toString(36)}${random.nextUint32().toString(36)}`
  if (url !== undefined) return hostAt(url, await connect(url, timers), prefix)
  const server = await startRedis().catch((cause: unknown) => {
    throw notStarted(cause)
  })
  try {
    const client = await connect(server.url, timers)
    return {
      url: server.url,
      client,
      prefix,
      close: async () => {
        if (client.isOpen) client.destroy()
        await server.close()
      },
    }
  } catch (error) {
    await server.close()
    throw error
  }
}

function hostAt(url: string, client: RedisClient, prefix: string): RedisHost {
  return {
    url,
    client,
    prefix,
    close: async () => {
      // Without a connection the keys stay until they expire.
      if (!client.isReady) return
      await removeKeys(client, prefix)
      client.destroy()
    },
  }
}

// The type of a client has the settings of this one in it, so it is taken from here.
function newClient(url: string) {
  return createClient({
    url,
    disableOfflineQueue: true,
    socket: { reconnectStrategy: false, connectTimeout: CONNECT_WITHIN_MS },
  })
}

type RedisClient = ReturnType<typeof newClient>

async function connect(url: string, timers: Timers): Promise<RedisClient> {
  const client = newClient(url)
  // Without a listener a lost connection would end the process; here the next call fails.
  client.on('error', () => undefined)
  let isSilent = false
  const cancel = timers.schedule(CONNECT_WITHIN_MS, () => {
    isSilent = true
    client.destroy()
  })
  try {
    await client.connect()
    return client
  } catch (cause) {
    throw notReached(url, isSilent ? `no answer within ${CONNECT_WITHIN_MS} ms` : textOf(cause), cause)
  } finally {
    cancel()
  }
}

async function removeKeys(client: RedisClient, prefix: string): Promise<void> {
  for await (const keys of client.scanIterator({ MATCH: `${prefix}:*`, COUNT: SCAN_COUNT })) {
    if (keys.length > 0) await client.unlink(keys)
  }
}

function notReached(url: string, received: string, cause: unknown): HarnessError {
  // Without user and password.
  const { host } = new URL(url)
  return new HarnessError('SLUICE_HARNESS_REDIS_UNAVAILABLE', {
    received: `${received} from ${host}`,
    expected: 'a Redis that answers there; start it, or leave out --redis-url to run on one started for the run',
    cause,
  })
}

function notStarted(cause: unknown): HarnessError {
  return new HarnessError('SLUICE_HARNESS_REDIS_UNAVAILABLE', {
    received: textOf(cause),
    expected:
      'redis-server 7.0 or later on the PATH (Debian and Ubuntu: apt-get install redis-server), or --redis-url ' +
      'with the address of a Redis that runs',
    cause,
  })
}

/** The text of an error, to go on from in a sentence. */
function textOf(error: unknown): string {
  // A name with several addresses fails with one error for each, and no text of its own.
  if (error instanceof AggregateError) return error.errors.map(textOf).join(', ')
  return (error instanceof Error ? error.message : String(error)).replace(/\.$/, '')
}
