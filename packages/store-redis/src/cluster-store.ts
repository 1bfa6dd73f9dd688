import type { Random, Settlement } from '@sluice/core'
import type { PendingBatch } from '@sluice/core/internal'
import { CallbackStore, completeAfter, createBatch, drawHolder, MICROS_PER_SECOND } from '@sluice/core/internal'
import type { Batch, BlockTerm, Limit, Receipt } from '@sluice/core/store'
import { receiptOf, storeUnavailable } from '@sluice/core/store'
import type { LuaStore } from './lua-store.ts'

/**
 * How long a part of a decision stays reserved while the other slots decide. Longer than any deadline of a check, so
 * that the reservation still exists when it is confirmed; short enough that a process that dies in between holds
 * nothing for long.
 */
const RESERVED_MICROS = 10 * MICROS_PER_SECOND

/** The part of a batch in one slot. It shares the items of the batch, so decisions need no copying. */
interface Part {
  readonly batch: Batch
  /** Whether it is charged as a reservation that must be confirmed. */
  readonly reserved: boolean
}

/**
 * Decides over several slots of a cluster, where no script can see all keys. Every slot reserves its part. If all allow
 * it, every part is confirmed; otherwise all are refunded. Reserved units count, so other checks may be denied for a
 * moment because of a batch that is denied in the end. Never are more admitted than the limits allow, even if a process
 * dies half way: its reservations expire. A batch about a single key is one call.
 */
export class ClusterStore extends CallbackStore {
  readonly #store: LuaStore
  readonly #random: Random

  constructor(store: LuaStore, random: Random) {
    super()
    this.#store = store
    this.#random = random
  }

  submit(pending: PendingBatch): void {
    const { items } = pending.batch
    const { key } = items[0]!
    if (items.every((item) => item.key === key)) this.#store.submit(pending)
    else completeAfter(pending, (batch) => this.#decideParts(batch))
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
      this.#refund(charged, { confirmed: false })
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

  /** Makes all parts final, at the minimum that any of them granted. */
  async #confirm(batch: Batch, parts: readonly Part[]): Promise<void> {
    const granted = batch.partial ? Math.min(...batch.items.map((item) => item.cost)) : Number.POSITIVE_INFINITY
    const results = await Promise.allSettled(parts.map((part) => this.#confirmPart(part, granted)))
    for (const item of batch.items) item.cost = Math.min(item.cost, granted)
    const confirmed = parts.filter((_, index) => isConfirmed(results[index]!))
    if (confirmed.length === parts.length) return
    this.#refund(confirmed, { confirmed: true })
    const failed = results.find((result) => result.status === 'rejected')
    if (failed !== undefined) throw failed.reason
    throw storeUnavailable({
      because: 'unreachable',
      problem: 'a decision over several slots took so long that a part of it expired; it was undone',
      action: 'Check why the cluster is slow to reply.',
    })
  }

  async #confirmPart(part: Part, granted: number): Promise<boolean> {
    const receipt = receiptOf(part.batch)
    const excess = part.batch.items.some((item) => item.cost > granted)
    if (!excess) return part.reserved ? await this.#store.confirm(receipt) : true
    const actuals = part.batch.items.map((item) => Math.min(item.cost, granted))
    for (const item of part.batch.items) item.verdict.remaining += Math.max(0, item.cost - granted)
    // A reservation that the caller requested stays one: the excess is refunded from it.
    const { outcome } = await this.#store.settle(part.reserved ? receipt : { ...receipt, held: false }, actuals)
    return outcome === 'settled'
  }

  /** Refunds parts without waiting: later calls on the same connection come after it. If it fails, the parts expire. */
  #refund(parts: readonly Part[], { confirmed }: { readonly confirmed: boolean }): void {
    for (const { batch, reserved } of parts) {
      if (!batch.charge) continue
      const receipt = receiptOf(batch)
      // A confirmed part is no longer a reservation, but a charge.
      const held = receipt.held && !(confirmed && reserved)
      const settled = this.#store.settle(
        { ...receipt, held },
        receipt.charges.map(() => 0),
      )
      settled.catch(() => undefined)
    }
  }
}

function isConfirmed(result: PromiseSettledResult<boolean>): boolean {
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
