import { createVerdict } from '../algorithms/algorithm.ts'
import { SluiceError } from '../errors.ts'
import type { Limit } from '../rule/limit.ts'
import type { Random } from '../system/random.ts'
import { checkKey } from './key.ts'
import type { Batch, Item, Receipt, Settlement } from './store.ts'

/** Maximum cost: the largest possible limit plus one, so that it can be denied. */
const LARGEST_COST = Number.MAX_SAFE_INTEGER

/** A request to one rule: its limits, a key and a cost. */
export interface LimitRequest {
  readonly limits: readonly Limit[]
  readonly key: string
  readonly cost: number
}

/** Throws `SLUICE_INVALID_COST` unless `cost` is a whole number, 0 or more. */
export function checkCost(cost: unknown): asserts cost is number {
  if (typeof cost === 'number' && Number.isSafeInteger(cost) && cost >= 0 && cost <= LARGEST_COST) return
  throw new SluiceError('SLUICE_INVALID_COST', {
    problem: 'the cost cannot be used',
    received: cost,
    expected: 'a whole number of units, 0 or more',
    action: 'Round it up, or count in a smaller unit. To give units back, use refund or adjust.',
  })
}

/** An undecided item of a batch. */
export function createItem(limit: Limit, key: string, cost: number): Item {
  return { limit, key, cost, verdict: createVerdict(), blockedUntil: 0, at: 0 }
}

/** A batch that charges all of its items or none. */
export function createBatch(items: readonly Item[]): Batch {
  return {
    items,
    charge: true,
    partial: false,
    entitled: true,
    holder: 0,
    holdMicros: 0,
    leaseMicros: 0,
    isUrgent: false,
    allowed: false,
    now: 0.5,
    failure: undefined,
  }
}

/** A batch of several requests; two requests for the same limit and key become one with the sum of their costs. */
export function batchOf(requests: readonly LimitRequest[]): Batch {
  const items: Item[] = []
  for (const { limits, key, cost } of requests) {
    checkKey(key)
    checkCost(cost)
    for (const limit of limits) {
      const same = items.find((item) => item.limit.id === limit.id && item.key === key)
      if (same === undefined) items.push(createItem(limit, key, cost))
      else same.cost += cost
    }
  }
  return createBatch(items)
}

/** A number for a charge that must be recognised later: 53 random bits, never 0. */
export function drawHolder(random: Random): number {
  return (random.nextUint32() & 0x1f_ff_ff) * 0x1_00_00_00_00 + random.nextUint32() || 1
}

/** The receipt of a batch that was charged. */
export function receiptOf(batch: Batch): Receipt {
  return new BatchReceipt(batch)
}

/** What was charged under one limit. A class, like the receipt, for the reason given in decision.ts. */
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

/** The outcome of a settlement: its slot was `gone`, it came `late`, or it is settled. */
export function outcomeOf(gone: boolean, late: boolean): Settlement['outcome'] {
  if (gone) return 'gone'
  return late ? 'late' : 'settled'
}
