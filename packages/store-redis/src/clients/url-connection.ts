import type { Random, Timers } from '@sluice/core'
import { SluiceError } from '@sluice/core'
import { notSent } from '../connection/client-failure.ts'
import type { RedisArgument, RedisConnection } from '../connection/connection.ts'
import type { Reconnectable } from '../connection/connection-keeper.ts'
import { ConnectionKeeper } from '../connection/connection-keeper.ts'
import type { RedisAddress } from '../connection/redis-url.ts'
import type { UrlOptions } from '../connection/url-options.ts'
import { nodeRedisClusterConnection } from './node-redis/node-redis-cluster-connection.ts'
import type { NodeRedisModule } from './node-redis/node-redis-module.ts'
import { clusterOptions, sentinelOptions } from './node-redis/node-redis-module.ts'
import { NodeRedisSentinelConnection } from './node-redis/node-redis-sentinel-connection.ts'
import { SilentNodes } from './node-redis/silent-nodes.ts'
import { RespClient } from './resp/resp-client.ts'

/** What an {@link OwnConnection} is made with. */
export interface OwnConnectionParts {
  readonly timers: Timers
  readonly random: Random
  readonly monotonicMs: () => number
  /** Loads node-redis. Default: imports the package. */
  readonly load: (() => Promise<NodeRedisModule>) | undefined
  readonly reach: UrlOptions
}

/** Time for one node to accept a connection and to answer the greeting. */
const CONNECT_WITHIN_MS = 2000

/** A connection that owes answers and has given none for so long is dead, whatever the network says. */
const LONGEST_SILENCE_MS = 3000

/** A connection that the store makes, keeps and closes. */
export class OwnConnection implements RedisConnection {
  readonly client: string
  readonly isCluster: boolean
  readonly writesLater: boolean
  readonly #addresses: readonly RedisAddress[]
  readonly #parts: OwnConnectionParts
  readonly #loaded: Promise<void>
  #inner: RedisConnection | undefined
  #keeper: ConnectionKeeper | undefined
  #obstacle: Error | undefined
  #isClosed = false
  #owed = 0
  /** When it last answered, or last began to owe an answer. */
  #heardAtMs = 0

  constructor(addresses: readonly RedisAddress[], parts: OwnConnectionParts) {
    this.#addresses = addresses
    this.#parts = parts
    this.isCluster = parts.reach.cluster === true
    const isSingle = !this.isCluster && parts.reach.sentinel === undefined
    this.writesLater = !isSingle
    this.client = isSingle ? 'the connection' : 'node-redis'
    this.#loaded = isSingle ? Promise.resolve(this.#connectSingle()) : this.#load()
  }

  isReady(): boolean {
    return this.#inner?.isReady() === true
  }

  obstacle(): Error | undefined {
    return this.#obstacle ?? this.#keeper?.failure
  }

  async send(command: readonly RedisArgument[], key: string): Promise<unknown> {
    if (this.#inner === undefined) throw notSent(this.client, 'it is not loaded yet')
    this.#watch()
    this.#owed++
    try {
      return await this.#inner.send(command, key)
    } finally {
      this.#owed--
      this.#heardAtMs = this.#parts.monotonicMs()
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#loaded
    await this.#keeper?.close()
  }

  /**
   * Gives up a connection that is silent. It is looked at only when there is something to send: no timer is needed. In a cluster
   * {@link SilentNodes} do this for each node: one that hangs must not cost the others their connections.
   */
  #watch(): void {
    if (this.isCluster) return
    const nowMs = this.#parts.monotonicMs()
    if (this.#owed === 0) this.#heardAtMs = nowMs
    else if (nowMs - this.#heardAtMs > LONGEST_SILENCE_MS) this.#keeper?.drop()
  }

  async #load(): Promise<void> {
    const { load } = this.#parts
    try {
      // Bundlers take a package that is imported in a `try` for optional: a program that needs no package can be bundled.
      const redis = load === undefined ? await import('redis') : await load()
      if (!this.#isClosed) this.#connect(redis as unknown as NodeRedisModule)
    } catch (error) {
      this.#obstacle = notLoaded(error as Error)
    }
  }

  /** One server needs no package. */
  #connectSingle(): void {
    const client = this.#keep(new RespClient(this.#addresses[0]!, this.#parts.reach.tls))
    this.#inner = {
      client: this.client,
      isCluster: false,
      isReady: () => client.isReady,
      send: (command) => client.send(command),
      close: closedByKeeper,
    }
  }

  #connect(redis: NodeRedisModule): void {
    const { timers, random, monotonicMs, reach } = this.#parts
    if (this.isCluster) {
      const cluster = this.#keep(redis.createCluster(clusterOptions(this.#addresses, reach, random)))
      this.#inner = nodeRedisClusterConnection(cluster, closedByKeeper, {
        timers,
        silence: new SilentNodes(cluster, monotonicMs),
      })
    } else {
      const sentinel = this.#keep(redis.createSentinel(sentinelOptions(this.#addresses, reach, random)))
      this.#inner = new NodeRedisSentinelConnection(sentinel, timers, closedByKeeper)
    }
  }

  #keep<Client extends Reconnectable>(client: Client): Client {
    const { timers, random } = this.#parts
    const connectWithinMs = CONNECT_WITHIN_MS * this.#addresses.length
    this.#keeper = new ConnectionKeeper(client, { timers, random, connectWithinMs })
    return client
  }
}

function closedByKeeper(): Promise<void> {
  return Promise.resolve()
}

function notLoaded(cause: Error): SluiceError {
  return new SluiceError('SLUICE_INVALID_OPTION', {
    problem: `a Redis store on a cluster or sentinels, by URL, needs the package "redis", which cannot be loaded (${cause.message})`,
    action: 'Run `npm install redis`, or give the store a client of ioredis or valkey-glide instead.',
    cause,
  })
}
