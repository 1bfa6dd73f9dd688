import type { Clock, Decision, Limiter, Rule, Store } from '@sluice/core'
import { createLimiter, memoryStore, SluiceError, systemClock } from '@sluice/core'
import { compileRule, createBatch, createItem, decisionOn, spaceOf } from '@sluice/core/internal'
import { can } from '@sluice/core/options'
import type { Batch, Limit } from '@sluice/core/store'
import type { ClientRateLimitInfo, Options, Store as RateLimitStore } from 'express-rate-limit'
import { processRegistry } from '../../misuse/misuse-registry.ts'
import { misuseDocs, warnProcess } from '../../misuse/misuse-warning.ts'

/** Options of {@link sluiceStore}. */
export interface SluiceStoreOptions {
  /** Any Sluice store. The caller closes it. Default: a new memory store, which counts in this process only. */
  readonly store?: Store
  /**
   * Separates the hits of this limiter from others on the same store. Use the same prefix for one limiter in all
   * processes, and different ones for two limiters. Default: `express-rate-limit`.
   */
  readonly prefix?: string
  /** Clock for `decrement` and for the default store. */
  readonly clock?: Clock
}

/** A Sluice store for express-rate-limit. Local stores answer synchronously, remote stores by promise. */
export interface SluiceRateLimitStore extends RateLimitStore {
  readonly prefix: string
  /** Whether no other limiter can count the same hits, because the store is private. */
  readonly localKeys: boolean
  /** Called by express-rate-limit. `windowMs` may have any length. */
  init(options: Pick<Options, 'windowMs'>): void
  /** Counts a hit. Returns the hits of this window, including this one, and its end. */
  increment(key: string): ClientRateLimitInfo | Promise<ClientRateLimitInfo>
  /** Takes back one hit, unless its window has ended. Never below 0. */
  decrement(key: string): void | Promise<void>
  /** Hits of this window, 0 if all were taken back. Undefined if none were counted. */
  get(key: string): ClientRateLimitInfo | undefined | Promise<ClientRateLimitInfo | undefined>
  /** Resets one key. Also works before `init`. */
  resetKey(key: string): void | Promise<void>
  /**
   * Resets all keys. Available for the default store and for Redis, where it scans all keys with the prefix of the
   * store. Undefined for other stores.
   */
  resetAll?(): void | Promise<void>
  /** Closes the limiter. A store that was passed in stays open, and its prefix becomes available. */
  shutdown(): Promise<void>
}

/** More hits than a window can hold, so that nothing is ever denied: only express-rate-limit knows the limit. */
const MOST_HITS = 9_000_000_000

const OPTION_NAMES: readonly string[] = ['store', 'prefix', 'clock']

/** Prefixes in use per store. */
const prefixesOnStores = new WeakMap<Store, Set<string>>()

/**
 * A `store` for express-rate-limit 7 and later, counted by Sluice. Exact, also across processes on one Redis. Windows
 * are fixed and aligned to multiples of their length since 1970 by the clock of the store, not to the first hit of a
 * client.
 *
 * While the store is unavailable, `increment` fails with `SLUICE_STORE_UNAVAILABLE`, and `passOnStoreError` of
 * express-rate-limit decides; `failureMode` of the store does not apply. Leases are not used.
 */
export function sluiceStore(options: SluiceStoreOptions = {}): SluiceRateLimitStore {
  checkOptions(options)
  const { store, prefix = 'express-rate-limit', clock = systemClock } = options
  checkPrefix(prefix)
  if (store !== undefined) claimPrefix(store, prefix)
  return store === undefined ? new OwnHitCounter(prefix, clock) : new HitCounter(store, prefix, clock)
}

/** Counts the hits of one limiter. express-rate-limit prints the name of this class in warnings. */
class HitCounter implements SluiceRateLimitStore {
  readonly prefix: string
  readonly localKeys: boolean = false
  declare readonly resetAll?: () => void | Promise<void>
  readonly #clock: Clock
  /** Counters are identified by name and algorithm, independent of the window length. */
  readonly #counters: readonly Limit[]
  #store: Store
  #window: Window | undefined
  /** Error of `init`: express-rate-limit prints it and continues, so every hit must repeat it. */
  #problem: unknown
  #closed = false

  constructor(store: Store, prefix: string, clock: Clock) {
    this.#store = store
    this.prefix = prefix
    this.#clock = clock
    this.#counters = compileRule(prefix, countingRule(1))
    if (canResetAll(store)) this.resetAll = () => store.resetAll(this.#counters)
  }

  init({ windowMs }: Pick<Options, 'windowMs'>): void {
    try {
      this.#window = openWindow(this.#store, this.prefix, windowMs)
      this.#problem = undefined
    } catch (error) {
      this.#problem = error
      throw error
    }
  }

  increment(key: string): ClientRateLimitInfo | Promise<ClientRateLimitInfo> {
    const { limiter, isLeased } = this.#open()
    // A part of the cost is never taken from a lease, and only the store itself knows the hits of all.
    const decision: Decision | Promise<Decision> = isLeased ? limiter.check(key, { partial: true }) : limiter.check(key)
    return decision instanceof Promise ? decision.then(hitsOf) : hitsOf(decision)
  }

  decrement(key: string): void | Promise<void> {
    const { limit } = this.#open()
    // The store only takes back a charge of the current window. express-rate-limit calls this only while the window of
    // the hit is open by the clock of this process. So if both clocks agree on the window, it is that of the hit.
    const charge = { limit, key, at: this.#clock.nowMicros(), cost: 1, mark: 0 }
    return asVoid(this.#store.settle({ holder: 0, held: false, leaseMicros: 0, charges: [charge] }, [0]))
  }

  get(key: string): ClientRateLimitInfo | undefined | Promise<ClientRateLimitInfo | undefined> {
    const batch = createBatch([createItem(this.#open().limit, key, 0)])
    batch.charge = false
    const answer: void | Promise<void> = this.#store.decide(batch)
    return answer instanceof Promise ? answer.then(() => hitsIfAny(batch)) : hitsIfAny(batch)
  }

  resetKey(key: string): void | Promise<void> {
    this.#checkOpen()
    return asVoid(this.#store.reset(this.#counters, key))
  }

  async shutdown(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    releasePrefix(this.#store, this.prefix)
    await this.#window?.limiter.close()
  }

  /** Continues with an empty store. */
  protected moveTo(store: Store): void {
    this.#store = store
    if (this.#window !== undefined) this.init({ windowMs: this.#window.windowMs })
  }

  #checkOpen(): void {
    if (!this.#closed) return
    throw new SluiceError('SLUICE_CLOSED', { problem: 'the store was shut down', action: 'Create a new one.' })
  }

  #open(): Window {
    this.#checkOpen()
    if (this.#problem !== undefined) throw this.#problem
    if (this.#window !== undefined) return this.#window
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: 'the length of the window is not known yet',
      expected: 'a call of init({ windowMs }) before any other',
      action: 'Pass the store to rateLimit({ store }) of express-rate-limit, which does it.',
    })
  }
}

/** Counts in a private memory store. */
class OwnHitCounter extends HitCounter {
  override readonly localKeys = true
  readonly #newStore: () => Store<'sync'>
  #own: Store<'sync'>

  constructor(prefix: string, clock: Clock) {
    const newStore = (): Store<'sync'> => memoryStore({ clock })
    const own = newStore()
    super(own, prefix, clock)
    this.#newStore = newStore
    this.#own = own
  }

  override readonly resetAll = (): void => {
    void this.#own.close()
    this.#own = this.#newStore()
    this.moveTo(this.#own)
  }

  override async shutdown(): Promise<void> {
    await super.shutdown()
    await this.#own.close()
  }
}

/** How hits are counted. */
interface Window {
  readonly windowMs: number
  readonly limiter: Limiter
  readonly limit: Limit
  /** Whether the store may answer from leased units. */
  readonly isLeased: boolean
}

function openWindow(store: Store, prefix: string, windowMs: number): Window {
  const rule = countingRule(windowMs)
  const limiter = createLimiter({ ...rule, name: prefix, store })
  return { windowMs, limiter, limit: compileRule(prefix, rule)[0]!, isLeased: mayLease(store) }
}

function countingRule(windowMs: number): Rule {
  return { algorithm: 'fixed-window', limit: MOST_HITS, window: windowMs, failureMode: 'closed' }
}

/** False for local stores and for stores that report no leases. */
function mayLease(store: Store & { stats?: () => unknown }): boolean {
  if (store.mode === 'sync') return false
  const stats = store.stats?.()
  const saysSo = typeof stats === 'object' && stats !== null && 'leases' in stats
  return !(saysSo && stats.leases === undefined)
}

function hitsOf(decision: Decision): ClientRateLimitInfo {
  if (decision.reason === 'unavailable' || decision.remaining === null) {
    throw new SluiceError('SLUICE_STORE_UNAVAILABLE', {
      problem: `the store did not count the hit (${decision.failure?.cause})`,
      action: 'Set "passOnStoreError" of express-rate-limit to let requests pass meanwhile.',
    })
  }
  const counted = decision.limit - decision.remaining
  return { totalHits: decision.allowed ? counted : counted + 1, resetTime: new Date(decision.resetAt) }
}

/** Hits from a batch without cost. Undefined if the key has no hits in this window. */
function hitsIfAny(batch: Batch): ClientRateLimitInfo | undefined {
  const hits = hitsOf(decisionOn(batch, undefined))
  const isKnown = batch.items[0]!.verdict.freshAt > batch.now
  return isKnown || hits.totalHits > 0 ? hits : undefined
}

/** A store that can reset the counters of all keys. */
interface ResettableStore extends Store<'async'> {
  resetAll(limits: readonly Limit[]): Promise<void>
}

function canResetAll(store: Store): store is ResettableStore {
  return can(store, 'resetAll')
}

/** Drops the value, synchronously if possible. */
function asVoid(answer: unknown): void | Promise<void> {
  return answer instanceof Promise ? answer.then(() => undefined) : undefined
}

function checkOptions(options: SluiceStoreOptions): void {
  if (typeof options !== 'object' || options === null) {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: 'sluiceStore needs options, or nothing',
      received: options,
      expected: 'such as { store: redisStore(url), prefix: "login" }',
    })
  }
  if (can(options, 'decide')) {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: 'sluiceStore was given a store in place of options',
      expected: 'such as { store: redisStore(url), prefix: "login" }',
      action: 'Write: sluiceStore({ store }).',
    })
  }
  for (const name of Object.keys(options)) {
    if (OPTION_NAMES.includes(name)) continue
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: `sluiceStore has no option "${name}"`,
      expected: `one of ${OPTION_NAMES.join(', ')}`,
      action:
        'Limit and window stay with rateLimit() of express-rate-limit; options of a Redis store with redisStore().',
    })
  }
  const { store } = options
  if (store === undefined || can(store, 'decide')) return
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: '"store" of sluiceStore cannot be used',
    received: store,
    expected: 'a store of Sluice, such as memoryStore() or redisStore(url)',
  })
}

/** The prefix is a rule name, so the core validates it. */
function checkPrefix(prefix: string): void {
  try {
    compileRule(prefix, countingRule(1))
  } catch (cause) {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: '"prefix" of sluiceStore cannot be used',
      received: prefix,
      expected: 'up to 128 letters, digits or any of _ . : / * @ -, beginning with a letter or digit, / or *',
      cause,
    })
  }
}

function claimPrefix(store: Store, prefix: string): void {
  let prefixes = prefixesOnStores.get(store)
  if (prefixes === undefined) {
    prefixes = new Set()
    prefixesOnStores.set(store, prefixes)
  }
  if (prefixes.has(prefix)) {
    throw new SluiceError('SLUICE_RULE_CONFLICT', {
      problem: 'another limiter already counts its hits under this prefix on this store',
      received: prefix,
      expected: 'a prefix of its own for every limiter',
      action: 'Give it a "prefix", or shut the other one down first.',
    })
  }
  prefixes.add(prefix)
  const space = spaceOf(store)
  if (typeof space === 'string' && !processRegistry.take(space, prefix)) tellSharedPrefix(prefix)
}

function releasePrefix(store: Store, prefix: string): void {
  const isClaimed = prefixesOnStores.get(store)?.delete(prefix)
  const space = spaceOf(store)
  if (isClaimed === true && typeof space === 'string') processRegistry.leave(space, prefix)
}

/** Not an error, because two similar external stores may be on different servers. */
function tellSharedPrefix(prefix: string): void {
  const code = 'SLUICE_USE_SHARED_NAME'
  if (!processRegistry.isNews(warnProcess, `${code} ${prefix}`)) return
  warnProcess({
    code,
    message:
      `The prefix "${prefix}" is not unique. Two limiters of express-rate-limit count under it on stores ` +
      'that may be the same: what is used up under one is used up under the other. Give each of them a ' +
      '"prefix" of its own.',
    docs: misuseDocs(code),
  })
}
