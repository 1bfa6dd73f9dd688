import type {
  Clock,
  DenyCacheOptions,
  FallbackStore,
  FallbackStoreOptions,
  LeasedStore,
  LeasedStoreOptions,
  LeasedStoreStats,
  Settlement,
  Store,
  StoreEvent,
  Timers,
} from '@sluice/core'
import { denyCacheStore, leasedStore, SluiceError, systemClock, systemRandom, systemTimers } from '@sluice/core'
import type {
  AnswerListener,
  AskedQuestion,
  Batch,
  BlockTerm,
  Limit,
  ListenedStore,
  Receipt,
} from '@sluice/core/internal'
import {
  asListened,
  checkOptionNames,
  noteSpace,
  startingFallbackStore,
  systemMonotonicMs,
} from '@sluice/core/internal'
import { connectByUrl } from './clients/connect-by-url.ts'
import { recogniseClient } from './clients/recognise-client.ts'
import { ClusterStore } from './cluster-store.ts'
import type { RedisConnection } from './connection/connection.ts'
import { ShardedConnection } from './connection/sharded-connection.ts'
import type { UrlOptions } from './connection/url-options.ts'
import { LiveNodes } from './live-nodes.ts'
import type { ServerWarning } from './server-warnings.ts'
import { deniedWarning, inspectServer } from './server-warnings.ts'
import { StartUp } from './startup.ts'
import { StrictStore } from './strict-store.ts'
import { backgroundTimers } from './system/background-timers.ts'
import { atTurnEnd } from './system/event-loop.ts'
import { turnClock } from './system/turn-clock.ts'
import { ScriptRunner } from './wire/script-runner.ts'

/** Options of {@link redisStore}. */
export interface RedisStoreOptions extends Omit<FallbackStoreOptions, 'nodes' | 'clock'>, UrlOptions {
  /**
   * Begins every key: stores with the same prefix share their limits. 1 to 64 letters, digits or any of `_ . : -`. The
   * `keyPrefix` of an ioredis client comes before it. Default: `sluice`.
   */
  readonly prefix?: string
  /** Take units of busy keys in blocks, and decide from them without asking: `true`, or how. Off when left out. */
  readonly leases?: boolean | LeasedStoreOptions
  /**
   * How long the first checks wait for the first connection, once, counted from the creation of the store: 0 to 60,000
   * milliseconds. Failures before the first answer do not count against the breaker during this time. 0: checks do not wait.
   * Default: 2000.
   */
  readonly connectTimeoutMs?: number
  /** How long a refusal may be answered from memory, in milliseconds; 100 when left out, `false` never. */
  readonly denyCache?: number | false
  /**
   * Node count to assume until the first heartbeat is answered, this node included: 1 to 1,000,000. It divides the shares
   * of failure mode `local`. Pass what `onNodesChange` reported last, so that a restart during an outage does not use the
   * whole limit. Default: 1.
   */
  readonly initialNodes?: number
  /** Called with the node count whenever it changes. */
  readonly onNodesChange?: (nodes: number) => void
  /** Is told once of what is wrong with the server; prints a warning of the process when left out. */
  readonly onWarning?: (warning: ServerWarning) => void
  /** Decides at this time instead of the server's: for tests. All processes that share the limits must use one clock. */
  readonly clock?: Clock
}

/** Something that happened to a Redis store, for metrics. */
export type RedisStoreEvent = StoreEvent

/** What a Redis store has done, and how it stands. */
export interface RedisStoreStats {
  /**
   * `closed`: Redis is asked. `open`: it is not, because it failed. `half-open`: one call tries whether it is back. In a
   * cluster, the worst state of any primary: the others are asked all the same.
   */
  readonly breaker: FallbackStore['state']
  readonly calls: ReturnType<FallbackStore['stats']>
  readonly leases: LeasedStoreStats | undefined
  /** Nodes alive when it was last known, this one included. */
  readonly nodes: number
}

/** A store on Redis. */
export interface RedisStore extends Store<'async'> {
  /**
   * Waits until Redis answers on a connection, with the scripts loaded: at most so many milliseconds. Default: 5000. Resolves
   * with whether it does. Optional: the first checks wait for the first connection by themselves, for `connectTimeoutMs`.
   *
   * @throws SluiceError `SLUICE_STORE_UNAVAILABLE` when the user lacks a permission (`NOPERM`); the message lists what to allow
   */
  ready(withinMs?: number): Promise<boolean>
  stats(): RedisStoreStats
}

/**
 * Limits shared by all processes that use the same Redis (6.2 or later, or Valkey; standalone, Sentinel or Cluster) and the
 * same prefix. Exact: every decision is one atomic step at the server's time. All checks of one turn of the event loop go out
 * together.
 *
 * Takes a client of node-redis, ioredis or valkey-glide, which stays the caller's to close, or a URL. Never waits longer than
 * `deadlineMs`: while Redis is away, each rule's `failureMode` answers, and the decision says so. It may be away at the
 * start, too.
 */
export function redisStore(target: unknown, options: RedisStoreOptions = {}): RedisStore {
  checkOptions(options)
  const connection = isAddress(target) ? connectByUrl(target, options) : recogniseClient(target, options)
  try {
    return new ComposedStore(connection, options)
  } catch (error) {
    // Nobody would ever close it.
    void connection.close()
    throw error
  }
}

/** Every option there is, so that a misspelt one is not taken for none. */
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

/** How long closing waits for what is given back to Redis, in milliseconds. */
const CLOSING_MS = 1000

const PREFIX = /^[A-Za-z0-9_.:-]{1,64}$/

class ComposedStore implements RedisStore, ListenedStore {
  readonly mode = 'async'
  readonly #outer: ListenedStore
  readonly #exact: StrictStore | ClusterStore
  readonly #fallback: FallbackStore
  readonly #leased: LeasedStore | undefined
  readonly #nodes: LiveNodes
  readonly #runner: ScriptRunner
  readonly #connection: RedisConnection
  /** The same as the connection, in a cluster. */
  readonly #shards: ShardedConnection | undefined
  readonly #startUp: StartUp
  readonly #onWarning: (warning: ServerWarning) => void
  readonly #timers: Timers
  readonly #deadlineMs: number
  #closing: Promise<void> | undefined

  constructor(connection: RedisConnection, options: RedisStoreOptions) {
    const { random = systemRandom, timers = systemTimers, monotonicMs = systemMonotonicMs } = options
    const prefix = `${connection.keyPrefix ?? ''}${checkPrefix(options.prefix ?? 'sluice')}`
    noteSpace(this, prefix)
    const pause = (ms: number): Promise<void> => new Promise((resolve) => void timers.schedule(ms, resolve))
    this.#timers = timers
    this.#onWarning = options.onWarning ?? warn
    this.#deadlineMs = options.deadlineMs ?? 50
    const burstMs = turnClock(monotonicMs)
    const graceMs = checkConnectTimeout(options.connectTimeoutMs ?? 2000)
    const { breaker, observe, timers: background = backgroundTimers } = options
    const start = { atMs: monotonicMs(), graceMs }
    const shardParts = { deadlineMs: this.#deadlineMs, breaker, start, timers, monotonicMs: burstMs, random, observe }
    this.#shards = connection.isCluster ? new ShardedConnection(connection, shardParts) : undefined
    this.#connection = this.#shards ?? connection
    this.#runner = new ScriptRunner(this.#connection, pause)
    this.#startUp = new StartUp({
      connection: this.#connection,
      runner: this.#runner,
      prefix,
      connectTimeoutMs: graceMs,
      monotonicMs,
      timers,
      backgroundTimers: background,
      onAnswered: (denial) => void this.#inspect(denial),
    })
    const { initialNodes = 1, onNodesChange } = options
    const nodeParts = { prefix, random, monotonicMs, timers: background, initialNodes, onNodesChange }
    this.#nodes = new LiveNodes(this.#runner, nodeParts)
    const strict = this.#strict(prefix, options)
    const exact = connection.isCluster ? new ClusterStore(strict, random) : strict
    this.#exact = exact
    const { leases = false, denyCache = 100 } = options
    const shared = { random, timers, monotonicMs }
    this.#leased = leases === false ? undefined : leasedStore(exact, { ...shared, ...(leases === true ? {} : leases) })
    const guard = { ...options, monotonicMs: burstMs, nodes: () => this.#nodes.count }
    this.#fallback = startingFallbackStore(this.#leased ?? exact, guard, {
      graceMs,
      untilStarted: graceMs === 0 ? undefined : () => this.#startUp.untilStarted(),
      hasBreakers: connection.isCluster,
    })
    this.#outer = asListened(
      denyCache === false
        ? this.#fallback
        : denyCacheStore(this.#fallback, cacheOptions(denyCache, options.observe, burstMs)),
    )
    // What blocks the thread while a program is loaded does not count.
    atTurnEnd(() => void this.#startUp.begin().then(() => this.#nodes.start()))
  }

  decide(batch: Batch): Promise<void> {
    return this.#outer.decide(batch)
  }

  ask(batch: Batch, listener: AnswerListener): AskedQuestion {
    return this.#outer.ask(batch, listener)
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
    await this.#startUp.untilStarted()
    await this.#exact.resetAll(limits)
  }

  ready(withinMs = 5000): Promise<boolean> {
    return this.#startUp.ready(withinMs)
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
    // What is given back at the end is worth a moment, but a server that does not answer must not keep anybody: it forgets
    // this node, and ends its leases, by itself.
    if (this.#connection.isReady()) await this.#within(this.#deadlineMs, this.#nodes.leave())
    await this.#within(CLOSING_MS, this.#outer.close())
    this.#startUp.stop()
    await this.#connection.close()
  }

  async #within(ms: number, work: Promise<void>): Promise<void> {
    const lapse = Promise.withResolvers<void>()
    const cancel = this.#timers.schedule(ms, lapse.resolve)
    await Promise.race([work, lapse.promise]).finally(cancel)
  }

  #strict(prefix: string, options: RedisStoreOptions): StrictStore {
    return new StrictStore({
      connection: this.#connection,
      runner: this.#runner,
      prefix,
      clock: options.clock ?? systemClock,
      usesClock: options.clock !== undefined,
      monotonicMs: options.monotonicMs ?? systemMonotonicMs,
      atTurnEnd,
      timers: this.#timers,
      onSend: () => {
        this.#nodes.beatWithCheck()
        this.#startUp.attempt()
      },
    })
  }

  /** Looks at the server when it has answered. */
  async #inspect(denial: Error | undefined): Promise<void> {
    if (denial !== undefined) this.#warn(deniedWarning(denial))
    else for (const warning of await inspectServer(this.#runner)) this.#warn(warning)
  }

  #warn(warning: ServerWarning): void {
    try {
      this.#onWarning(warning)
    } catch {
      // A callback that throws must not end the process.
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

function checkConnectTimeout(ms: number): number {
  if (Number.isInteger(ms) && ms >= 0 && ms <= 60_000) return ms
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: '"connectTimeoutMs" of the Redis store cannot be used',
    received: ms,
    expected: 'a whole number from 0 to 60000',
  })
}
