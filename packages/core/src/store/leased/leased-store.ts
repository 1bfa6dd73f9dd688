import { LATEST } from '../../algorithms/algorithm.ts'
import { SluiceError } from '../../errors.ts'
import { checkOptionNames, checkSources, checkWhole, type OptionTaker } from '../../options/known-options.ts'
import type { Limit } from '../../rule/limit.ts'
import type { Timers } from '../../system/clock-and-timers.ts'
import { MICROS_PER_MS, systemMonotonicMs, systemTimers } from '../../system/clock-and-timers.ts'
import type { Random } from '../../system/random.ts'
import { systemRandom } from '../../system/random.ts'
import { CallbackStore, callbackStore, completeAfter, type PendingBatch } from '../callback-store.ts'
import type { Batch, BlockTerm, Item, Receipt, Settlement, Store } from '../store.ts'
import type { Lease, LeaseEvent } from './lease-manager.ts'
import { CLOCK_TOLERANCE, LeaseManager } from './lease-manager.ts'
import type { LeaseSizes } from './leased-key.ts'
import { LeasedKey } from './leased-key.ts'

/** Options of {@link leasedStore}. */
export interface LeasedStoreOptions {
  /** Limits that can give fewer units at once than this are always checked exactly: 2 or more. Default: 100. */
  readonly minLimit?: number
  /** Duration of a lease in milliseconds: 50 to 60,000. Default: 1000. */
  readonly leaseMs?: number
  /** Maximum share of a limit's capacity in one lease: above 0, at most 1. Default: 1/8. */
  readonly maxShare?: number
  /** Units of the first lease of a key, and its minimum: 2 or more. Default: 10. */
  readonly minUnits?: number
  /** Called with every event of a lease. Errors that it throws are ignored. */
  readonly observe?: (event: LeaseEvent) => void
  /** A monotonic clock in milliseconds; it may stop only if the whole machine does. */
  readonly monotonicMs?: () => number
  readonly timers?: Timers
  readonly random?: Random
}

const TAKER: OptionTaker = {
  name: 'leases',
  options: ['minLimit', 'leaseMs', 'maxShare', 'minUnits', 'observe', 'monotonicMs', 'timers', 'random'],
  example: '{ leaseMs: 1000 }',
}

/** Statistics of a leased store. */
export interface LeasedStoreStats {
  /** Leases that this node holds. */
  readonly leases: number
  /** Their unspent units. */
  readonly heldUnits: number
  /** Decisions made here, without asking the store. */
  readonly localDecisions: number
  /** Leases granted so far. */
  readonly grants: number
}

/** Number of sweeps during one lease. */
const SWEEPS_PER_LEASE = 4

/** Maximum number of keys considered for leases. Checks of further keys go to the store. */
const MOST_KEYS = 100_000

/**
 * Leases units of busy keys from `store`, and decides from them without asking: many decisions per round trip. Never
 * admits more than the limit, as long as the store keeps its data; may deny too early, by at most the units that other
 * nodes hold unspent, two leases each. A block or reset by another node takes effect after `leaseMs`.
 *
 * Leases are used for plain charges on token bucket, leaky bucket (meter), GCRA, fixed window (without rollover or
 * calendar) and sliding window counter, from `minLimit` on, for keys that are checked repeatedly. Everything else goes
 * to the store unchanged.
 *
 * Put it directly around a store that several nodes share, and a fallback store around it. A timer runs as long as
 * there is something to return, about the time of a lease after the last call. Closing it returns everything and closes
 * `store`.
 */
export function leasedStore(store: Store<'async'>, options: LeasedStoreOptions = {}): LeasedStore {
  checkOptionNames(options, TAKER)
  checkSources(options)
  return new LeasedStore(store, options)
}

/** A store that leases units of another. */
export class LeasedStore extends CallbackStore {
  readonly #store: CallbackStore
  readonly #leases: LeaseManager
  readonly #sizes: LeaseSizes
  readonly #minLimit: number
  readonly #monotonicMs: () => number
  readonly #timers: Timers
  readonly #sweepMs: number
  readonly #keys = new Map<Limit, Map<string, LeasedKey>>()
  /** The last limit, and its keys: saves a lookup. */
  #lastLimit: Limit | undefined
  #lastKeys: Map<string, LeasedKey> | undefined
  #watched = 0
  #localDecisions = 0
  #cancelSweep: (() => void) | undefined
  #closing: Promise<void> | undefined

  constructor(store: Store<'async'>, options: LeasedStoreOptions) {
    super()
    const { leaseMs = 1000, minLimit = 100, minUnits = 10, maxShare = 1 / 8 } = options
    checkWhole('leaseMs', leaseMs, { of: 'the leased store', least: 50, most: 60_000 })
    checkWhole('minLimit', minLimit, { of: 'the leased store', least: 2, most: Number.MAX_SAFE_INTEGER })
    checkWhole('minUnits', minUnits, { of: 'the leased store', least: 2, most: Number.MAX_SAFE_INTEGER })
    if (!(maxShare > 0 && maxShare <= 1)) throw invalidOption('maxShare', maxShare, 'a number above 0, at most 1')
    this.#store = callbackStore(store)
    this.#minLimit = minLimit
    this.#sizes = { minUnits, maxShare }
    this.#timers = options.timers ?? systemTimers
    this.#monotonicMs = options.monotonicMs ?? systemMonotonicMs
    this.#sweepMs = leaseMs / SWEEPS_PER_LEASE
    const { random = systemRandom, observe } = options
    this.#leases = new LeaseManager({ store: this.#store, random, monotonicMs: this.#monotonicMs, leaseMs, observe })
  }

  stats(): LeasedStoreStats {
    const { leases, units } = this.#leases.stats()
    return { leases, heldUnits: units, localDecisions: this.#localDecisions, grants: this.#leases.grants }
  }

  submit(pending: PendingBatch): void {
    const { batch } = pending
    if (batch.items.length === 1 && this.#takeOne(batch, batch.items[0]!)) pending.complete()
    else if (this.#closing !== undefined) pending.fail(closed())
    else this.#submitUntaken(pending)
  }

  /** What the current leases cannot serve. */
  #submitUntaken(pending: PendingBatch): void {
    const { batch } = pending
    if (isPlainCharge(batch) && batch.items.every((item) => this.#isLeasable(item))) {
      const keys = batch.items.map(({ limit, key }) => this.#keyOf(limit, key) ?? this.#watch(limit, key))
      if (keys.includes(undefined)) this.#store.submit(pending)
      else completeAfter(pending, (own) => this.#decideByLease(own, keys as LeasedKey[]))
      return
    }
    const mayDependOnLeases = this.#watched > 0 && batch.charge && !batch.partial
    const keys = mayDependOnLeases ? batch.items.map(({ limit, key }) => this.#keyOf(limit, key)) : []
    if (keys.some((key) => key?.hasUnspent)) completeAfter(pending, (own) => this.#decideExactly(own, keys))
    else this.#store.submit(pending)
  }

  async settle(receipt: Receipt, actuals: readonly number[]): Promise<Settlement> {
    if (receipt.held || receipt.leaseMicros > 0) return await this.#store.settle(receipt, actuals)
    for (const { limit, key, at } of receipt.charges) {
      // Units spent from a lease are not in use in the store before the lease ends.
      if (at === LATEST) await this.#end(({ id }) => id === limit.id, key)
    }
    const rest: Receipt['charges'][number][] = []
    const restActuals: number[] = []
    let corrected = 0
    for (const [index, charge] of receipt.charges.entries()) {
      const back = this.#putBack(charge, charge.cost - actuals[index]!)
      corrected -= back
      if (back > 0) continue
      rest.push(this.#isMarked(charge) ? { ...charge, mark: 0 } : charge)
      restActuals.push(actuals[index]!)
    }
    if (rest.length === 0) return { outcome: 'settled', corrected }
    const settlement = await this.#store.settle({ ...receipt, charges: rest }, restActuals)
    return { ...settlement, corrected: corrected + settlement.corrected }
  }

  async block(rule: string, key: string, term: BlockTerm): Promise<void> {
    const concerns = (limit: Limit): boolean => limit.rule === rule
    await this.#end(concerns, key)
    await this.#store.block(rule, key, term)
    // Also what was granted before the block was there.
    await this.#end(concerns, key)
  }

  async reset(limits: readonly Limit[], key: string): Promise<void> {
    const concerns = (limit: Limit): boolean => limits.some(({ id }) => id === limit.id)
    await this.#end(concerns, key)
    await this.#store.reset(limits, key)
    await this.#end(concerns, key)
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#cancelSweep?.()
    await Promise.all([...this.#keys.values()].flatMap((keys) => [...keys.values()]).map((key) => key.finish()))
    await this.#leases.settled()
    await this.#store.close()
  }

  /** The fast path, without allocation: one limit, whose lease has enough. */
  #takeOne(batch: Batch, item: Item): boolean {
    const { limit, cost } = item
    const key = this.#keyOf(limit, item.key)
    const lease = key?.current
    if (lease === undefined || cost === 0 || lease.balance < cost || !isPlainCharge(batch)) return false
    const nowMs = this.#monotonicMs()
    if (nowMs >= lease.endsAtMs) return false
    batch.now = storeTime(lease, nowMs)
    batch.allowed = true
    key!.take(lease, cost, nowMs)
    answer(item, lease, batch.now)
    this.#localDecisions++
    return true
  }

  /** Charges all items of a batch to leases, or none. */
  #takeAll(batch: Batch, keys: readonly LeasedKey[]): boolean {
    const nowMs = this.#monotonicMs()
    const leases: Lease[] = []
    for (const [index, { cost }] of batch.items.entries()) {
      const lease = keys[index]!.leaseFor(cost, nowMs)
      if (lease === undefined) return false
      leases.push(lease)
    }
    batch.now = Math.max(...leases.map((lease) => storeTime(lease, nowMs)))
    batch.allowed = true
    for (const [index, item] of batch.items.entries()) {
      keys[index]!.take(leases[index]!, item.cost, nowMs)
      answer(item, leases[index]!, batch.now)
    }
    this.#localDecisions++
    return true
  }

  async #decideByLease(batch: Batch, keys: readonly LeasedKey[]): Promise<void> {
    if (this.#takeAll(batch, keys)) return
    const nowMs = this.#monotonicMs()
    const lacking = batch.items.flatMap(({ cost }, index) =>
      keys[index]!.leaseFor(cost, nowMs) === undefined ? [{ key: keys[index]!, cost }] : [],
    )
    for (const { key } of lacking) key.countCall()
    if (lacking.every(({ key, cost }) => key.isWorthLeasing(cost))) {
      await Promise.all(lacking.map(({ key, cost }) => key.grant(cost)))
      if (this.#takeAll(batch, keys)) return
    }
    await this.#decideExactly(batch, keys)
  }

  /** Decides in the store. A denial caused by units that are unspent here does not count: they are returned first. */
  async #decideExactly(batch: Batch, keys: readonly (LeasedKey | undefined)[]): Promise<void> {
    await this.#decideInStore(batch, keys)
    if (batch.allowed) return
    const inTheWay = keys.filter((key, index) => batch.items[index]!.verdict.ruling === 'limit' && key?.hasUnspent)
    if (inTheWay.length === 0) return
    await Promise.all(inTheWay.map((key) => key?.end()))
    await this.#decideInStore(batch, keys)
  }

  async #decideInStore(batch: Batch, keys: readonly (LeasedKey | undefined)[]): Promise<void> {
    await this.#store.decide(batch)
    for (const [index, { verdict, blockedUntil }] of batch.items.entries()) {
      keys[index]?.note(blockedUntil > 0 ? 0 : verdict.remaining)
    }
  }

  /** Returns units to the lease they were charged to. Returns how many: 0 if it has ended. */
  #putBack(charge: Receipt['charges'][number], units: number): number {
    if (units <= 0 || !this.#isMarked(charge)) return 0
    const lease = this.#leases.find(charge.mark)
    if (lease === undefined || this.#monotonicMs() >= lease.endsAtMs) return 0
    const lent = lease.receipt.charges[0]!
    if (lent.limit.id !== charge.limit.id || lent.key !== charge.key) return 0
    const back = Math.min(units, lease.units - lease.balance)
    lease.balance += back
    return back
  }

  /** Whether a charge was taken from a lease. The algorithms that leases are for leave the mark at 0. */
  #isMarked({ limit, mark }: Receipt['charges'][number]): boolean {
    return mark > 0 && hasLeases(limit)
  }

  #isLeasable({ limit, cost }: Item): boolean {
    return cost > 0 && limit.capacity >= this.#minLimit && hasLeases(limit)
  }

  #keyOf(limit: Limit, key: string): LeasedKey | undefined {
    if (limit !== this.#lastLimit) {
      this.#lastLimit = limit
      this.#lastKeys = this.#keys.get(limit)
    }
    return this.#lastKeys?.get(key)
  }

  /** Starts to track a key; undefined if there are too many. */
  #watch(limit: Limit, key: string): LeasedKey | undefined {
    if (this.#watched >= MOST_KEYS) return undefined
    const keys = this.#keys.get(limit) ?? new Map<string, LeasedKey>()
    this.#keys.set(limit, keys)
    this.#lastLimit = undefined
    const watched = new LeasedKey(limit, key, { manager: this.#leases, sizes: this.#sizes })
    keys.set(key, watched)
    this.#watched++
    this.#cancelSweep ??= this.#timers.schedule(this.#sweepMs, () => this.#sweep())
    return watched
  }

  /** Ends the leases of a key under some limits. */
  async #end(concerns: (limit: Limit) => boolean, key: string): Promise<void> {
    const endings: (Promise<void> | undefined)[] = []
    for (const [limit, keys] of this.#keys) {
      if (concerns(limit)) endings.push(keys.get(key)?.end())
    }
    await Promise.all(endings)
  }

  #sweep(): void {
    this.#cancelSweep = undefined
    const nowMs = this.#monotonicMs()
    for (const [limit, keys] of this.#keys) {
      for (const [key, watched] of keys) {
        if (!watched.sweep(nowMs, this.#sweepMs)) continue
        keys.delete(key)
        this.#watched--
      }
      if (keys.size === 0) this.#keys.delete(limit)
    }
    this.#lastLimit = undefined
    if (this.#watched > 0) this.#cancelSweep = this.#timers.schedule(this.#sweepMs, () => this.#sweep())
  }
}

/** A plain charge: no peek, no partial charge, no slot, no reservation, no lease. */
function isPlainCharge(batch: Batch): boolean {
  return batch.charge && !batch.partial && batch.holder === 0 && batch.holdMicros === 0 && batch.leaseMicros === 0
}

/** Whether units of the limit can be leased. */
function hasLeases(limit: Limit): boolean {
  switch (limit.algorithm) {
    case 'token-bucket':
    case 'leaky-bucket-meter':
    case 'gcra':
    case 'sliding-window-counter':
      return true
    case 'fixed-window':
      return limit.rolloverMax === 0 && typeof limit.window === 'number'
    default:
      return false
  }
}

const MICROS_PER_MS_AT_LEAST = MICROS_PER_MS * (1 - CLOCK_TOLERANCE)

/**
 * The store's time, or a little before: never after, so that a refund of what is taken now cannot be taken for one of a
 * later window. Its answer was given before it arrived here, and the clock here may be fast.
 */
function storeTime(lease: Lease, nowMs: number): number {
  return lease.storeNow + Math.floor((nowMs - lease.grantedAtMs) * MICROS_PER_MS_AT_LEAST)
}

/** Writes the answer of a take, after it. */
function answer(item: Item, lease: Lease, now: number): void {
  const { verdict } = item
  item.blockedUntil = 0
  verdict.ruling = 'allowed'
  verdict.remaining = lease.balance + lease.left
  verdict.resetAt = lease.resetAt
  verdict.freshAt = lease.freshAt
  verdict.retryAt = now
  verdict.delayMicros = 0
  verdict.mark = lease.serial
  verdict.nextLength = 0
}

function invalidOption(option: string, received: unknown, expected: string): SluiceError {
  const problem = `"${option}" of the leased store cannot be used`
  return new SluiceError('SLUICE_INVALID_OPTION', { problem, received, expected })
}

function closed(): SluiceError {
  return new SluiceError('SLUICE_CLOSED', { problem: 'the leased store is closed', action: 'Create a new one.' })
}
