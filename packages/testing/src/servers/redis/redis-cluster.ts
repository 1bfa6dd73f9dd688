import { ServerError } from '../process/server-error.ts'
import { formCluster } from './cluster-formation.ts'
import type { NodeView, SlotRange } from './cluster-view.ts'
import { serves, untilAgreed, viewOf } from './cluster-view.ts'
import type { RedisServer } from './redis-server.ts'
import { SlotMigration, slotOf } from './slot-migration.ts'

/** Options of a {@link RedisCluster}. */
export interface RedisClusterOptions {
  /** Number of masters. Default: 3, the fewest with a majority that can elect a replica. */
  readonly masters?: number
  /** Replicas per master. Default: 1. */
  readonly replicasPerMaster?: number
  /** Milliseconds of silence after which a node counts as failed. Default: 1000. */
  readonly nodeTimeoutMs?: number
  /** Directives of redis.conf for every node. */
  readonly config?: Readonly<Record<string, string>>
}

/** A node, as of the last refresh. */
export interface ClusterNode {
  readonly server: RedisServer
  readonly id: string
  readonly role: 'master' | 'replica'
  /** The id of its master, if it is a replica. */
  readonly masterId: string | undefined
  /** Its slots; empty for a replica. */
  readonly slots: readonly SlotRange[]
}

/** A real Redis Cluster on 127.0.0.1 for tests. */
export class RedisCluster {
  readonly #servers: readonly RedisServer[]
  #nodes: readonly ClusterNode[] = []

  private constructor(servers: readonly RedisServer[]) {
    this.#servers = servers
  }

  /** Starts the nodes; resolves when all of them serve, after about 2.5 seconds. */
  static async start(options: RedisClusterOptions = {}): Promise<RedisCluster> {
    const { masters = 3, replicasPerMaster = 1, nodeTimeoutMs = 1000, config = {} } = options
    const cluster = new RedisCluster(await formCluster({ masters, replicasPerMaster, nodeTimeoutMs, config }))
    await cluster.refresh()
    return cluster
  }

  /**
   * All nodes, including stopped ones, always in the same order. Changes made by the cluster itself are visible after
   * {@link refresh}.
   */
  get nodes(): readonly ClusterNode[] {
    return this.#nodes
  }

  get urls(): readonly string[] {
    return this.#servers.map(({ url }) => url)
  }

  /** The slot of a key, from 0 to 16 383, by the rule of hash tags. */
  slotOf(key: string): number {
    return slotOf(key)
  }

  /** The node that serves a slot. */
  masterOf(slot: number): ClusterNode {
    return this.#find(`master of slot ${slot}`, (node) => serves(node, slot))
  }

  /** A replica of this master; the first if there are several. */
  replicaOf(master: ClusterNode): ClusterNode {
    return this.#find(`replica of the master on port ${master.server.port}`, (node) => node.masterId === master.id)
  }

  /** Reads the state of the cluster from the first running node. */
  async refresh(): Promise<void> {
    this.#adopt(await viewOf(this.#running()[0]!))
  }

  /** Waits until all running nodes agree and serve, for instance after a restart of one. */
  untilSettled(): Promise<void> {
    return this.#settle('to agree', () => true)
  }

  /**
   * Promotes the replica of a master. If the old master runs, it hands over cleanly and no write is lost; otherwise the
   * replica takes over by force. Resolves with the new master when all running nodes know it.
   */
  async failover(master: ClusterNode): Promise<ClusterNode> {
    const replica = this.replicaOf(master)
    const how = master.server.status === 'running' ? [] : ['TAKEOVER']
    await replica.server.command('CLUSTER', 'FAILOVER', ...how)
    return await this.untilFailedOver(master)
  }

  /** Waits for the cluster's own failover of a stopped master; resolves with the new one when all nodes know it. */
  async untilFailedOver(master: ClusterNode): Promise<ClusterNode> {
    const [[slot] = [0]] = master.slots
    await this.#settle(`to replace the master on port ${master.server.port}`, (view) =>
      view.some((node) => node.id !== master.id && serves(node, slot)),
    )
    return this.masterOf(slot)
  }

  /** Begins to move a slot to another master, and leaves it in migration. */
  async beginMigration(slot: number, to: ClusterNode): Promise<SlotMigration> {
    const settle = (): Promise<void> =>
      this.#settle(`to find slot ${slot} on port ${to.server.port}`, (view) =>
        view.some((node) => node.id === to.id && serves(node, slot)),
      )
    return await SlotMigration.begin(slot, { from: this.masterOf(slot), to }, settle)
  }

  /** Moves a slot to another master with all its keys. Resolves when all nodes know. */
  async migrateSlot(slot: number, to: ClusterNode): Promise<void> {
    const migration = await this.beginMigration(slot, to)
    await migration.moveKeys()
    await migration.finish()
  }

  /** Stops all nodes and removes their files. May be called more than once. */
  async close(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.close()))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #settle(what: string, holds: (view: readonly NodeView[]) => boolean): Promise<void> {
    this.#adopt(await untilAgreed(this.#running(), { what, holds }))
  }

  #adopt(view: readonly NodeView[]): void {
    this.#nodes = this.#servers.map((server) => {
      const { id, masterId, slots } = view.find(({ port }) => port === server.port)!
      return { server, id, masterId, slots, role: masterId === undefined ? 'master' : 'replica' }
    })
  }

  #running(): readonly RedisServer[] {
    const running = this.#servers.filter(({ status }) => status === 'running')
    if (running.length === 0) throw new ServerError('SLUICE_TESTING_NOT_RUNNING', 'no node of the cluster runs.')
    return running
  }

  #find(what: string, fits: (node: ClusterNode) => boolean): ClusterNode {
    const node = this.#nodes.find(fits)
    if (node !== undefined) return node
    const message = `no node is the ${what}, as the cluster was last seen. Give it one, or refresh() after a change.`
    throw new ServerError('SLUICE_TESTING_UNKNOWN_NODE', message)
  }
}

/** Starts a real Redis Cluster for a test; see {@link RedisCluster.start}. */
export function startRedisCluster(options: RedisClusterOptions = {}): Promise<RedisCluster> {
  return RedisCluster.start(options)
}
