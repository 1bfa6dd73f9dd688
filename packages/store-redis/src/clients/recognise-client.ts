import type { Random, Timers } from '@sluice/core'
import { SluiceError, systemRandom, systemTimers } from '@sluice/core'
import type { RedisConnection } from '../connection/connection.ts'
import type { Reconnectable } from '../connection/reconnector.ts'
import { Reconnector } from '../connection/reconnector.ts'
import type { GlideClient } from './glide-connection.ts'
import { glideConnection } from './glide-connection.ts'
import type { IoRedisCluster, IoRedisSingle } from './ioredis-connection.ts'
import { ioRedisClusterConnection, ioRedisConnection } from './ioredis-connection.ts'
import type { NodeRedisCluster } from './node-redis/node-redis-cluster-connection.ts'
import { nodeRedisClusterConnection } from './node-redis/node-redis-cluster-connection.ts'
import type { NodeRedisClient } from './node-redis/node-redis-connection.ts'
import { nodeRedisConnection } from './node-redis/node-redis-connection.ts'
import type { NodeRedisSentinel } from './node-redis/node-redis-sentinel-connection.ts'
import { NodeRedisSentinelConnection } from './node-redis/node-redis-sentinel-connection.ts'

/** Options of {@link recogniseClient}, for connections that the store creates itself. */
export interface RecogniseOptions {
  readonly timers?: Timers
  readonly random?: Random
}

/** A sentinel client of node-redis. */
interface SentinelClient {
  duplicate(options: object): NodeRedisSentinel & Reconnectable
}

/** Sentinel clients look for the primary once per second, at most 16 times. */
const SENTINEL_CONNECT_TIMEOUT_MS = 20_000

/**
 * Adapts a client, which is recognised by its methods, not by its class: node-redis 5 and later (`createClient`,
 * `createCluster`, `createSentinel`), ioredis 5 and later (`Redis`, also with sentinels, and `Cluster`), valkey-glide 2
 * and later (`GlideClient`, `GlideClusterClient`).
 *
 * The store never closes or connects the caller's client: a node-redis client that was never connected raises
 * `SLUICE_INVALID_OPTION` on use. If the options of a client could charge twice, the store duplicates it with safe
 * options, and closes the duplicate: every `createSentinel` client, and ioredis clients unless their options are safe.
 *
 * @throws SluiceError `SLUICE_INVALID_OPTION` for any other value
 */
export function recogniseClient(client: unknown, options: RecogniseOptions = {}): RedisConnection {
  const { timers = systemTimers, random = systemRandom } = options
  const leaveOpen = (): Promise<void> => Promise.resolve()
  if (hasMethods(client, 'callBuffer', 'duplicate', 'disconnect')) {
    const isCluster = (client as { isCluster?: unknown }).isCluster === true
    return isCluster
      ? ioRedisClusterConnection(client as IoRedisCluster, random)
      : ioRedisConnection(client as IoRedisSingle, random)
  }
  if (hasMethods(client, 'customCommand'))
    return glideConnection(client as GlideClient, hasMethods(client, 'pubsubShardChannels'))
  if (hasMethods(client, 'sendCommand', 'duplicate') && hasProperties(client, 'isOpen', 'isReady')) {
    if (hasMethods(client, 'getSentinelNode', '_execute'))
      return sentinelConnection(client as SentinelClient, { timers, random })
    return hasProperties(client, 'slots')
      ? nodeRedisClusterConnection(client as NodeRedisCluster, leaveOpen, { timers })
      : nodeRedisConnection(client as NodeRedisClient, leaveOpen)
  }
  throw notRecognised(client)
}

function sentinelConnection(sentinel: SentinelClient, options: Required<RecogniseOptions>): RedisConnection {
  const own = sentinel.duplicate({ reserveClient: true, masterPoolSize: 1, replicaPoolSize: 0 })
  const reconnector = new Reconnector(own, { ...options, connectTimeoutMs: SENTINEL_CONNECT_TIMEOUT_MS })
  return new NodeRedisSentinelConnection(own, options.timers, () => reconnector.close())
}

function hasMethods(value: unknown, ...methods: readonly string[]): boolean {
  return (
    hasProperties(value, ...methods) &&
    methods.every((name) => typeof (value as Record<string, unknown>)[name] === 'function')
  )
}

function hasProperties(value: unknown, ...names: readonly string[]): boolean {
  return typeof value === 'object' && value !== null && names.every((name) => name in value)
}

function notRecognised(received: unknown): SluiceError {
  return new SluiceError('SLUICE_INVALID_OPTION', {
    problem: 'the Redis store does not know this client',
    received,
    expected:
      'a client of node-redis (createClient, createCluster or createSentinel), ioredis (Redis or Cluster) or ' +
      'valkey-glide ' +
      '(GlideClient or GlideClusterClient), or a URL such as redis://localhost:6379',
  })
}
