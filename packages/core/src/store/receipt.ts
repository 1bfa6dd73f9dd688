import type { Batch, Receipt, Settlement } from './store.ts'

/** The receipt of a batch that was charged. */
export function receiptOf(batch: Batch): Receipt {
  return {
    holder: batch.holder,
    held: batch.holdMicros > 0,
    leaseMicros: batch.leaseMicros,
    charges: batch.items.map(({ limit, key, cost, verdict, at }) => ({
      limit,
      key,
      at: at || batch.now,
      cost,
      mark: verdict.mark,
    })),
  }
}

/** What to call the end of a charge: its slot was `gone`, it came `late`, or it is settled. */
export function outcomeOf(gone: boolean, late: boolean): Settlement['outcome'] {
  if (gone) return 'gone'
  return late ? 'late' : 'settled'
}
