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
import {
  denyCacheStore,
  fallbackStore,
  leasedStore,
  SluiceError,
  systemClock,
  systemRandom,
  systemTimers,
} from '@sluice/core'
import type {
  AnswerListener,
  AskedQuestion,
  Batch,
  BlockTerm,
  Limit,
  ListenedStore,
  Receipt,
} from '@sluice/core/internal'
import { asListened, checkOptionNames, noteSpace, systemMonotonicMs } from '@sluice/core/internal'
import { backgroundTimers } from './background-timers.ts'
import { connectByUrl } from './clients/connect-by-url.ts'
import { recogniseClient } from './clients/recognise-client.ts'
import type { UrlOptions } from './clients/url-options.ts'
import { ClusterStore } from './cluster-store.ts'
import type { RedisConnection } from './connection.ts'
import { LiveNodes } from './live-nodes.ts'
import { ScriptRunner } from './script-runner.ts'
import type { ServerWarning } from './server-check.ts'
import { inspectServer } from './server-check.ts'
import { StrictStore } from './strict-store.ts'
import { turnClock } from './turn-clock.ts'
import { atTurnEnd } from './turn-end.ts'

/** Options of {@link redisStore}. */
export interface RedisStoreOptions extends Omit<FallbackStoreOptions, 'nodes' | 'clock'>, UrlOptions {
  /** Begins every key: stores with the same prefix share their limits. `sluice` when left out; letters, digits, `_ . : -`. */
  readonly prefix?: string
  /** Take units of busy keys in blocks, and decide from them without asking: `true`, or how. Off when left out. */
  readonly leases?: boolean | LeasedStoreOptions
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
  /** `closed`: Redis is asked. `open`: it is not, because it failed. `half-open`: one call tries whether it is back. */
  readonly breaker: FallbackStore['state']
  readonly calls: ReturnType<FallbackStore['stats']>
  readonly leases: LeasedStoreStats | undefined
  /** Nodes alive when it was last known, this one included. */
  readonly nodes: number
}

/** A store on Redis. */
export interface RedisStore extends Store<'async'> {
  /**
   * Waits for the first connection: at most so many milliseconds, 5000 when left out. Says whether there is one; nothing
   * depends on it, but a program that waits for it at its start makes no decision without Redis.
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
  readonly #onWarning: (warning: ServerWarning) => void
  readonly #timers: Timers
  readonly #deadlineMs: number
  #isInspected = false
  #closing: Promise<void> | undefined

  constructor(connection: RedisConnection, options: RedisStoreOptions) {
    const { random = systemRandom, timers = systemTimers, monotonicMs = systemMonotonicMs } = options
    const prefix = checkPrefix(options.prefix ?? 'sluice')
    noteSpace(this, prefix)
    const pause = (ms: number): Promise<void> => new Promise((resolve) => void timers.schedule(ms, resolve))
    this.#timers = timers
    this.#connection = connection
    this.#onWarning = options.onWarning ?? warn
    this.#deadlineMs = options.deadlineMs ?? 50
    // Leaves time for the call itself.
    this.#runner = new ScriptRunner(connection, pause, { waitMs: 0.8 * this.#deadlineMs, monotonicMs })
    const { initialNodes = 1, onNodesChange, timers: beatTimers = backgroundTimers } = options
    const nodeParts = { prefix, random, monotonicMs, timers: beatTimers, initialNodes, onNodesChange }
    this.#nodes = new LiveNodes(this.#runner, nodeParts)
    const strict = this.#strict(prefix, options)
    const exact = connection.isCluster ? new ClusterStore(strict, random) : strict
    this.#exact = exact
    const { leases = false, denyCache = 100 } = options
    const shared = { random, timers, monotonicMs }
    this.#leased = leases === false ? undefined : leasedStore(exact, { ...shared, ...(leases === true ? {} : leases) })
    const burstMs = turnClock(monotonicMs)
    const guard = { ...options, monotonicMs: burstMs, nodes: () => this.#nodes.count }
    this.#fallback = fallbackStore(this.#leased ?? exact, guard)
    this.#outer = asListened(
      denyCache === false
        ? this.#fallback
        : denyCacheStore(this.#fallback, cacheOptions(denyCache, options.observe, burstMs)),
    )
    this.#nodes.start()
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

  resetAll(limits: readonly Limit[]): Promise<void> {
    return this.#exact.resetAll(limits)
  }

  ready(withinMs = 5000): Promise<boolean> {
    return this.#runner.untilReady(withinMs)
  }

  stats(): RedisStoreStats {
    return {
      breaker: this.#fallback.state,
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
    this.#runner.stopWaiting()
    // What is given back at the end is worth a moment, but a server that does not answer must not keep anybody: it forgets
    // this node, and ends its leases, by itself.
    if (this.#connection.isReady()) await this.#within(this.#deadlineMs, this.#nodes.leave())
    await this.#within(CLOSING_MS, this.#outer.close())
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
        void this.#inspect()
      },
    })
  }

  /** Looks at the server when it is first there. */
  async #inspect(): Promise<void> {
    if (this.#isInspected || !this.#connection.isReady()) return
    this.#isInspected = true
    for (const warning of await inspectServer(this.#runner)) {
      try {
        this.#onWarning(warning)
      } catch {
        // Whoever is told must not end the process with it.
      }
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
