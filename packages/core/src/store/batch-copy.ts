import type { Verdict } from '../algorithms/algorithm.ts'
import { createItem } from './batch.ts'
import type { Batch, Item } from './store.ts'

/** The same question on a new sheet, unanswered. */
export function copyQuestion(batch: Batch): Batch {
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
    allowed: false,
    now: 0.5,
    failure: undefined,
  }
}

/** Writes the answers of one sheet onto another with the same question. States stay with the store that keeps them. */
export function copyAnswers(from: Batch, to: Batch): void {
  to.allowed = from.allowed
  to.now = from.now
  to.failure = from.failure
  for (let index = 0; index < to.items.length; index++) {
    const answered = from.items[index]!
    const item = to.items[index]!
    item.limit = answered.limit
    item.cost = answered.cost
    item.blockedUntil = answered.blockedUntil
    item.at = answered.at
    copyVerdict(answered.verdict, item.verdict)
  }
}

/** Writes what a verdict says, but not the state that it would store. */
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
