import type { Random } from '@sluice/core'
import type { Reconnectable } from '../../connection/reconnector.ts'
import { reconnectDelayMs } from '../../connection/reconnector.ts'
import type { RedisAddress, UrlOptions } from '../../connection/redis-url.ts'
import type { NodeRedisCluster } from './node-redis-cluster-connection.ts'
import type { NodeRedisSentinel } from './node-redis-sentinel-connection.ts'

/** The part of the package `redis` that is used, version 5 and later. */
export interface NodeRedisModule {
  createCluster(options: object): NodeRedisCluster & Reconnectable
  createSentinel(options: object): NodeRedisSentinel & Reconnectable
}

const CONNECT_TIMEOUT_MS = 1000

/** How long to reconnect to an unreachable node before the slots are refreshed from another one. */
const TOPOLOGY_REFRESH_AFTER_MS = 300

/** Options of `createCluster`. Nodes connect on first use, so that an unreachable one does not delay the others. */
export function clusterOptions(addresses: readonly RedisAddress[], { tls }: UrlOptions, random: Random): object {
  const [first] = addresses
  return {
    rootNodes: addresses.map(({ host, port }) => ({ socket: { host, port } })),
    defaults: {
      ...credentialsOf(first!),
      disableOfflineQueue: true,
      socket: { ...socketOptions(first!, tls), reconnectStrategy: reconnectStrategy(random) },
    },
    minimizeConnections: true,
    topologyRefreshOnReconnectionAttemptStrategy: TOPOLOGY_REFRESH_AFTER_MS,
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
  const common = {
    disableOfflineQueue: true,
    socket: { ...socketOptions(first!, tls), reconnectStrategy: reconnectStrategy(random) },
  }
  return {
    name,
    sentinelRootNodes: addresses.map(({ host, port }) => ({ host, port })),
    nodeClientOptions: { ...common, ...credentialsOf(first!), database: first!.database },
    sentinelClientOptions: { ...common, ...credentials },
    reserveClient: true,
  }
}

function credentialsOf({ username, password }: RedisAddress): object {
  return { ...(username !== undefined && { username }), ...(password !== undefined && { password }) }
}

function socketOptions(address: RedisAddress, tls: UrlOptions['tls']): object {
  return {
    ...(address.tls && { tls: true, ...tls }),
    connectTimeout: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    reconnectStrategy: false,
  }
}

function reconnectStrategy(random: Random): (retries: number) => number {
  return (retries) => reconnectDelayMs(retries, random)
}
