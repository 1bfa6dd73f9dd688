import type { Limit } from '../rule/limit.ts'
import type { Batch, Item, Receipt, Settlement } from './store.ts'

/** The receipt of a batch that was charged. */
export function receiptOf(batch: Batch): Receipt {
  return new BatchReceipt(batch)
}

/** What was charged under one limit. A class, as is the receipt, for the reason that decision.ts has. */
class Charged {
  readonly limit: Limit
  readonly key: string
  readonly at: number
  readonly cost: number
  readonly mark: number

  constructor(item: Item, now: number) {
    this.limit = item.limit
    this.key = item.key
    this.at = item.at || now
    this.cost = item.cost
    this.mark = item.verdict.mark
  }
}

class BatchReceipt implements Receipt {
  readonly holder: number
  readonly held: boolean
  readonly leaseMicros: number
  readonly charges: readonly Charged[]

  constructor(batch: Batch) {
    this.holder = batch.holder
    this.held = batch.holdMicros > 0
    this.leaseMicros = batch.leaseMicros
    this.charges = batch.items.map((item) => new Charged(item, batch.now))
  }
}

/** What to call the end of a charge: its slot was `gone`, it came `late`, or it is settled. */
export function outcomeOf(gone: boolean, late: boolean): Settlement['outcome'] {
  if (gone) return 'gone'
  return late ? 'late' : 'settled'
}
