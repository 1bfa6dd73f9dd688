import type { Verdict } from '../algorithms/algorithm.ts'
import { createItem } from './batch.ts'
import type { Batch, Item } from './store.ts'

/** The same batch, undecided. */
export function copyBatch(batch: Batch): Batch {
  const items: Item[] = []
  for (let index = 0; index < batch.items.length; index++) {
    const { limit, key, cost } = batch.items[index]!
    items.push(createItem(limit, key, cost))
  }
  return {
    items,
    charge: batch.charge,
    partial: batch.partial,
    entitled: batch.entitled,
    holder: batch.holder,
    holdMicros: batch.holdMicros,
    leaseMicros: batch.leaseMicros,
    isUrgent: batch.isUrgent,
    allowed: false,
    now: 0.5,
    failure: undefined,
  }
}

/** Copies the decision of a batch to an equal one. States stay with the store that keeps them. */
export function copyDecision(from: Batch, to: Batch): void {
  to.allowed = from.allowed
  to.now = from.now
  to.failure = from.failure
  for (let index = 0; index < to.items.length; index++) {
    const decided = from.items[index]!
    const item = to.items[index]!
    item.limit = decided.limit
    item.cost = decided.cost
    item.blockedUntil = decided.blockedUntil
    item.at = decided.at
    copyVerdict(decided.verdict, item.verdict)
  }
}

/** Copies what a verdict says, but not the state that it would store. */
export function copyVerdict(from: Verdict, to: Verdict): void {
  to.ruling = from.ruling
  to.remaining = from.remaining
  to.resetAt = from.resetAt
  to.retryAt = from.retryAt
  to.delayMicros = from.delayMicros
  to.freshAt = from.freshAt
  to.mark = from.mark
  to.nextLength = 0
}
