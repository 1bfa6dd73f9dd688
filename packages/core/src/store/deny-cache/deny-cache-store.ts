import { checkOptionNames, checkWhole, type OptionTaker } from '../../options/known-options.ts'
import type { Limit } from '../../rule/limit.ts'
import { MICROS_PER_MS, systemMonotonicMs } from '../../system/clock-and-timers.ts'
import { CallbackStore, callbackStore, type PendingBatch } from '../callback-store.ts'
import type { Batch, BlockTerm, Receipt, Settlement, Store } from '../store.ts'
import { type StoreObserver, tell } from '../store-event.ts'
import { Denial } from './denial.ts'

/** Options of {@link denyCacheStore}. */
export interface DenyCacheOptions {
  /** How long a denial may be answered again, 1 to 60,000. Default: 100. */
  readonly maxAgeMs?: number
  /** Most keys with a remembered denial, 1 to 10,000,000. Default: 10,000. The oldest goes first. */
  readonly maxKeys?: number
  readonly observe?: StoreObserver
  /** Milliseconds that only go on. Default: `performance.now()`. */
  readonly monotonicMs?: () => number
}

const TAKER: OptionTaker = {
  name: 'the deny cache',
  options: ['maxAgeMs', 'maxKeys', 'observe', 'monotonicMs'],
  example: '{ maxAgeMs: 100 }',
}

/** Denials remembered for one key: of batches that differ in rules, costs or other keys. */
const DENIALS_PER_KEY = 8

/**
 * A store that remembers denials for a moment: a caller that is denied and checks again costs `store` no more than one
 * check per `maxAgeMs`. Only plain checks are denied from memory, of the same limits, keys and costs; never an
 * allowance.
 *
 * What this process does to a key (a charge, a settlement, a block, a reset) is seen at once, and so is a changed
 * limit. What another process does, and what a store gives back by itself, is seen after `maxAgeMs` at the latest:
 * until then a call may be denied that would just now be allowed. Other fields of a remembered answer are as old. A
 * block of another process is seen with the first answer about any limit of the key.
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
  /** By key; a denial of several keys stands with each of them. The keys denied last come last. */
  readonly #denials = new Map<string, Denial[]>()
  /** Until when reservations of this process hold a key: they come back by themselves, and no denial says when. */
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

  /** Notes a decision of the store. `changes` is how many there were when the batch was submitted. */
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
      // Denials that do not know of the block are out of date.
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
      // One that is no longer found by all of its keys must not be found at all.
      if (others.length === DENIALS_PER_KEY) others.shift()?.end()
      this.#denials.delete(key)
      this.#denials.set(key, [...others, denial])
    }
    for (const key of this.#denials.keys()) {
      if (this.#denials.size <= this.#maxKeys) break
      this.#forget(key)
    }
  }

  /** Whether something is known to have changed for the key meanwhile, or to change by itself soon. */
  #isUnsettled(key: string, { answeredMs, changes }: { answeredMs: number; changes: number }): boolean {
    if (this.#changes.changedSince(changes, key)) return true
    const heldUntilMs = this.#heldUntilMs.get(key)
    if (heldUntilMs === undefined) return false
    if (heldUntilMs > answeredMs) return true
    this.#heldUntilMs.delete(key)
    return false
  }

  /** A charge leaves less than a denial has said. */
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

  /** Makes a change. It may happen at any instant until it is answered, so what is known ends before and after. */
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

  /** Drops what is over among the keys denied longest ago, so that a calm store gets back to remembering nothing. */
  #dropOldest(nowMs: number): void {
    for (const [key, denials] of this.#denials) {
      if (denials.some((denial) => denial.isLive(nowMs))) return
      this.#denials.delete(key)
    }
  }
}

/** A batch whose decision is noted before it goes to the caller. */
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

/** Whether another batch with the same limits, keys and costs is equal to it: no holder, reservation or lease. */
function isPlain(batch: Batch): boolean {
  return (
    !batch.partial && batch.holder === 0 && batch.holdMicros === 0 && batch.leaseMicros === 0 && batch.items.length > 0
  )
}

/** Number of changes remembered: more than are made while one batch is in flight. */
const REMEMBERED = 4096

/**
 * Which keys were changed lately, so that a decision that was in flight meanwhile is not taken for the latest. Bounded:
 * of what was forgotten, every key counts as changed.
 */
export class ChangedKeys {
  readonly #ring: (string | undefined)[] = []
  readonly #latest = new Map<string, number>()
  #count = 0

  /** Changes so far. */
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

  /** Whether the key may have been changed since `count` was what is given. */
  changedSince(count: number, key: string): boolean {
    if (count === this.#count) return false
    return this.#count - count > REMEMBERED || (this.#latest.get(key) ?? -1) >= count
  }
}
