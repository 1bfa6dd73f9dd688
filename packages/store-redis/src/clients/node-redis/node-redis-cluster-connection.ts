import type { Timers } from '@sluice/core'
import { systemTimers } from '@sluice/core'
import { notSent, serverAnswer } from '../../connection/client-failure.ts'
import type { RedisArgument, RedisConnection } from '../../connection/connection.ts'
import { hashSlotOf } from '../../connection/hash-slot.ts'
import type { NodeRedisCommandOptions } from './node-redis-connection.ts'
import { NodeRedisUse, QUEUED, rethrow } from './node-redis-connection.ts'

/** A node of a cluster, as node-redis knows it. */
export interface NodeRedisClusterNode {
  readonly address: string
  client?: { readonly isReady: boolean; destroy(): void } | undefined
  /** Set while it is connected for the first time. */
  readonly connectPromise?: Promise<unknown> | undefined
}

/** Is told of what goes to the nodes of a cluster, and what comes back. */
export interface NodeWatch {
  /** A command goes to a node. */
  asked(node: NodeRedisClusterNode): void
  /** A node has answered, or its connection has broken, which the client sees to. */
  heard(node: NodeRedisClusterNode): void
}

/** How long a command may wait while the node that it goes to is connected for the first time. */
const LONGEST_WAIT_MS = 100

/** What is used of a client made by `createCluster` of node-redis, version 5 and later. */
export interface NodeRedisCluster {
  readonly isOpen: boolean
  readonly isReady: boolean
  /** By slot: the nodes that serve it. */
  readonly slots: readonly ({ readonly master: NodeRedisClusterNode } | undefined)[]
  /** Connects a node that was never used. */
  nodeClient(node: NodeRedisClusterNode): Promise<unknown>
  sendCommand(
    firstKey: string | undefined,
    isReadonly: boolean,
    args: readonly RedisArgument[],
    options?: NodeRedisCommandOptions,
  ): Promise<unknown>
}

/**
 * A cluster client of node-redis as a connection. It follows MOVED and ASK by itself. Commands go to primaries only, and
 * none to one whose connection is down: node-redis would keep it and send it whenever the node is back. When a primary is
 * lost, node-redis looks for its successor after 5 seconds; `topologyRefreshOnReconnectionAttemptStrategy: 300` makes it
 * sooner.
 */
export function nodeRedisClusterConnection(
  cluster: NodeRedisCluster,
  close: () => Promise<void>,
  { timers = systemTimers, silence }: { readonly timers?: Timers; readonly silence?: NodeWatch } = {},
): RedisConnection {
  const use = new NodeRedisUse('createCluster', cluster)
  return {
    client: 'node-redis cluster',
    isCluster: true,
    isReady: () => use.isReady(),
    obstacle: () => use.obstacle(),
    async send(command, key) {
      const firstKey = key === '' ? undefined : key
      const node = firstKey === undefined ? undefined : cluster.slots[hashSlotOf(firstKey)]?.master
      if (firstKey !== undefined && !(await isServed(cluster, node, timers))) {
        throw notSent('node-redis', 'the node that has the key is not connected', true)
      }
      // A node that is not connected owes nothing.
      if (node !== undefined) silence?.asked(node)
      try {
        return await cluster.sendCommand(firstKey, false, command, QUEUED)
      } catch (error) {
        throw redirectionIn(error) ?? rethrow(error)
      } finally {
        if (node !== undefined) silence?.heard(node)
      }
    },
    close,
  }
}

/**
 * Whether a primary may be sent to. One that was never used is connected, and waited for: a moment only, because
 * node-redis would keep the command for as long as that takes.
 */
function isServed(
  cluster: NodeRedisCluster,
  node: NodeRedisClusterNode | undefined,
  timers: Timers,
): boolean | Promise<boolean> {
  if (node === undefined || node.client?.isReady === true) return node !== undefined
  const connecting = node.client === undefined ? cluster.nodeClient(node) : node.connectPromise
  return connecting === undefined ? false : comes(connecting, timers)
}

/** Whether a promise is kept within a moment. */
function comes(promise: Promise<unknown>, timers: Timers): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = timers.schedule(LONGEST_WAIT_MS, () => resolve(false))
    const settle = (isKept: boolean): void => {
      cancel()
      resolve(isKept)
    }
    promise.then(
      () => settle(true),
      () => settle(false),
    )
  })
}

/** Too many redirections, each of which said that nothing was done: the cluster is about to change. */
function redirectionIn(error: unknown): Error | undefined {
  if (!(error instanceof Error) || error.constructor.name !== 'MaxCommandRedirectionsError') return undefined
  return serverAnswer(`TRYAGAIN ${error.message}`, error)
}
