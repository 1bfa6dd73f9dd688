import { createVerdict, NEVER, type Verdict } from '../../algorithms/algorithm.ts'
import type { Limit } from '../../rule/limit.ts'
import { MICROS_PER_MS } from '../../system/clock-and-timers.ts'
import { copyVerdict } from '../batch-copy.ts'
import type { Batch } from '../store.ts'

interface DecidedItem {
  readonly limit: Limit
  readonly key: string
  readonly cost: number
  readonly verdict: Verdict
  readonly blockedUntil: number
  readonly at: number
}

/** When a batch was sent and decided, and how long the decision may be reused, in milliseconds of one clock. */
export interface DenialTimes {
  readonly sentMs: number
  readonly answeredMs: number
  readonly maxAgeMs: number
}

/** A denied batch that can be denied again from memory. */
export class Denial {
  readonly endsMs: number
  /** Whether one of its keys is blocked. */
  readonly isBlocked: boolean
  readonly #answeredMs: number
  readonly #items: readonly DecidedItem[]
  readonly #entitled: boolean
  readonly #now: number
  #ended = false

  constructor(batch: Batch, { sentMs, answeredMs, maxAgeMs }: DenialTimes) {
    this.#items = batch.items.map(({ limit, key, cost, verdict, blockedUntil, at }) => {
      const copy = createVerdict()
      copyVerdict(verdict, copy)
      return { limit, key, cost, verdict: copy, blockedUntil, at }
    })
    this.isBlocked = batch.items.some(({ blockedUntil }) => blockedUntil > batch.now)
    this.#entitled = batch.entitled
    this.#now = batch.now
    this.#answeredMs = answeredMs
    // The store decided after the batch was sent, so this is not later than the retry time it meant.
    this.endsMs = sentMs + Math.min(maxAgeMs, (nextChangeOf(batch) - batch.now) / MICROS_PER_MS)
  }

  /** A counter of one of its keys has changed. */
  end(): void {
    this.#ended = true
  }

  isLive(nowMs: number): boolean {
    return !this.#ended && nowMs < this.endsMs
  }

  /** Whether the batch is equal. Limits are compared as objects: a changed limit is another object. */
  answers(batch: Batch): boolean {
    const items = this.#items
    if (items.length !== batch.items.length || this.#entitled !== batch.entitled) return false
    for (let index = 0; index < items.length; index++) {
      const [one, other] = [items[index]!, batch.items[index]!]
      if (one.limit !== other.limit || one.key !== other.key || one.cost !== other.cost) return false
    }
    return true
  }

  /** Writes the decision as of now. */
  writeTo(batch: Batch, nowMs: number): void {
    batch.allowed = false
    batch.failure = undefined
    // Measured from the answer: the store's time is not later, so no retry time is too early.
    batch.now = this.#now + Math.max(0, Math.round((nowMs - this.#answeredMs) * MICROS_PER_MS))
    for (let index = 0; index < this.#items.length; index++) {
      const { verdict, blockedUntil, at } = this.#items[index]!
      const item = batch.items[index]!
      item.blockedUntil = blockedUntil
      item.at = at
      copyVerdict(verdict, item.verdict)
    }
  }
}

/** The first instant at which the decision on one of the items would change by itself. */
function nextChangeOf(batch: Batch): number {
  let soonest = NEVER
  for (const { verdict, blockedUntil } of batch.items) {
    if (verdict.ruling !== 'allowed') soonest = Math.min(soonest, verdict.retryAt)
    if (blockedUntil > batch.now) soonest = Math.min(soonest, blockedUntil)
  }
  return soonest
}
