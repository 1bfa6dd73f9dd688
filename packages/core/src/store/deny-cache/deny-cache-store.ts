import { checkOptionNames, checkWhole, type OptionTaker } from '../../options/known-options.ts'
import type { Limit } from '../../rule/limit.ts'
import { MICROS_PER_MS, systemMonotonicMs } from '../../system/clock-and-timers.ts'
import { CallbackStore, callbackStore, type PendingBatch } from '../callback-store.ts'
import type { Batch, BlockTerm, Receipt, Settlement, Store } from '../store.ts'
import { type StoreObserver, tell } from '../store-event.ts'
import { Denial } from './denial.ts'

/** Options of {@link denyCacheStore}. */
export interface DenyCacheOptions {
  /** How long a denial is cached, 1 to 60,000. Default: 100. */
  readonly maxAgeMs?: number
  /** Maximum number of keys with a cached denial, 1 to 10,000,000. Default: 10,000. The oldest is evicted first. */
  readonly maxKeys?: number
  readonly observe?: StoreObserver
  /** A monotonic clock in milliseconds. Default: `performance.now()`. */
  readonly monotonicMs?: () => number
}

const TAKER: OptionTaker = {
  name: 'the deny cache',
  options: ['maxAgeMs', 'maxKeys', 'observe', 'monotonicMs'],
  example: '{ maxAgeMs: 100 }',
}

/** Denials of one key: of batches that differ in rules, costs or other keys. */
const DENIALS_PER_KEY = 8

/**
 * A store that caches denials for a moment: a denied caller that retries costs `store` at most one check per
 * `maxAgeMs`. Only plain checks with the same limits, keys and costs are denied from memory; nothing is ever allowed
 * from memory.
 *
 * Changes by this process (a charge, a settlement, a block, a reset, a changed limit) take effect at once. Changes by
 * other processes, and units that the store returns by itself, take effect after at most `maxAgeMs`: until then a call
 * may be denied although it would be allowed. Other fields of a cached decision are as old. A block of another process
 * is noticed with the first answer about any limit of the key.
 */
export function denyCacheStore(store: Store<'async'>, options: DenyCacheOptions = {}): Store<'async'> {
  checkOptionNames(options, TAKER)
  return new DenyCacheStore(store, options)
}

class DenyCacheStore extends CallbackStore {
  readonly #store: CallbackStore
  readonly #maxAgeMs: number
  readonly #maxKeys: number
  readonly #observe: StoreObserver | undefined
  readonly #monotonicMs: () => number
  /** By key; a denial of several keys is listed under each of them. The most recently denied keys come last. */
  readonly #denials = new Map<string, Denial[]>()
  /** Until when reservations of this process hold a key: they return by themselves, and no denial tells when. */
  readonly #heldUntilMs = new Map<string, number>()
  readonly #changes = new ChangedKeys()
  #closed = false

  constructor(store: Store<'async'>, options: DenyCacheOptions) {
    super()
    this.#store = callbackStore(store)
    this.#maxAgeMs = checkWhole('maxAgeMs', options.maxAgeMs ?? 100, { of: 'the deny cache', most: 60_000 })
    this.#maxKeys = checkWhole('maxKeys', options.maxKeys ?? 10_000, { of: 'the deny cache', most: 10_000_000 })
    this.#observe = options.observe
    this.#monotonicMs = options.monotonicMs ?? systemMonotonicMs
  }

  submit(pending: PendingBatch): void {
    const nowMs = this.#monotonicMs()
    if (this.#denials.size > 0 && this.#denyAgain(pending.batch, nowMs)) pending.complete()
    else this.#store.submit(new NotedBatch(this, pending, nowMs, this.#changes.count))
  }

  /** Caches a decision of the store. `changes`: number of changes when the batch was submitted. */
  note(batch: Batch, sentMs: number, changes: number): void {
    if (!batch.charge) return
    if (batch.allowed) this.#noteCharge(batch)
    else if (batch.failure === undefined) this.#noteDenial(batch, sentMs, changes)
  }

  settle(receipt: Receipt, actuals: readonly number[]): Promise<Settlement> {
    return this.#change(
      receipt.charges.map(({ key }) => key),
      () => this.#store.settle(receipt, actuals),
    )
  }

  block(rule: string, key: string, term: BlockTerm): Promise<void> {
    return this.#change([key], () => this.#store.block(rule, key, term))
  }

  reset(limits: readonly Limit[], key: string): Promise<void> {
    return this.#change([key], () => this.#store.reset(limits, key))
  }

  close(): Promise<void> {
    this.#closed = true
    this.#denials.clear()
    this.#heldUntilMs.clear()
    return this.#store.close()
  }

  /** Denies from memory, if the same batch was denied a moment ago. */
  #denyAgain(batch: Batch, nowMs: number): boolean {
    this.#dropOldest(nowMs)
    if (!(batch.charge && isPlain(batch))) return false
    const denials = this.#denials.get(batch.items[0]!.key)
    const denial = denials?.find((known) => known.isLive(nowMs) && known.answers(batch))
    if (denial === undefined) return false
    denial.writeTo(batch, nowMs)
    if (this.#observe !== undefined) tell(this.#observe, { type: 'remembered', rule: batch.items[0]!.limit.rule })
    return true
  }

  #noteDenial(batch: Batch, sentMs: number, changes: number): void {
    for (const { key, blockedUntil } of batch.items) {
      if (blockedUntil <= batch.now) continue
      // Denials without this block are out of date.
      for (const denial of this.#denials.get(key) ?? []) if (!denial.isBlocked) denial.end()
    }
    if (isPlain(batch)) this.#remember(batch, sentMs, changes)
  }

  #remember(batch: Batch, sentMs: number, changes: number): void {
    const answeredMs = this.#monotonicMs()
    if (this.#closed || batch.items.some(({ key }) => this.#isUnsettled(key, { answeredMs, changes }))) return
    const denial = new Denial(batch, { sentMs, answeredMs, maxAgeMs: this.#maxAgeMs })
    if (!denial.isLive(answeredMs)) return
    for (const key of new Set(batch.items.map((item) => item.key))) {
      const others = this.#denials.get(key)?.filter((known) => known.isLive(answeredMs) && !known.answers(batch)) ?? []
      // If it is no longer listed under all of its keys, it must not be found under any.
      if (others.length === DENIALS_PER_KEY) others.shift()?.end()
      this.#denials.delete(key)
      this.#denials.set(key, [...others, denial])
    }
    for (const key of this.#denials.keys()) {
      if (this.#denials.size <= this.#maxKeys) break
      this.#forget(key)
    }
  }

  /** Whether the key is known to have changed meanwhile, or to change by itself soon. */
  #isUnsettled(key: string, { answeredMs, changes }: { answeredMs: number; changes: number }): boolean {
    if (this.#changes.changedSince(changes, key)) return true
    const heldUntilMs = this.#heldUntilMs.get(key)
    if (heldUntilMs === undefined) return false
    if (heldUntilMs > answeredMs) return true
    this.#heldUntilMs.delete(key)
    return false
  }

  /** A charge leaves less than a denial has reported. */
  #noteCharge(batch: Batch): void {
    const { holdMicros, leaseMicros, items } = batch
    if (this.#denials.size > 0) for (const { key, cost } of items) if (cost > 0) this.#forget(key)
    const micros = Math.max(holdMicros, leaseMicros)
    if (micros === 0) return
    const endMs = this.#monotonicMs() + micros / MICROS_PER_MS
    for (const { key } of items) {
      const latestMs = Math.max(endMs, this.#heldUntilMs.get(key) ?? 0)
      this.#heldUntilMs.delete(key)
      this.#heldUntilMs.set(key, latestMs)
    }
    for (const key of this.#heldUntilMs.keys()) {
      if (this.#heldUntilMs.size <= this.#maxKeys) break
      this.#heldUntilMs.delete(key)
    }
  }

  /** Makes a change. It may take effect at any time until it is answered, so cached denials end before and after. */
  async #change<T>(keys: readonly string[], change: () => Promise<T>): Promise<T> {
    this.#forgetAll(keys)
    try {
      return await change()
    } finally {
      this.#forgetAll(keys)
    }
  }

  #forgetAll(keys: readonly string[]): void {
    for (const key of keys) {
      this.#changes.note(key)
      this.#forget(key)
    }
  }

  #forget(key: string): void {
    const denials = this.#denials.get(key)
    if (denials === undefined) return
    for (const denial of denials) denial.end()
    this.#denials.delete(key)
  }

  /** Drops expired denials of the keys denied longest ago, so that the cache becomes empty again without denials. */
  #dropOldest(nowMs: number): void {
    for (const [key, denials] of this.#denials) {
      if (denials.some((denial) => denial.isLive(nowMs))) return
      this.#denials.delete(key)
    }
  }
}

/** A batch whose decision is cached before it reaches the caller. */
class NotedBatch implements PendingBatch {
  batch: Batch
  next: PendingBatch | undefined = undefined
  readonly #store: DenyCacheStore
  readonly #caller: PendingBatch
  readonly #sentMs: number
  readonly #changes: number

  constructor(store: DenyCacheStore, caller: PendingBatch, sentMs: number, changes: number) {
    this.batch = caller.batch
    this.#store = store
    this.#caller = caller
    this.#sentMs = sentMs
    this.#changes = changes
  }

  get isSent(): boolean {
    return this.#caller.isSent
  }

  set isSent(isSent: boolean) {
    this.#caller.isSent = isSent
  }

  get isAbandoned(): boolean {
    return this.#caller.isAbandoned
  }

  complete(): void {
    this.#store.note(this.batch, this.#sentMs, this.#changes)
    this.#caller.batch = this.batch
    this.#caller.complete()
  }

  fail(error: unknown): void {
    this.#caller.fail(error)
  }
}

/** Whether batches with the same limits, keys and costs are interchangeable: no holder, reservation or lease. */
function isPlain(batch: Batch): boolean {
  return (
    !batch.partial && batch.holder === 0 && batch.holdMicros === 0 && batch.leaseMicros === 0 && batch.items.length > 0
  )
}

/** Number of recorded changes: more than happen while one batch is in flight. */
const REMEMBERED = 4096

/**
 * Recently changed keys, so that a decision that was in flight during a change is not cached. Bounded: for evicted
 * changes, every key counts as changed.
 */
export class ChangedKeys {
  readonly #ring: (string | undefined)[] = []
  readonly #latest = new Map<string, number>()
  #count = 0

  /** Number of changes so far. */
  get count(): number {
    return this.#count
  }

  note(key: string): void {
    const place = this.#count % REMEMBERED
    const leaving = this.#ring[place]
    if (leaving !== undefined && this.#latest.get(leaving) === this.#count - REMEMBERED) this.#latest.delete(leaving)
    this.#ring[place] = key
    this.#latest.set(key, this.#count)
    this.#count++
  }

  /** Whether the key may have changed since there were `count` changes. */
  changedSince(count: number, key: string): boolean {
    if (count === this.#count) return false
    return this.#count - count > REMEMBERED || (this.#latest.get(key) ?? -1) >= count
  }
}
