import type { Random, Settlement } from '@sluice/core'
import type {
  AnswerListener,
  AskedQuestion,
  Batch,
  BlockTerm,
  Limit,
  ListenedStore,
  Receipt,
} from '@sluice/core/internal'
import {
  askByPromise,
  createBatch,
  decideByListening,
  drawHolder,
  MICROS_PER_SECOND,
  receiptOf,
  storeUnavailable,
} from '@sluice/core/internal'
import type { StrictStore } from './strict-store.ts'

/**
 * How long a part of a decision stays reserved while the other slots are asked. Long against any deadline of a check, so that
 * what is confirmed is still there; short enough that a process that dies in between keeps nothing for long.
 */
const RESERVED_MICROS = 10 * MICROS_PER_SECOND

/** The part of a batch that lies in one slot. Its items are those of the batch, so answers need no copying. */
interface Part {
  readonly batch: Batch
  /** Whether it was charged under a reservation that must be confirmed. */
  readonly reserved: boolean
}

/**
 * Decides over several slots of a cluster, where no script can see all keys: every slot reserves its part, and when all have
 * allowed it every part is confirmed, otherwise all are given back. What is reserved counts, so others may be refused for an
 * instant because of a call that is refused in the end; never are more admitted than the limits allow, also when a process
 * dies half way: its reservations give themselves back. Questions about one key are one call, as everywhere.
 */
export class ClusterStore implements ListenedStore {
  readonly mode = 'async'
  readonly #store: StrictStore
  readonly #random: Random

  constructor(store: StrictStore, random: Random) {
    this.#store = store
    this.#random = random
  }

  decide(batch: Batch): Promise<void> {
    return decideByListening(this, batch)
  }

  ask(batch: Batch, listener: AnswerListener): AskedQuestion {
    const { key } = batch.items[0]!
    const isOne = batch.items.every((item) => item.key === key)
    return isOne ? this.#store.ask(batch, listener) : askByPromise((sheet) => this.#decideParts(sheet), batch, listener)
  }

  async settle(receipt: Receipt, actuals: readonly number[]): Promise<Settlement> {
    const settlements = await Promise.all(
      splitReceipt(receipt, actuals).map((part) => this.#store.settle(part.receipt, part.actuals)),
    )
    const outcomes = new Set(settlements.map(({ outcome }) => outcome))
    const worst = (['gone', 'late'] as const).find((outcome) => outcomes.has(outcome)) ?? 'settled'
    return { outcome: worst, corrected: settlements.reduce((sum, { corrected }) => sum + corrected, 0) }
  }

  block(rule: string, key: string, term: BlockTerm): Promise<void> {
    return this.#store.block(rule, key, term)
  }

  reset(limits: readonly Limit[], key: string): Promise<void> {
    return this.#store.reset(limits, key)
  }

  resetAll(limits: readonly Limit[]): Promise<void> {
    return this.#store.resetAll(limits)
  }

  close(): Promise<void> {
    return this.#store.close()
  }

  async #decideParts(batch: Batch): Promise<void> {
    const parts = this.#partsOf(batch)
    const results = await Promise.allSettled(parts.map((part) => this.#store.decide(part.batch)))
    const failed = results.find((result) => result.status === 'rejected')
    const allowed = failed === undefined && parts.every((part) => part.batch.allowed)
    if (!allowed) {
      const charged = parts.filter((part, index) => results[index]!.status === 'fulfilled' && part.batch.allowed)
      this.#giveBack(charged, { confirmed: false })
    }
    if (failed !== undefined) throw failed.reason
    if (allowed && batch.charge) await this.#confirm(batch, parts)
    batch.allowed = allowed
    batch.now = Math.max(...parts.map((part) => part.batch.now))
    for (const part of parts) for (const item of part.batch.items) item.at = part.batch.now
  }

  #partsOf(batch: Batch): Part[] {
    const isReserved = batch.charge && batch.holdMicros === 0 && batch.leaseMicros === 0
    const holder = batch.holder || drawHolder(this.#random)
    return [...Map.groupBy(batch.items, (item) => item.key).values()].map((items) => {
      const part = createBatch(items)
      part.charge = batch.charge
      part.partial = batch.partial
      part.entitled = batch.entitled
      part.holder = holder
      part.holdMicros = isReserved ? RESERVED_MICROS : batch.holdMicros
      part.leaseMicros = batch.leaseMicros
      return { batch: part, reserved: isReserved }
    })
  }

  /** Makes all parts stand, at the least that any of them granted. */
  async #confirm(batch: Batch, parts: readonly Part[]): Promise<void> {
    const granted = batch.partial ? Math.min(...batch.items.map((item) => item.cost)) : Number.POSITIVE_INFINITY
    const results = await Promise.allSettled(parts.map((part) => this.#confirmPart(part, granted)))
    for (const item of batch.items) item.cost = Math.min(item.cost, granted)
    const standing = parts.filter((_, index) => stands(results[index]!))
    if (standing.length === parts.length) return
    this.#giveBack(standing, { confirmed: true })
    const failed = results.find((result) => result.status === 'rejected')
    if (failed !== undefined) throw failed.reason
    throw storeUnavailable({
      because: 'unreachable',
      problem: 'a decision over several slots took so long that a part of it was given back; it was undone',
      action: 'See why the cluster is slow to answer.',
    })
  }

  async #confirmPart(part: Part, granted: number): Promise<boolean> {
    const receipt = receiptOf(part.batch)
    const excess = part.batch.items.some((item) => item.cost > granted)
    if (!excess) return part.reserved ? await this.#store.confirm(receipt) : true
    const actuals = part.batch.items.map((item) => Math.min(item.cost, granted))
    for (const item of part.batch.items) item.verdict.remaining += Math.max(0, item.cost - granted)
    // A reservation of the caller's own stays one: what is too much is refunded from it.
    const { outcome } = await this.#store.settle(part.reserved ? receipt : { ...receipt, held: false }, actuals)
    return outcome === 'settled'
  }

  /** Gives parts back without waiting: a call on the same connection comes after it. What is lost gives itself back. */
  #giveBack(parts: readonly Part[], { confirmed }: { readonly confirmed: boolean }): void {
    for (const { batch, reserved } of parts) {
      if (!batch.charge) continue
      const receipt = receiptOf(batch)
      // What was confirmed is a reservation no longer, but a charge to be refunded.
      const held = receipt.held && !(confirmed && reserved)
      const settled = this.#store.settle(
        { ...receipt, held },
        receipt.charges.map(() => 0),
      )
      settled.catch(() => undefined)
    }
  }
}

/** Whether a part was confirmed. */
function stands(result: PromiseSettledResult<boolean>): boolean {
  return result.status === 'fulfilled' && result.value
}

function splitReceipt(
  receipt: Receipt,
  actuals: readonly number[],
): { readonly receipt: Receipt; readonly actuals: readonly number[] }[] {
  const charges = receipt.charges.map((charge, index) => ({ charge, actual: actuals[index]! }))
  return [...Map.groupBy(charges, ({ charge }) => charge.key).values()].map((own) => ({
    receipt: { ...receipt, charges: own.map(({ charge }) => charge) },
    actuals: own.map(({ actual }) => actual),
  }))
}
