import { ServerError } from '../process/server-error.ts'
import { formCluster } from './cluster-formation.ts'
import type { NodeView, SlotRange } from './cluster-view.ts'
import { serves, untilAgreed, viewOf } from './cluster-view.ts'
import type { RedisServer } from './redis-server.ts'
import { SlotMigration, slotOf } from './slot-migration.ts'

/** How a {@link RedisCluster} is made. */
export interface RedisClusterOptions {
  /** 3 when not given, the fewest among which a majority can vote for a replica. */
  readonly masters?: number
  /** 1 when not given. */
  readonly replicasPerMaster?: number
  /** Milliseconds of silence after which a node counts as failed; 1000 when not given. */
  readonly nodeTimeoutMs?: number
  /** Directives of redis.conf for every node. */
  readonly config?: Readonly<Record<string, string>>
}

/** A node, as it was when the cluster was last looked at. */
export interface ClusterNode {
  readonly server: RedisServer
  readonly id: string
  readonly role: 'master' | 'replica'
  /** The id of its master, when it is a replica. */
  readonly masterId: string | undefined
  /** What it serves; empty for a replica. */
  readonly slots: readonly SlotRange[]
}

/** A real Redis Cluster on 127.0.0.1 that belongs to a test. */
export class RedisCluster {
  readonly #servers: readonly RedisServer[]
  #nodes: readonly ClusterNode[] = []

  private constructor(servers: readonly RedisServer[]) {
    this.#servers = servers
  }

  /** Starts the nodes; resolves when every one of them serves, about 2.5 seconds later. */
  static async start(options: RedisClusterOptions = {}): Promise<RedisCluster> {
    const { masters = 3, replicasPerMaster = 1, nodeTimeoutMs = 1000, config = {} } = options
    const cluster = new RedisCluster(await formCluster({ masters, replicasPerMaster, nodeTimeoutMs, config }))
    await cluster.refresh()
    return cluster
  }

  /**
   * All nodes, also those that do not run, always in the same order. What changes by itself shows after {@link
   * refresh}.
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

  /** A replica of this master; the first, when it has several. */
  replicaOf(master: ClusterNode): ClusterNode {
    return this.#find(`replica of the master on port ${master.server.port}`, (node) => node.masterId === master.id)
  }

  /** Looks at the cluster again, through the eyes of the first node that runs. */
  async refresh(): Promise<void> {
    this.#adopt(await viewOf(this.#running()[0]!))
  }

  /** Waits until all nodes that run tell the same and serve, for instance after one was started again. */
  untilSettled(): Promise<void> {
    return this.#settle('to agree', () => true)
  }

  /**
   * Makes the replica of a master the master of its slots. While the old master runs, it hands over in good order and
   * no write is lost; otherwise the replica takes over without asking. Resolves with the new master when all nodes that
   * run know it.
   */
  async failover(master: ClusterNode): Promise<ClusterNode> {
    const replica = this.replicaOf(master)
    const how = master.server.status === 'running' ? [] : ['TAKEOVER']
    await replica.server.command('CLUSTER', 'FAILOVER', ...how)
    return await this.untilFailedOver(master)
  }

  /**
   * Waits for the cluster's own fail-over of a master that does not run; resolves with the new one when all know it.
   */
  async untilFailedOver(master: ClusterNode): Promise<ClusterNode> {
    const [[slot] = [0]] = master.slots
    await this.#settle(`to replace the master on port ${master.server.port}`, (view) =>
      view.some((node) => node.id !== master.id && serves(node, slot)),
    )
    return this.masterOf(slot)
  }

  /** Begins to move a slot to another master, and leaves it on its way. */
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

  /** Ends all nodes and removes their files. May be called more than once. */
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
