import type { Random } from '@sluice/core'
import { SluiceError } from '@sluice/core'
import type { RedisArgument, RedisConnection } from '../connection/connection.ts'
import { notSent, serverError } from '../connection/connection.ts'
import { reconnectDelayMs } from '../connection/reconnector.ts'

/** The part of an ioredis client that is used, version 5 and later. */
export interface IoRedisClient {
  readonly status: string
  readonly options: Readonly<Record<string, unknown>>
  connect(): Promise<unknown>
  callBuffer(...command: RedisArgument[]): Promise<unknown>
  disconnect(): void
  on(event: 'error', listener: (error: Error) => void): unknown
}

/** A `Redis` client: one server, or a primary behind sentinels. */
export interface IoRedisSingle extends IoRedisClient {
  readonly isCluster?: false
  duplicate(options: Readonly<Record<string, unknown>>): IoRedisClient
}

/** A `Cluster` client. */
export interface IoRedisCluster extends IoRedisClient {
  readonly isCluster: true
  duplicate(nodes: readonly [], options: Readonly<Record<string, unknown>>): IoRedisClient
}

/**
 * Required options. By default ioredis queues commands for an unreachable server, and resends in-flight commands when
 * the connection breaks, which charges twice. With only the first option, in-flight commands would never settle. The
 * others keep integers as numbers, keys unchanged, and commands ungrouped.
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
 * The same for a cluster, whose options override those of its nodes: `enableOfflineQueue` in `redisOptions` has no
 * effect, and a command whose connection broke is resent to another node unless `retryDelayOnFailover` is 0.
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

/**
 * Timeout for closing an owned connection. ioredis keeps a timer for this long, even after the connection has closed.
 */
const DISCONNECT_TIMEOUT_MS = 200

/**
 * Adapts a client of ioredis. If its options could charge twice, the store uses a `duplicate()` with safe options
 * instead, and closes that. Safe are `autoResendUnfulfilledCommands: false`, `maxRetriesPerRequest: 0`,
 * `enableOfflineQueue: false`, and no `keyPrefix`, `stringNumbers` or `enableAutoPipelining`. The store adds the
 * `keyPrefix` before its own prefix.
 */
export function ioRedisConnection(client: IoRedisSingle, random: Random): RedisConnection {
  const keyPrefix = keyPrefixOf(client)
  if (hasOptions(client.options, SAFE)) return connectionOver(client, { isCluster: false, isOwned: false, keyPrefix })
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
 * Adapts a cluster client of ioredis, as {@link ioRedisConnection} does. Safe are `enableOfflineQueue: false`,
 * `retryDelayOnFailover: 0`, `retryDelayOnClusterDown: 0`, `retryDelayOnTryAgain: 0`, `scaleReads: 'master'`, no
 * `keyPrefix` or `enableAutoPipelining`, and in `redisOptions` `autoResendUnfulfilledCommands: false`,
 * `maxRetriesPerRequest: 0` and no `stringNumbers`. The client follows MOVED and ASK.
 */
export function ioRedisClusterConnection(cluster: IoRedisCluster, random: Random): RedisConnection {
  const { redisOptions = {} } = cluster.options as { redisOptions?: Readonly<Record<string, unknown>> }
  // ioredis copies the one of `redisOptions` when the cluster has none.
  const keyPrefix = keyPrefixOf(cluster)
  if (hasOptions(cluster.options, SAFE_CLUSTER) && hasOptions(redisOptions, SAFE_NODE)) {
    return connectionOver(cluster, { isCluster: true, isOwned: false, keyPrefix })
  }
  const own = {
    ...SAFE_CLUSTER,
    lazyConnect: false,
    clusterRetryStrategy: (times: number): number => reconnectDelayMs(times - 1, random),
    // The cluster reconnects its nodes itself, after refreshing the slots.
    clusterNodeRetryStrategy: null,
    redisOptions: { ...SAFE_NODE, keyPrefix: '', disconnectTimeout: DISCONNECT_TIMEOUT_MS },
  }
  return connectionOver(cluster.duplicate([], own), { isCluster: true, isOwned: true, keyPrefix })
}

const KEY_PREFIX = /^[A-Za-z0-9_.:-]{0,64}$/

/** The `keyPrefix` of a client. Braces are not allowed: they would put all keys of a cluster into one slot. */
function keyPrefixOf({ options: { keyPrefix = '' } }: IoRedisClient): string {
  if (typeof keyPrefix === 'string' && KEY_PREFIX.test(keyPrefix)) return keyPrefix
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: '"keyPrefix" of the ioredis client cannot be used by the Redis store',
    received: keyPrefix,
    expected: 'at most 64 letters, digits or any of _ . : -',
    action: 'Pass a client without keyPrefix, and set `prefix` of the Redis store instead.',
  })
}

/** Defaults of ioredis. */
const DEFAULTS: Readonly<Record<string, unknown>> = { keyPrefix: '', stringNumbers: false, enableAutoPipelining: false }

function hasOptions(options: Readonly<Record<string, unknown>>, wanted: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(wanted).every(([name, value]) => (options[name] ?? DEFAULTS[name]) === value)
}

function connectionOver(
  client: IoRedisClient,
  { isCluster, isOwned, keyPrefix }: { isCluster: boolean; isOwned: boolean; keyPrefix: string },
): RedisConnection {
  let failure: Error | undefined
  const note = (error: Error): void => {
    failure = error
  }
  // Without a listener ioredis prints every connection error. The caller's own client is left as it is.
  if (isOwned) client.on('error', note)
  return {
    client: isCluster ? 'ioredis cluster' : 'ioredis',
    isCluster,
    keyPrefix,
    isReady() {
      // A client with `lazyConnect` connects on its first command, which it would queue.
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

/**
 * Too many redirections. With safe options only error replies are followed, each of which says that nothing was
 * executed.
 */
const REDIRECTED = /^Too many Cluster redirections\. Last error: ReplyError: /

function rethrow(error: unknown): never {
  const message = error instanceof Error ? error.message : ''
  if (NOT_WRITTEN.has(message)) throw notSent('ioredis', error)
  throw REDIRECTED.test(message) ? serverError(`TRYAGAIN ${message}`, error) : error
}
