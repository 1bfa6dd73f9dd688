import { isUnknown, type Remaining } from '../../limiter/decision.ts'
import type { Limit } from '../../rule/limit.ts'
import { createBatch, createItem, receiptOf } from '../../store/batch.ts'
import type { Batch, Item, Receipt } from '../../store/store.ts'
import { MICROS_PER_SECOND } from '../../system/clock-and-timers.ts'

/** How a batch is decided. */
interface BatchKind {
  readonly isTogether: boolean
  readonly isShadow: boolean
  /** Whether to charge the remaining units if they are fewer than the cost. */
  readonly partial: boolean
}

/** Limits of a request that are decided in one step: all enforced ones together, or a single other one. */
export class DescriptorBatch {
  readonly batch: Batch
  /** Whether it is the batch of all enforced limits. */
  readonly isTogether: boolean
  /** Whether it is only measured: the request does not need its result. */
  readonly isShadow: boolean
  /** False if the store did not answer. */
  isAnswered = true
  readonly #items: Item[] = []
  /** Units requested, by item. `cost` of an item is lower after a partial charge. */
  readonly #wanted: number[] = []
  #isGivenBack = false

  constructor({ isTogether, isShadow, partial }: BatchKind) {
    this.isTogether = isTogether
    this.isShadow = isShadow
    this.batch = createBatch(this.#items)
    this.batch.charge = false
    this.batch.partial = partial
  }

  /** Whether it is decided in this way. */
  isLike({ isShadow, partial }: Omit<BatchKind, 'isTogether'>): boolean {
    return this.isShadow === isShadow && this.batch.partial === partial
  }

  /** Index of the item for a counter, or -1. */
  indexOf(limit: Limit, key: string): number {
    for (let index = 0; index < this.#items.length; index++) {
      const item = this.#items[index]!
      if (item.key === key && item.limit.id === limit.id) return index
    }
    return -1
  }

  /**
   * Adds units of a counter and returns the index of its item. Units of the same counter add up; the smallest of its
   * limits applies.
   */
  add(limit: Limit, key: string, units: number): number {
    if (units > 0) this.batch.charge = true
    const index = this.indexOf(limit, key)
    if (index < 0) {
      this.#items.push(createItem(limit, key, units))
      return this.#wanted.push(units) - 1
    }
    const item = this.#items[index]!
    item.cost = Math.min(Number.MAX_SAFE_INTEGER, item.cost + units)
    this.#wanted[index] = item.cost
    if (limit.limit < item.limit.limit) item.limit = limit
    return index
  }

  /**
   * Whether the limit denies. A counter never exceeds its limit here, because a denied call costs nothing. So a used-up
   * counter counts as over when it is only peeked at.
   */
  isOver(index: number): boolean {
    if (!this.isAnswered) return false
    const { verdict, blockedUntil, cost } = this.#items[index]!
    if (verdict.ruling !== 'allowed' || blockedUntil > this.batch.now) return true
    return this.#wanted[index] === 0 ? verdict.remaining === 0 : cost < this.#wanted[index]!
  }

  /** Units that really remain: an allowing verdict includes a charge, which may not have been made. */
  remaining(index: number): Remaining {
    const { verdict, blockedUntil, cost } = this.#items[index]!
    if (!this.isAnswered || isUnknown(this.batch)) return null
    if (blockedUntil > this.batch.now) return 0
    return verdict.ruling === 'allowed' && !this.isCharged ? verdict.remaining + cost : verdict.remaining
  }

  resetAfterSeconds(index: number): number {
    if (!this.isAnswered) return 0
    const { verdict, at } = this.#items[index]!
    // In a sliding window, a denied call can be repeated before the whole window is free again.
    const untilMicros = verdict.ruling === 'allowed' ? verdict.resetAt : Math.min(verdict.resetAt, verdict.retryAt)
    return Math.max(0, Math.ceil((untilMicros - (at || this.batch.now)) / MICROS_PER_SECOND))
  }

  /** Whether units were charged and not returned. */
  get isCharged(): boolean {
    return this.isAnswered && this.batch.allowed && this.batch.charge && !this.#isGivenBack
  }

  /** The batch to settle at 0, which returns everything. It counts as returned from now on. */
  giveBack(): Receipt {
    this.#isGivenBack = true
    return receiptOf(this.batch)
  }
}
