import type { Batch, Receipt } from './store.ts'

/** The receipt of a batch that was charged. */
export function receiptOf(batch: Batch): Receipt {
  return {
    holder: batch.holder,
    held: batch.holdMicros > 0,
    charges: batch.items.map(({ limit, key, cost, verdict }) => ({
      limit,
      key,
      at: batch.now,
      cost,
      mark: verdict.mark,
    })),
  }
}
