import type { Random } from '@sluice/core'
import { SluiceError } from '@sluice/core'
import { notSent, serverAnswer } from '../connection/client-failure.ts'
import type { RedisArgument, RedisConnection } from '../connection/connection.ts'
import { reconnectDelayMs } from '../connection/reconnect-delay.ts'

/** What is used of a `Redis` of ioredis, version 5 and later. */
export interface IoRedisClient {
  readonly status: string
  readonly options: Readonly<Record<string, unknown>>
  connect(): Promise<unknown>
  callBuffer(...command: RedisArgument[]): Promise<unknown>
  disconnect(): void
  on(event: 'error', listener: (error: Error) => void): unknown
}

/** A `Redis`: one server, or a primary found through sentinels. */
export interface IoRedisSingle extends IoRedisClient {
  readonly isCluster?: false
  duplicate(options: Readonly<Record<string, unknown>>): IoRedisClient
}

/** A `Cluster`. */
export interface IoRedisCluster extends IoRedisClient {
  readonly isCluster: true
  duplicate(nodes: readonly [], options: Readonly<Record<string, unknown>>): IoRedisClient
}

/**
 * What a connection must be set to. By default ioredis keeps commands for a server that is away and sends again what was
 * under way when the connection broke: that charges twice. With only the first of these, what was under way is never
 * answered. The rest is about replies and names: integers stay numbers, keys are ours, nothing is regrouped.
 */
const SAFE = {
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  enableAutoPipelining: false,
  keyPrefix: '',
  stringNumbers: false,
} as const

/**
 * The same for a cluster, whose own options rule over those of its nodes: `enableOfflineQueue` among `redisOptions` has no
 * effect, and a command whose connection broke is sent to another node unless `retryDelayOnFailover` is 0.
 */
const SAFE_CLUSTER = {
  enableOfflineQueue: false,
  retryDelayOnFailover: 0,
  retryDelayOnClusterDown: 0,
  retryDelayOnTryAgain: 0,
  enableAutoPipelining: false,
  scaleReads: 'master',
  keyPrefix: '',
} as const

const SAFE_NODE = { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0, stringNumbers: false } as const

/** How long a connection of the store's own may take to say goodbye. A timer of ioredis runs for it, even after the end. */
const DISCONNECT_TIMEOUT_MS = 200

/**
 * A client of ioredis as a connection: itself if its options are safe for charges, otherwise one of the store's own to the
 * same place, by `duplicate()`, which the store closes. Safe are `autoResendUnfulfilledCommands: false`,
 * `maxRetriesPerRequest: 0`, `enableOfflineQueue: false`, and no `keyPrefix`, `stringNumbers` or `enableAutoPipelining`. The
 * store puts a `keyPrefix` before its own prefix.
 */
export function ioRedisConnection(client: IoRedisSingle, random: Random): RedisConnection {
  const keyPrefix = keyPrefixOf(client)
  if (holds(client.options, SAFE)) return connectionOver(client, { isCluster: false, isOwned: false, keyPrefix })
  const retry = (times: number): number => reconnectDelayMs(times - 1, random)
  const own = {
    ...SAFE,
    lazyConnect: false,
    retryStrategy: retry,
    sentinelRetryStrategy: retry,
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
  }
  return connectionOver(client.duplicate(own), { isCluster: false, isOwned: true, keyPrefix })
}

/**
 * A cluster of ioredis as a connection, with the same rule as {@link ioRedisConnection}. Safe are `enableOfflineQueue: false`,
 * `retryDelayOnFailover: 0`, `retryDelayOnClusterDown: 0`, `retryDelayOnTryAgain: 0`, `scaleReads: 'master'`, no `keyPrefix` or
 * `enableAutoPipelining`, and in `redisOptions` `autoResendUnfulfilledCommands: false`, `maxRetriesPerRequest: 0` and no
 * `stringNumbers`. It follows MOVED and ASK by itself.
 */
export function ioRedisClusterConnection(cluster: IoRedisCluster, random: Random): RedisConnection {
  const { redisOptions = {} } = cluster.options as { redisOptions?: Readonly<Record<string, unknown>> }
  // ioredis takes that of `redisOptions` when the cluster has none.
  const keyPrefix = keyPrefixOf(cluster)
  if (holds(cluster.options, SAFE_CLUSTER) && holds(redisOptions, SAFE_NODE)) {
    return connectionOver(cluster, { isCluster: true, isOwned: false, keyPrefix })
  }
  const own = {
    ...SAFE_CLUSTER,
    lazyConnect: false,
    clusterRetryStrategy: (times: number): number => reconnectDelayMs(times - 1, random),
    // Nodes are connected again by the cluster, which asks who serves the slots first.
    clusterNodeRetryStrategy: null,
    redisOptions: { ...SAFE_NODE, keyPrefix: '', disconnectTimeout: DISCONNECT_TIMEOUT_MS },
  }
  return connectionOver(cluster.duplicate([], own), { isCluster: true, isOwned: true, keyPrefix })
}

const KEY_PREFIX = /^[A-Za-z0-9_.:-]{0,64}$/

/** The `keyPrefix` of a client. Braces would put all keys of a cluster into one slot. */
function keyPrefixOf({ options: { keyPrefix = '' } }: IoRedisClient): string {
  if (typeof keyPrefix === 'string' && KEY_PREFIX.test(keyPrefix)) return keyPrefix
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: '"keyPrefix" of the ioredis client cannot be used by the Redis store',
    received: keyPrefix,
    expected: 'at most 64 letters, digits or any of _ . : -',
    action: 'Pass a client without keyPrefix, and set `prefix` of the Redis store instead.',
  })
}

/** What counts for an option that is not given. */
const UNSET: Readonly<Record<string, unknown>> = { keyPrefix: '', stringNumbers: false, enableAutoPipelining: false }

function holds(options: Readonly<Record<string, unknown>>, wanted: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(wanted).every(([name, value]) => (options[name] ?? UNSET[name]) === value)
}

function connectionOver(
  client: IoRedisClient,
  { isCluster, isOwned, keyPrefix }: { isCluster: boolean; isOwned: boolean; keyPrefix: string },
): RedisConnection {
  let failure: Error | undefined
  const note = (error: Error): void => {
    failure = error
  }
  // Without a listener ioredis prints every failure to connect. One that belongs to the caller is left as it is.
  if (isOwned) client.on('error', note)
  return {
    client: isCluster ? 'ioredis cluster' : 'ioredis',
    isCluster,
    keyPrefix,
    isReady() {
      // With `lazyConnect` a client waits for its first command, which it would hold until it is connected.
      if (client.status === 'wait') client.connect().catch(note)
      return client.status === 'ready'
    },
    obstacle: () => failure,
    send: (command) => client.callBuffer(...command).catch(rethrow),
    close() {
      if (isOwned) client.disconnect()
      return Promise.resolve()
    },
  }
}

const NOT_WRITTEN: ReadonlySet<string> = new Set([
  "Stream isn't writeable and enableOfflineQueue options is false",
  "Cluster isn't ready and enableOfflineQueue options is false",
])

/** A cluster that gave up following. With safe options only answers are followed, each of which says that nothing was done. */
const REDIRECTED = /^Too many Cluster redirections\. Last error: ReplyError: /

function rethrow(error: unknown): never {
  const message = error instanceof Error ? error.message : ''
  if (NOT_WRITTEN.has(message)) throw notSent('ioredis', error)
  throw REDIRECTED.test(message) ? serverAnswer(`TRYAGAIN ${message}`, error) : error
}
