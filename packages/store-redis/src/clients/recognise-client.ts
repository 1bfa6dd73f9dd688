import type { Random, Timers } from '@sluice/core'
import { SluiceError, systemRandom, systemTimers } from '@sluice/core'
import type { RedisConnection } from '../connection/connection.ts'
import type { Reconnectable } from '../connection/connection-keeper.ts'
import { ConnectionKeeper } from '../connection/connection-keeper.ts'
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

/** Where time and chance come from, for connections that the store makes of its own. */
export interface RecogniseOptions {
  readonly timers?: Timers
  readonly random?: Random
}

/** A sentinel client that can be copied. */
interface CopiedSentinel {
  duplicate(options: object): NodeRedisSentinel & Reconnectable
}

/** Sentinel clients find the primary in steps of a second, 16 of them before they fail. */
const SENTINEL_WITHIN_MS = 20_000

/**
 * A connection over a client, known by what it can do, not by its class: node-redis 5 and later (`createClient`,
 * `createCluster`, `createSentinel`), ioredis 5 and later (`Redis`, also with sentinels, and `Cluster`), valkey-glide 2 and
 * later (`GlideClient`, `GlideClusterClient`).
 *
 * A client that is given is never closed, and never connected: one of node-redis that nobody has connected raises
 * `SLUICE_INVALID_OPTION` on use. Where a client as it is set could charge twice, the store makes a connection of its own
 * like it, and closes that: for every `createSentinel`, and for ioredis unless its options are safe.
 *
 * @throws SluiceError `SLUICE_INVALID_OPTION` when it is none of these
 */
export function recogniseClient(client: unknown, options: RecogniseOptions = {}): RedisConnection {
  const { timers = systemTimers, random = systemRandom } = options
  const kept = (): Promise<void> => Promise.resolve()
  if (can(client, 'callBuffer', 'duplicate', 'disconnect')) {
    const isCluster = (client as { isCluster?: unknown }).isCluster === true
    return isCluster
      ? ioRedisClusterConnection(client as IoRedisCluster, random)
      : ioRedisConnection(client as IoRedisSingle, random)
  }
  if (can(client, 'customCommand')) return glideConnection(client as GlideClient, can(client, 'pubsubShardChannels'))
  if (can(client, 'sendCommand', 'duplicate') && has(client, 'isOpen', 'isReady')) {
    if (can(client, 'getSentinelNode', '_execute'))
      return sentinelConnection(client as CopiedSentinel, { timers, random })
    return has(client, 'slots')
      ? nodeRedisClusterConnection(client as NodeRedisCluster, kept, { timers })
      : nodeRedisConnection(client as NodeRedisClient, kept)
  }
  throw notRecognised(client)
}

function sentinelConnection(sentinel: CopiedSentinel, options: Required<RecogniseOptions>): RedisConnection {
  const own = sentinel.duplicate({ reserveClient: true, masterPoolSize: 1, replicaPoolSize: 0 })
  const keeper = new ConnectionKeeper(own, { ...options, connectWithinMs: SENTINEL_WITHIN_MS })
  return new NodeRedisSentinelConnection(own, options.timers, () => keeper.close())
}

function can(value: unknown, ...methods: readonly string[]): boolean {
  return (
    has(value, ...methods) && methods.every((name) => typeof (value as Record<string, unknown>)[name] === 'function')
  )
}

function has(value: unknown, ...names: readonly string[]): boolean {
  return typeof value === 'object' && value !== null && names.every((name) => name in value)
}

function notRecognised(received: unknown): SluiceError {
  return new SluiceError('SLUICE_INVALID_OPTION', {
    problem: 'the Redis store does not know this client',
    received,
    expected:
      'a client of node-redis (createClient, createCluster or createSentinel), ioredis (Redis or Cluster) or valkey-glide ' +
      '(GlideClient or GlideClusterClient), or a URL such as redis://localhost:6379',
  })
}
