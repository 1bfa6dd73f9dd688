import type { Random } from '@sluice/core'
import type { Reconnectable } from '../../connection/connection-keeper.ts'
import { reconnectDelayMs } from '../../connection/reconnect-delay.ts'
import type { RedisAddress } from '../../connection/redis-url.ts'
import type { UrlOptions } from '../../connection/url-options.ts'
import type { NodeRedisCluster } from './node-redis-cluster-connection.ts'
import type { NodeRedisSentinel } from './node-redis-sentinel-connection.ts'

/** What is used of the package `redis`, version 5 and later. */
export interface NodeRedisModule {
  createCluster(options: object): NodeRedisCluster & Reconnectable
  createSentinel(options: object): NodeRedisSentinel & Reconnectable
}

const CONNECT_TIMEOUT_MS = 1000

/** How long the nodes of a cluster that are away are tried before another is asked who serves their slots now. */
const TOPOLOGY_AFTER_MS = 300

/** Options of `createCluster`: nodes are connected when first used, so that one that is away does not hold up the others. */
export function clusterOptions(addresses: readonly RedisAddress[], { tls }: UrlOptions, random: Random): object {
  const [first] = addresses
  return {
    rootNodes: addresses.map(({ host, port }) => ({ socket: { host, port } })),
    defaults: {
      ...identity(first!),
      disableOfflineQueue: true,
      socket: { ...socket(first!, tls), reconnectStrategy: strategy(random) },
    },
    minimizeConnections: true,
    topologyRefreshOnReconnectionAttemptStrategy: TOPOLOGY_AFTER_MS,
  }
}

/** Options of `createSentinel`. */
export function sentinelOptions(
  addresses: readonly RedisAddress[],
  { tls, sentinel }: UrlOptions,
  random: Random,
): object {
  const [first] = addresses
  const { name, ...credentials } = sentinel!
  const common = { disableOfflineQueue: true, socket: { ...socket(first!, tls), reconnectStrategy: strategy(random) } }
  return {
    name,
    sentinelRootNodes: addresses.map(({ host, port }) => ({ host, port })),
    nodeClientOptions: { ...common, ...identity(first!), database: first!.database },
    sentinelClientOptions: { ...common, ...credentials },
    reserveClient: true,
  }
}

function identity({ username, password }: RedisAddress): object {
  return { ...(username !== undefined && { username }), ...(password !== undefined && { password }) }
}

function socket(address: RedisAddress, tls: UrlOptions['tls']): object {
  return {
    ...(address.tls && { tls: true, ...tls }),
    connectTimeout: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    reconnectStrategy: false,
  }
}

function strategy(random: Random): (retries: number) => number {
  return (retries) => reconnectDelayMs(retries, random)
}
