import type { Timers } from '@sluice/core'
import { systemTimers } from '@sluice/core'
import { hashSlotOf } from '../../connection/cluster-slots.ts'
import type { RedisArgument, RedisConnection } from '../../connection/connection.ts'
import { notSent, serverError } from '../../connection/connection.ts'
import type { NodeRedisCommandOptions } from './node-redis-connection.ts'
import { ClientState, QUEUED, rethrow } from './node-redis-connection.ts'

/** A node of a cluster, as node-redis represents it. */
export interface NodeRedisClusterNode {
  readonly address: string
  client?: { readonly isReady: boolean; destroy(): void } | undefined
  /** Set while it connects for the first time. */
  readonly connectPromise?: Promise<unknown> | undefined
}

/** Maximum time that a command waits for the first connection to its node. */
const NODE_CONNECT_TIMEOUT_MS = 100

/** The part of a `createCluster` client of node-redis that is used, version 5 and later. */
export interface NodeRedisCluster {
  readonly isOpen: boolean
  readonly isReady: boolean
  /** The nodes that serve each slot. */
  readonly slots: readonly ({ readonly master: NodeRedisClusterNode } | undefined)[]
  /** Connects to a node that was not used yet. */
  nodeClient(node: NodeRedisClusterNode): Promise<unknown>
  sendCommand(
    firstKey: string | undefined,
    isReadonly: boolean,
    args: readonly RedisArgument[],
    options?: NodeRedisCommandOptions,
  ): Promise<unknown>
}

/**
 * Adapts a cluster client of node-redis. The client follows MOVED and ASK. Commands go to primaries only, and never to
 * one whose connection is down: node-redis would queue the command until the node is back. When a primary is lost,
 * node-redis looks for its successor after 5 seconds; `topologyRefreshOnReconnectionAttemptStrategy: 300` makes that
 * 0.3 seconds.
 */
export function nodeRedisClusterConnection(
  cluster: NodeRedisCluster,
  close: () => Promise<void>,
  {
    timers = systemTimers,
    silence,
  }: { readonly timers?: Timers; readonly silence?: Pick<SilenceDetector, 'sent' | 'replied'> } = {},
): RedisConnection {
  const state = new ClientState('createCluster', cluster)
  return {
    client: 'node-redis cluster',
    isCluster: true,
    isReady: () => state.isReady(),
    obstacle: () => state.obstacle(),
    async send(command, key) {
      const firstKey = key === '' ? undefined : key
      const node = firstKey === undefined ? undefined : cluster.slots[hashSlotOf(firstKey)]?.master
      if (firstKey !== undefined && !(await isConnected(cluster, node, timers))) {
        throw notSent('node-redis', 'the node that has the key is not connected', true)
      }
      if (node !== undefined) silence?.sent(node)
      try {
        return await cluster.sendCommand(firstKey, false, command, QUEUED)
      } catch (error) {
        throw tooManyRedirections(error) ?? rethrow(error)
      } finally {
        if (node !== undefined) silence?.replied(node)
      }
    },
    close,
  }
}

/** Whether a primary is connected. If it was not used yet, connects to it and waits for at most 100 ms. */
function isConnected(
  cluster: NodeRedisCluster,
  node: NodeRedisClusterNode | undefined,
  timers: Timers,
): boolean | Promise<boolean> {
  if (node === undefined || node.client?.isReady === true) return node !== undefined
  const connecting = node.client === undefined ? cluster.nodeClient(node) : node.connectPromise
  return connecting === undefined ? false : resolvesInTime(connecting, timers)
}

function resolvesInTime(promise: Promise<unknown>, timers: Timers): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = timers.schedule(NODE_CONNECT_TIMEOUT_MS, () => resolve(false))
    const settle = (isResolved: boolean): void => {
      cancel()
      resolve(isResolved)
    }
    promise.then(
      () => settle(true),
      () => settle(false),
    )
  })
}

/** Every redirection says that nothing was executed, so this is the same as TRYAGAIN: the slots are moving. */
function tooManyRedirections(error: unknown): Error | undefined {
  if (!(error instanceof Error) || error.constructor.name !== 'MaxCommandRedirectionsError') return undefined
  return serverError(`TRYAGAIN ${error.message}`, error)
}

/** An undocumented part of the cluster client of node-redis, which a version may lack. */
interface TopologyRefresh {
  readonly _slots?: {
    readonly masters?: readonly NodeRedisClusterNode[]
    rediscover?(startWith: unknown, excludedAddresses: ReadonlySet<string>): Promise<unknown>
  }
}

/** A node that has not replied to any command for so long is considered dead. */
const MAX_SILENCE_MS = 3000

/**
 * Drops connections to nodes that do not reply: a process that hangs, a network that loses packets. node-redis would
 * wait for them forever, even after a failover. It checks when a command is sent, so it needs no timer.
 */
export class SilenceDetector {
  readonly #cluster: NodeRedisCluster
  readonly #monotonicMs: () => number
  /** Since when a node has not replied to any command. */
  readonly #since = new WeakMap<NodeRedisClusterNode, number>()

  constructor(cluster: NodeRedisCluster, monotonicMs: () => number) {
    this.#cluster = cluster
    this.#monotonicMs = monotonicMs
  }

  sent(node: NodeRedisClusterNode): void {
    const nowMs = this.#monotonicMs()
    const sinceMs = this.#since.get(node)
    if (sinceMs !== undefined && nowMs - sinceMs <= MAX_SILENCE_MS) return
    this.#since.set(node, nowMs)
    if (sinceMs !== undefined) void this.#drop(node)
  }

  /** A node has replied, or its connection broke, which the client handles. */
  replied(node: NodeRedisClusterNode): void {
    this.#since.delete(node)
  }

  /** Refreshes the slots from another node, and drops the connection to the silent one. Never rejects. */
  async #drop(node: NodeRedisClusterNode): Promise<void> {
    const { _slots: slots } = this.#cluster as TopologyRefresh
    const other = slots?.masters?.find((one) => one !== node && one.client?.isReady === true)
    try {
      if (other !== undefined) await slots?.rediscover?.(other.client, new Set([node.address]))
    } catch {
      // The next drop tries again.
    }
    const { client } = node
    // The next command to this node connects again.
    node.client = undefined
    client?.destroy()
  }
}
