import type { Clock, Settlement, Timers } from '@sluice/core'
import { SluiceError, systemClock, systemRandom, systemTimers } from '@sluice/core'
import type { PendingBatch } from '@sluice/core/internal'
import {
  CallbackStore,
  callbackStore,
  checkOptionNames,
  checkWhole,
  DEFAULT_DEADLINE_MS,
  noteSpace,
  startingFallbackStore,
  systemMonotonicMs,
} from '@sluice/core/internal'
import type {
  BlockTerm,
  DenyCacheOptions,
  FallbackStore,
  FallbackStoreOptions,
  LeasedStore,
  LeasedStoreOptions,
  LeasedStoreStats,
  Limit,
  Receipt,
  StoreEvent,
} from '@sluice/core/store'
import { denyCacheStore, leasedStore } from '@sluice/core/store'
import { connectByUrl } from './clients/connect-by-url.ts'
import { recogniseClient } from './clients/recognise-client.ts'
import { ClusterStore } from './cluster-store.ts'
import type { RedisConnection } from './connection/connection.ts'
import type { UrlOptions } from './connection/redis-url.ts'
import { ShardedConnection } from './connection/sharded-connection.ts'
import { LiveNodes } from './live-nodes.ts'
import { LuaStore } from './lua-store.ts'
import type { ServerWarning } from './server-warnings.ts'
import { deniedWarning, inspectServer } from './server-warnings.ts'
import { Startup } from './startup.ts'
import { backgroundTimers, cachedClock, runAfterIo } from './system/event-loop.ts'
import { ScriptRunner } from './wire/script-runner.ts'

/** Options of {@link redisStore}. */
export interface RedisStoreOptions extends Omit<FallbackStoreOptions, 'nodes' | 'clock'>, UrlOptions {
  /**
   * Prefix of every Redis key. Stores with the same prefix share their limits. 1 to 64 letters, digits or any of `_ . :
   * -`. The `keyPrefix` of an ioredis client comes before it. Default: `sluice`.
   */
  readonly prefix?: string
  /** Lease units of busy keys, and decide from the leases without a call: `true`, or options. Default: false. */
  readonly leases?: boolean | LeasedStoreOptions
  /**
   * How long the first checks wait for the first connection, from the creation of the store: 0 to 60,000 milliseconds.
   * During this time, failures before the first reply do not count against the breaker. 0: checks do not wait. Default:
   * 2000.
   */
  readonly connectTimeoutMs?: number
  /** How long a denial is cached in memory, in milliseconds. `false` turns the cache off. Default: 100. */
  readonly denyCache?: number | false
  /**
   * Node count to assume until the first heartbeat succeeds, including this node: 1 to 1,000,000. Failure mode `local`
   * divides limits by it. Pass the last count of `onNodesChange`, so that a restart during an outage does not use the
   * whole limit. Default: 1.
   */
  readonly initialNodes?: number
  /** Called with the node count whenever it changes. */
  readonly onNodesChange?: (nodes: number) => void
  /** Called for each problem with the server, once. Default: emits a process warning. */
  readonly onWarning?: (warning: ServerWarning) => void
  /**
   * Decides at this time instead of the server's, for tests. All processes that share the limits must use one clock.
   */
  readonly clock?: Clock
}

/** An event of a Redis store, for metrics. */
export type RedisStoreEvent = StoreEvent

/** Counters and state of a Redis store. */
export interface RedisStoreStats {
  /**
   * `closed`: calls are sent. `open`: none is sent, because Redis failed. `half-open`: one call probes whether it is
   * back. In a cluster, the worst state of any primary: calls to the others are sent all the same.
   */
  readonly breaker: FallbackStore['state']
  readonly calls: ReturnType<FallbackStore['stats']>
  readonly leases: LeasedStoreStats | undefined
  /** The last known number of live nodes, including this one. */
  readonly nodes: number
}

/**
 * Limits shared by all processes that use the same Redis (6.2 or later, or Valkey; standalone, Sentinel or Cluster) and
 * the same prefix. Exact: every decision is one atomic step at the server's time. A check on
 * an idle connection leaves at once; under load, all checks of an event loop iteration leave in one call.
 *
 * Takes a URL, or a client of node-redis, ioredis or valkey-glide, which the caller closes. A check never waits longer
 * than `deadlineMs`: while Redis is unavailable, the `failureMode` of each rule decides, and the decision says so.
 * Redis may be unavailable at the start, too.
 */
export function redisStore(target: unknown, options: RedisStoreOptions = {}): RedisStore {
  checkOptions(options)
  const connection = isAddress(target) ? connectByUrl(target, options) : recogniseClient(target, options)
  try {
    return new RedisStore(connection, options)
  } catch (error) {
    // Nothing else would close it.
    void connection.close()
    throw error
  }
}

/** All options, so that a misspelt one is rejected. */
const OPTIONS: Readonly<Record<keyof RedisStoreOptions, true>> = {
  prefix: true,
  leases: true,
  denyCache: true,
  connectTimeoutMs: true,
  initialNodes: true,
  onNodesChange: true,
  onWarning: true,
  clock: true,
  deadlineMs: true,
  urgentDeadlineMs: true,
  failureMode: true,
  maxLocalKeys: true,
  breaker: true,
  maxPending: true,
  observe: true,
  timers: true,
  monotonicMs: true,
  random: true,
  cluster: true,
  sentinel: true,
  tls: true,
}

function checkOptions(options: RedisStoreOptions): void {
  const names = Object.keys(OPTIONS)
  checkOptionNames(options, { name: 'the Redis store', options: names, example: '{ prefix: "api" }' })
  const { leases } = options
  if (leases === undefined || typeof leases === 'boolean' || (typeof leases === 'object' && leases !== null)) return
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: '"leases" of the Redis store cannot be used',
    received: leases,
    expected: 'true, false, or options such as { leaseMs: 1000 }',
  })
}

function isAddress(target: unknown): target is string | readonly string[] {
  return typeof target === 'string' || Array.isArray(target)
}

/** How long closing waits for refunds to Redis, in milliseconds. */
const CLOSING_MS = 1000

const PREFIX = /^[A-Za-z0-9_.:-]{1,64}$/

/** A store on Redis; see {@link redisStore}. */
export class RedisStore extends CallbackStore {
  /** The outermost decorator. */
  readonly #outer: CallbackStore
  readonly #exact: LuaStore | ClusterStore
  readonly #fallback: FallbackStore
  readonly #leased: LeasedStore | undefined
  readonly #nodes: LiveNodes
  readonly #runner: ScriptRunner
  readonly #connection: RedisConnection
  /** The connection, in a cluster. */
  readonly #shards: ShardedConnection | undefined
  readonly #startup: Startup
  #hasStarted = false
  readonly #onWarning: (warning: ServerWarning) => void
  readonly #timers: Timers
  readonly #deadlineMs: number
  #closing: Promise<void> | undefined

  constructor(connection: RedisConnection, options: RedisStoreOptions) {
    super()
    const { random = systemRandom, timers = systemTimers, monotonicMs = systemMonotonicMs } = options
    const prefix = `${connection.keyPrefix ?? ''}${checkPrefix(options.prefix ?? 'sluice')}`
    noteSpace(this, prefix)
    const pause = (ms: number): Promise<void> => new Promise((resolve) => void timers.schedule(ms, resolve))
    this.#timers = timers
    this.#onWarning = options.onWarning ?? warn
    this.#deadlineMs = options.deadlineMs ?? DEFAULT_DEADLINE_MS
    const burstMs = cachedClock(monotonicMs)
    const range = { of: 'the Redis store', least: 0, most: 60_000 }
    const graceMs = checkWhole('connectTimeoutMs', options.connectTimeoutMs ?? 2000, range)
    const { breaker, observe, timers: background = backgroundTimers } = options
    const start = { atMs: monotonicMs(), graceMs }
    const shardOptions = { deadlineMs: this.#deadlineMs, breaker, start, timers, monotonicMs: burstMs, random, observe }
    this.#shards = connection.isCluster ? new ShardedConnection(connection, shardOptions) : undefined
    this.#connection = this.#shards ?? connection
    this.#runner = new ScriptRunner(this.#connection, pause)
    this.#startup = new Startup({
      connection: this.#connection,
      runner: this.#runner,
      prefix,
      connectTimeoutMs: graceMs,
      monotonicMs,
      timers,
      backgroundTimers: background,
      onReply: (denial) => {
        this.#hasStarted = denial === undefined
        void this.#inspect(denial)
      },
    })
    const { initialNodes = 1, onNodesChange } = options
    const nodeOptions = { prefix, random, monotonicMs, timers: background, initialNodes, onNodesChange }
    this.#nodes = new LiveNodes(this.#runner, nodeOptions)
    const luaStore = this.#luaStore(prefix, options)
    const exact = connection.isCluster ? new ClusterStore(luaStore, random) : luaStore
    this.#exact = exact
    const { leases = false, denyCache = 100 } = options
    const shared = { random, timers, monotonicMs }
    this.#leased = leases === false ? undefined : leasedStore(exact, { ...shared, ...(leases === true ? {} : leases) })
    const guard = { ...options, monotonicMs: burstMs, nodes: () => this.#nodes.count }
    this.#fallback = startingFallbackStore(this.#leased ?? exact, guard, {
      graceMs,
      untilStarted: graceMs === 0 ? undefined : () => this.#startup.untilStarted(),
      hasBreakers: connection.isCluster,
    })
    this.#outer = callbackStore(
      denyCache === false
        ? this.#fallback
        : denyCacheStore(this.#fallback, cacheOptions(denyCache, options.observe, burstMs)),
    )
    // After the program is loaded: what blocks the thread until then does not count.
    runAfterIo(() => void this.#startup.begin().then(() => this.#nodes.start()))
  }

  submit(pending: PendingBatch): void {
    this.#outer.submit(pending)
  }

  settle(receipt: Receipt, actuals: readonly number[]): Promise<Settlement> {
    return this.#outer.settle(receipt, actuals)
  }

  block(rule: string, key: string, term: BlockTerm): Promise<void> {
    return this.#outer.block(rule, key, term)
  }

  reset(limits: readonly Limit[], key: string): Promise<void> {
    return this.#outer.reset(limits, key)
  }

  async resetAll(limits: readonly Limit[]): Promise<void> {
    await this.#startup.untilStarted()
    await this.#exact.resetAll(limits)
  }

  /**
   * Waits until Redis replies on a connection, with the scripts loaded. Resolves with `false` after `withinMs`.
   * Default: 5000. Optional: the first checks wait for the first connection themselves, for `connectTimeoutMs`.
   *
   * @throws SluiceError `SLUICE_STORE_UNAVAILABLE` when the user lacks a permission (`NOPERM`); the message lists what
   *   to allow
   */
  ready(withinMs = 5000): Promise<boolean> {
    return this.#startup.ready(withinMs)
  }

  stats(): RedisStoreStats {
    return {
      breaker: this.#shards?.state ?? this.#fallback.state,
      calls: this.#fallback.stats(),
      leases: this.#leased?.stats(),
      nodes: this.#nodes.count,
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#nodes.stop()
    // A server that does not reply must not delay closing: this node and its leases expire.
    if (this.#connection.isReady()) await this.#within(this.#deadlineMs, this.#nodes.leave())
    await this.#within(CLOSING_MS, this.#outer.close())
    this.#startup.stop()
    await this.#connection.close()
  }

  async #within(ms: number, work: Promise<void>): Promise<void> {
    const lapse = Promise.withResolvers<void>()
    const cancel = this.#timers.schedule(ms, lapse.resolve)
    await Promise.race([work, lapse.promise]).finally(cancel)
  }

  #luaStore(prefix: string, options: RedisStoreOptions): LuaStore {
    const { clock = systemClock, monotonicMs = systemMonotonicMs } = options
    return new LuaStore({
      connection: this.#connection,
      runner: this.#runner,
      prefix,
      clock,
      usesClock: options.clock !== undefined,
      monotonicMs,
      runAfterIo,
      timers: this.#timers,
      onSend: () => {
        this.#nodes.heartbeatWithCheck()
        if (!this.#hasStarted) this.#startup.attempt()
      },
    })
  }

  async #inspect(denial: Error | undefined): Promise<void> {
    if (denial !== undefined) this.#warn(deniedWarning(denial))
    else for (const warning of await inspectServer(this.#runner)) this.#warn(warning)
  }

  #warn(warning: ServerWarning): void {
    try {
      this.#onWarning(warning)
    } catch {
      // An error in a callback must not end the process.
    }
  }
}

function cacheOptions(
  maxAgeMs: number,
  observe: RedisStoreOptions['observe'],
  monotonicMs: () => number,
): DenyCacheOptions {
  return { maxAgeMs, monotonicMs, ...(observe && { observe }) }
}

function warn({ code, message }: ServerWarning): void {
  process.emitWarning(message, { type: 'SluiceWarning', code })
}

function checkPrefix(prefix: string): string {
  if (PREFIX.test(prefix)) return prefix
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: '"prefix" of the Redis store cannot be used',
    received: prefix,
    expected: '1 to 64 letters, digits or any of _ . : -',
  })
}
