import type { NodeRedisCluster, NodeRedisClusterNode, NodeWatch } from './node-redis-cluster-connection.ts'

/** What is used of a cluster client of node-redis besides: it is not documented, and may not be there. */
interface Rediscovering {
  readonly _slots?: {
    readonly masters?: readonly NodeRedisClusterNode[]
    rediscover?(startWith: unknown, excludedAddresses: ReadonlySet<string>): Promise<unknown>
  }
}

/** A node that owes answers and has given none for so long is dead, whatever the network says. */
const LONGEST_SILENCE_MS = 3000

/**
 * Notices nodes of a cluster that are connected and silent: machines that hang, networks that swallow. node-redis waits for
 * them for ever, also when the cluster has long put another in their place. They are looked at only when there is something
 * to send, so no timer is needed.
 */
export class SilentNodes implements NodeWatch {
  readonly #cluster: NodeRedisCluster
  readonly #monotonicMs: () => number
  /** Since when a node has owed answers without giving any. */
  readonly #since = new WeakMap<NodeRedisClusterNode, number>()

  constructor(cluster: NodeRedisCluster, monotonicMs: () => number) {
    this.#cluster = cluster
    this.#monotonicMs = monotonicMs
  }

  asked(node: NodeRedisClusterNode): void {
    const nowMs = this.#monotonicMs()
    const sinceMs = this.#since.get(node)
    if (sinceMs !== undefined && nowMs - sinceMs <= LONGEST_SILENCE_MS) return
    this.#since.set(node, nowMs)
    if (sinceMs !== undefined) void this.#giveUp(node)
  }

  heard(node: NodeRedisClusterNode): void {
    this.#since.delete(node)
  }

  /** Asks another node who serves the slots now, and ends the connection to the silent one. Never fails. */
  async #giveUp(node: NodeRedisClusterNode): Promise<void> {
    const { _slots: slots } = this.#cluster as Rediscovering
    const other = slots?.masters?.find((one) => one !== node && one.client?.isReady === true)
    try {
      if (other !== undefined) await slots?.rediscover?.(other.client, new Set([node.address]))
    } catch {
      // It is asked again if this one stays silent.
    }
    const { client } = node
    // The next command to it, if there is one, connects it anew.
    node.client = undefined
    client?.destroy()
  }
}
