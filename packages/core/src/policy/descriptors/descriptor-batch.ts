import { isUnknown, type Remaining } from '../../limiter/decision.ts'
import type { Limit } from '../../rule/limit.ts'
import { createBatch, createItem } from '../../store/batch.ts'
import { receiptOf } from '../../store/receipt.ts'
import type { Batch, Item, Receipt } from '../../store/store.ts'
import { MICROS_PER_SECOND } from '../../system/clock-and-timers.ts'

/** What kind of question. */
interface QuestionKind {
  readonly isTogether: boolean
  readonly isShadow: boolean
  /** Takes what is left where that is less than the cost. */
  readonly partial: boolean
}

/** Limits of a request that are decided in one step: all that are enforced together, or one on its own. */
export class DescriptorBatch {
  readonly batch: Batch
  /** Whether all enforced limits belong here. */
  readonly isTogether: boolean
  /** Whether it is measured only: no answer is needed. */
  readonly isShadow: boolean
  /** False when the store gave no answer. */
  isAnswered = true
  readonly #items: Item[] = []
  /** Units asked for, by item: those of an item itself are lowered when it takes only what is left. */
  readonly #wanted: number[] = []
  #isGivenBack = false

  constructor({ isTogether, isShadow, partial }: QuestionKind) {
    this.isTogether = isTogether
    this.isShadow = isShadow
    this.batch = createBatch(this.#items)
    this.batch.charge = false
    this.batch.partial = partial
  }

  /** Whether it is asked in this way. */
  isLike({ isShadow, partial }: Omit<QuestionKind, 'isTogether'>): boolean {
    return this.isShadow === isShadow && this.batch.partial === partial
  }

  /** The question that a counter is part of, or -1. */
  indexOf(limit: Limit, key: string): number {
    for (let index = 0; index < this.#items.length; index++) {
      const item = this.#items[index]!
      if (item.key === key && item.limit.id === limit.id) return index
    }
    return -1
  }

  /** Asks for units of a counter; those of one counter add up, and the smallest of its limits holds. Returns where. */
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
   * Whether the limit denies. A counter never passes its limit here, because a denied call costs nothing; so one that
   * is used up is over when it is only asked about.
   */
  isOver(index: number): boolean {
    if (!this.isAnswered) return false
    const { verdict, blockedUntil, cost } = this.#items[index]!
    if (verdict.ruling !== 'allowed' || blockedUntil > this.batch.now) return true
    return this.#wanted[index] === 0 ? verdict.remaining === 0 : cost < this.#wanted[index]!
  }

  /** Units left, as they really are: a verdict that allows has counted a charge, which may not have been made. */
  remaining(index: number): Remaining {
    const { verdict, blockedUntil, cost } = this.#items[index]!
    if (!this.isAnswered || isUnknown(this.batch)) return null
    if (blockedUntil > this.batch.now) return 0
    return verdict.ruling === 'allowed' && !this.isCharged ? verdict.remaining + cost : verdict.remaining
  }

  resetAfterSeconds(index: number): number {
    if (!this.isAnswered) return 0
    const { verdict, at } = this.#items[index]!
    // In a window that slides, a denied call may be repeated before all of it is free again.
    const untilMicros = verdict.ruling === 'allowed' ? verdict.resetAt : Math.min(verdict.resetAt, verdict.retryAt)
    return Math.max(0, Math.ceil((untilMicros - (at || this.batch.now)) / MICROS_PER_SECOND))
  }

  /** Whether units were taken, and not given back. */
  get isCharged(): boolean {
    return this.isAnswered && this.batch.allowed && this.batch.charge && !this.#isGivenBack
  }

  /** What to settle at nothing, so that everything is given back. From now on it counts as such. */
  giveBack(): Receipt {
    this.#isGivenBack = true
    return receiptOf(this.batch)
  }
}
