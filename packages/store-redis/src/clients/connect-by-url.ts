import { createSecureContext } from 'node:tls'
import type { Random, Timers } from '@sluice/core'
import { SluiceError, systemRandom, systemTimers } from '@sluice/core'
import { systemMonotonicMs } from '@sluice/core/internal'
import type { RedisArgument, RedisConnection } from '../connection/connection.ts'
import { notSent } from '../connection/connection.ts'
import type { Reconnectable } from '../connection/reconnector.ts'
import { Reconnector } from '../connection/reconnector.ts'
import type { RedisAddress, UrlOptions } from '../connection/redis-url.ts'
import { readRedisUrl } from '../connection/redis-url.ts'
import { nodeRedisClusterConnection, SilenceDetector } from './node-redis/node-redis-cluster-connection.ts'
import type { NodeRedisModule } from './node-redis/node-redis-options.ts'
import { clusterOptions, sentinelOptions } from './node-redis/node-redis-options.ts'
import { NodeRedisSentinelConnection } from './node-redis/node-redis-sentinel-connection.ts'
import { MAX_SILENCE_MS, RespClient } from './resp/resp-client.ts'

/** Options of {@link connectByUrl}. */
export interface ConnectOptions extends UrlOptions {
  readonly timers?: Timers
  readonly random?: Random
  readonly monotonicMs?: () => number
  /** Loads node-redis. Default: imports the package. */
  readonly load?: () => Promise<NodeRedisModule>
}

/**
 * Connects to the server or servers of `redis://` or `rediss://` URLs. One server needs no package. A cluster, or a
 * primary behind sentinels, needs the package `redis`, which the application installs.
 *
 * Returns at once, and never fails for an unreachable server: it reconnects for as long as it takes, after 50 ms,
 * doubling up to 500 ms, with 25% jitter. Until then nothing is sent or queued. A connection that has not replied for 3
 * seconds is replaced.
 *
 * The user needs no more permissions than this rule gives, with the prefix of the store in place of `sluice`:
 *
 * `resetkeys ~sluice:* resetchannels -@all +eval +evalsha +time +get +mget +psetex +setrange +del +pexpire +hset
 * +hdel +hmget +zadd +zrem +zcard +zrange +zrevrange +zrangebyscore +zremrangebyscore`
 *
 * Add `+select` for a database other than 0, and `+cluster|slots +asking` in a cluster. With `+info +config|get` the
 * store can warn about server settings that do not suit it.
 *
 * @throws SluiceError `SLUICE_INVALID_OPTION` for an invalid URL, or several that are neither of a cluster nor of
 * sentinels. When the package is needed and not installed, every use of the connection raises it.
 */
export function connectByUrl(target: string | readonly string[], options: ConnectOptions = {}): RedisConnection {
  const addresses = (typeof target === 'string' ? [target] : target).map(readRedisUrl)
  checkTopology(addresses, options)
  if (options.cluster === true || options.sentinel !== undefined) return new NodeRedisUrlConnection(addresses, options)
  const { timers = systemTimers, random = systemRandom, tls, monotonicMs } = options
  const reconnecting = { timers, random, connectTimeoutMs: NODE_CONNECT_TIMEOUT_MS }
  return new RespClient(addresses[0]!, tls, monotonicMs).keepConnected(reconnecting)
}

function checkTopology(addresses: readonly RedisAddress[], { cluster = false, sentinel, tls }: UrlOptions): void {
  const fail = (problem: string, expected: string): never => {
    throw new SluiceError('SLUICE_INVALID_OPTION', { problem, expected })
  }
  if (addresses.length === 0) fail('the list of Redis URLs is empty', 'one URL or more')
  if (cluster && sentinel !== undefined) fail('"cluster" and "sentinel" are both given', 'one of them')
  if (addresses.length > 1 && !cluster && sentinel === undefined) {
    fail(
      `${addresses.length} Redis URLs are given, without saying whether they are a cluster or sentinels`,
      '`cluster: true`, or `sentinel: { name }`',
    )
  }
  const [first] = addresses
  const isMixed = addresses.some(
    ({ tls: isSecure, username, password, database }) =>
      isSecure !== first!.tls ||
      username !== first!.username ||
      password !== first!.password ||
      database !== first!.database,
  )
  if (isMixed) fail('the Redis URLs differ in more than host and port', 'one scheme, user, password and database')
  if (cluster && first!.database !== 0) fail('a cluster has only database 0', 'URLs without a database')
  if (tls !== undefined) checkTls(tls)
  if (tls !== undefined && !first!.tls) fail('"tls" is given for a connection without TLS', 'a rediss:// URL')
}

/** Finds an invalid key or certificate now: otherwise every connection attempt would fail, forever. */
function checkTls(tls: NonNullable<UrlOptions['tls']>): void {
  try {
    createSecureContext(tls)
  } catch (cause) {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: `"tls" of the Redis store cannot be used: ${(cause as Error).message}`,
      expected: '`ca`, `cert` and `key` as the text or bytes of PEM files, and the `passphrase` of the key',
      cause,
    })
  }
}

/** Timeout for one node to accept a connection and to complete the handshake. */
const NODE_CONNECT_TIMEOUT_MS = 2000

/** A connection to a cluster or a primary behind sentinels that the store opens, reconnects and closes. */
class NodeRedisUrlConnection implements RedisConnection {
  readonly client = 'node-redis'
  readonly isCluster: boolean
  readonly writesLater = true
  readonly #addresses: readonly RedisAddress[]
  readonly #options: ConnectOptions
  readonly #timers: Timers
  readonly #random: Random
  readonly #monotonicMs: () => number
  readonly #loaded: Promise<void>
  #inner: RedisConnection | undefined
  #reconnector: Reconnector | undefined
  #obstacle: Error | undefined
  #isClosed = false
  #inFlight = 0
  /** When the last reply arrived, or the first command without a reply was sent. */
  #repliedAtMs = 0

  constructor(addresses: readonly RedisAddress[], options: ConnectOptions) {
    this.#addresses = addresses
    this.#options = options
    this.#timers = options.timers ?? systemTimers
    this.#random = options.random ?? systemRandom
    this.#monotonicMs = options.monotonicMs ?? systemMonotonicMs
    this.isCluster = options.cluster === true
    this.#loaded = this.#load()
  }

  isReady(): boolean {
    return this.#inner?.isReady() === true
  }

  obstacle(): Error | undefined {
    return this.#obstacle ?? this.#reconnector?.failure
  }

  async send(command: readonly RedisArgument[], key: string): Promise<unknown> {
    if (this.#inner === undefined) throw notSent(this.client, 'it is not loaded yet')
    this.#dropIfSilent()
    this.#inFlight++
    try {
      return await this.#inner.send(command, key)
    } finally {
      this.#inFlight--
      this.#repliedAtMs = this.#monotonicMs()
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#loaded
    await this.#reconnector?.close()
  }

  /**
   * Checked when a command is sent, so it needs no timer. In a cluster, a {@link SilenceDetector} does this for each
   * node.
   */
  #dropIfSilent(): void {
    if (this.isCluster) return
    const nowMs = this.#monotonicMs()
    if (this.#inFlight === 0) this.#repliedAtMs = nowMs
    else if (nowMs - this.#repliedAtMs > MAX_SILENCE_MS) this.#reconnector?.drop()
  }

  async #load(): Promise<void> {
    const { load } = this.#options
    try {
      // Bundlers treat a package that is imported in a `try` as optional: programs that do not need it can be bundled.
      const redis = load === undefined ? await import('redis') : await load()
      if (!this.#isClosed) this.#connect(namesOf(redis))
    } catch (error) {
      this.#obstacle = notLoaded(error as Error)
    }
  }

  #connect(redis: NodeRedisModule): void {
    const [addresses, options, timers, random] = [this.#addresses, this.#options, this.#timers, this.#random]
    if (this.isCluster) {
      const cluster = this.#keepConnected(redis.createCluster(clusterOptions(addresses, options, random)))
      const silence = new SilenceDetector(cluster, this.#monotonicMs)
      this.#inner = nodeRedisClusterConnection(cluster, closedByReconnector, { timers, silence })
    } else {
      const sentinel = this.#keepConnected(redis.createSentinel(sentinelOptions(addresses, options, random)))
      this.#inner = new NodeRedisSentinelConnection(sentinel, timers, closedByReconnector)
    }
  }

  #keepConnected<Client extends Reconnectable>(client: Client): Client {
    const connectTimeoutMs = NODE_CONNECT_TIMEOUT_MS * this.#addresses.length
    this.#reconnector = new Reconnector(client, { timers: this.#timers, random: this.#random, connectTimeoutMs })
    return client
  }
}

/** The names of a CommonJS package. Bundlers that split their output may leave them on the default export alone. */
function namesOf(module: object): NodeRedisModule {
  const { default: all } = module as { readonly default?: object }
  return ('createCluster' in module ? module : all) as NodeRedisModule
}

function closedByReconnector(): Promise<void> {
  return Promise.resolve()
}

function notLoaded(cause: Error): SluiceError {
  return new SluiceError('SLUICE_INVALID_OPTION', {
    problem:
      'a Redis store on a cluster or sentinels, by URL, needs the package "redis", which cannot be loaded ' +
      `(${cause.message})`,
    action: 'Run `npm install redis`, or pass a client of ioredis or valkey-glide instead.',
    cause,
  })
}
