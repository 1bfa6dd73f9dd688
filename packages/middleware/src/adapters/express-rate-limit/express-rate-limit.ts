import type { Clock, Decision, Limiter, Rule, Store } from '@sluice/core'
import { createLimiter, memoryStore, SluiceError, systemClock } from '@sluice/core'
import type { Batch, Limit } from '@sluice/core/internal'
import { compileRule, createBatch, createItem, decisionOn, spaceOf } from '@sluice/core/internal'
import { can } from '@sluice/core/options'
import type { ClientRateLimitInfo, Options, Store as RateLimitStore } from 'express-rate-limit'
import { processRegistry } from '../../misuse/misuse-registry.ts'
import { misuseDocs, warnProcess } from '../../misuse/misuse-warning.ts'

/** Options of {@link sluiceStore}. */
export interface SluiceStoreOptions {
  /**
   * Where hits are counted: any store of Sluice. It stays the caller's to close. A memory store of its own when left out, which
   * counts in this process only.
   */
  readonly store?: Store
  /**
   * Keeps the hits of this limiter apart from those of others on the same store: the same for one limiter in all processes,
   * different for two limiters. `express-rate-limit` when left out.
   */
  readonly prefix?: string
  /** What time it is when a hit is given back, and the time of the memory store made when none is passed in. */
  readonly clock?: Clock
}

/** A store of Sluice as express-rate-limit sees it. Answers are immediate on a local store, promises on a remote one. */
export interface SluiceRateLimitStore extends RateLimitStore {
  readonly prefix: string
  /** Whether no other limiter can count the same hits: it has a store of its own. */
  readonly localKeys: boolean
  /** Called by express-rate-limit. `windowMs` may be of any length. */
  init(options: Pick<Options, 'windowMs'>): void
  /** Counts a hit, and says how many there are in this window, this one included, and when the window ends. */
  increment(key: string): ClientRateLimitInfo | Promise<ClientRateLimitInfo>
  /** Takes one hit back, unless the window it was counted in is over. Never below 0. */
  decrement(key: string): void | Promise<void>
  /** The hits of this window, 0 when all were taken back; undefined when none were counted. */
  get(key: string): ClientRateLimitInfo | undefined | Promise<ClientRateLimitInfo | undefined>
  /** Forgets the hits of one key. Also before `init`. */
  resetKey(key: string): void | Promise<void>
  /**
   * Forgets all hits. With a store of its own, and on Redis, where it looks at every key with the prefix of the store.
   * Undefined on another store that is passed in.
   */
  resetAll?(): void | Promise<void>
  /** Ends it; a store that was passed in stays open, and its prefix can be used again. */
  shutdown(): Promise<void>
}

/** More hits than a window can see, so that none is ever denied: the limit is known to express-rate-limit alone. */
const MOST_HITS = 9_000_000_000

const OPTION_NAMES: readonly string[] = ['store', 'prefix', 'clock']

/** Which prefixes are in use on each store. */
const prefixesOnStores = new WeakMap<Store, Set<string>>()

/**
 * A `store` for express-rate-limit 7 and later: the middleware stays, its hits are counted by Sluice. Exact, also from many
 * processes on one Redis. Windows are fixed ones that begin at multiples of their length since 1970, by the clock of the store,
 * and not at the first hit of each client.
 *
 * While the store cannot be asked, `increment` fails with `SLUICE_STORE_UNAVAILABLE` and the `passOnStoreError` of
 * express-rate-limit says what then happens; the `failureMode` of the store has no say. Leases are not used.
 */
export function sluiceStore(options: SluiceStoreOptions = {}): SluiceRateLimitStore {
  checkOptions(options)
  const { store, prefix = 'express-rate-limit', clock = systemClock } = options
  checkPrefix(prefix)
  if (store !== undefined) claimPrefix(store, prefix)
  return store === undefined ? new OwnHitCounter(prefix, clock) : new HitCounter(store, prefix, clock)
}

/** Counts the hits of one limiter. Its name is what express-rate-limit calls it when it complains. */
class HitCounter implements SluiceRateLimitStore {
  readonly prefix: string
  readonly localKeys: boolean = false
  declare readonly resetAll?: () => void | Promise<void>
  readonly #clock: Clock
  /** Its counters are known by its name and form, whatever the length of the window. */
  readonly #counters: readonly Limit[]
  #store: Store
  #window: Window | undefined
  /** What was wrong with the window: express-rate-limit prints it and goes on, so that every hit has to say it again. */
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
    // The store does not give back what was charged in another window than it is in. express-rate-limit asks only as long as
    // the window of the hit is not over by the clock of this process: so when both clocks are in one window, it is the hit's.
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

  /** Goes on with another store, in which there is nothing yet. */
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

/** Counts in a memory store that nobody else has. */
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

/** What hits are counted by. */
interface Window {
  readonly windowMs: number
  readonly limiter: Limiter
  readonly limit: Limit
  /** Whether the store might answer from units that it took in advance. */
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

/** False for local stores, and for those that say that they have no leases. */
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

/** The hits that an answer to a question without a cost tells; undefined when nothing is known of the key in this window. */
function hitsIfAny(batch: Batch): ClientRateLimitInfo | undefined {
  const hits = hitsOf(decisionOn(batch, undefined))
  const isKnown = batch.items[0]!.verdict.freshAt > batch.now
  return isKnown || hits.totalHits > 0 ? hits : undefined
}

/** A store that can forget the counters of all keys. */
interface ResettableStore extends Store<'async'> {
  resetAll(limits: readonly Limit[]): Promise<void>
}

function canResetAll(store: Store): store is ResettableStore {
  return can(store, 'resetAll')
}

/** Nothing, at once or later. */
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

/** The prefix is the name of a rule, so the core says what it may be. */
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

/** No error, because two stores outside the process that look the same may yet be on two servers. */
function tellSharedPrefix(prefix: string): void {
  const code = 'SLUICE_USE_SHARED_NAME'
  if (!processRegistry.isNews(warnProcess, `${code} ${prefix}`)) return
  warnProcess({
    code,
    message: `The prefix "${prefix}" is not unique. Two limiters of express-rate-limit count under it on stores that may be the same: what is used up under one is used up under the other. Give each of them a "prefix" of its own.`,
    docs: misuseDocs(code),
  })
}
