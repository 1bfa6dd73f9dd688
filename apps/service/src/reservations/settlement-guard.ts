import type { Store } from '@sluice/core'
import { compileRule, createBatch, createItem, MICROS_PER_MS } from '@sluice/core/internal'
import type { Limit } from '@sluice/core/store'
import { outcomeUnknown, storeUnavailable } from '@sluice/core/store'
import { BoundedMap } from './bounded-map.ts'
import type { Ticket } from './reservation-ticket.ts'

/** Options of {@link SettlementGuard}. */
export interface SettlementGuardParts {
  readonly store: Store
  /** How long after its expiry a reservation can be settled, in milliseconds. */
  readonly lateMs: number
}

const MS_PER_MINUTE = 60_000

/** Maximum number of own marks that could not be removed. */
const MOST_LEFT = 10_000

/**
 * Marks settled reservations in the store, so that all processes that share it settle each one once. The mark is set
 * before anything is charged. If the settlement fails, or it is unknown whether the mark was set, the mark is removed,
 * so that any process can retry: usage is then charged once, or twice if the first attempt had succeeded unnoticed, but
 * never omitted. If the mark cannot be removed, this process remembers that it is its own; for others the reservation
 * is settled until the mark expires.
 */
export class SettlementGuard {
  readonly #store: Store
  readonly #lateMs: number
  readonly #limits = new Map<number, Limit>()
  /** Holders whose mark may exist and belongs to this thread. */
  readonly #left = new BoundedMap<number, true>(MOST_LEFT)

  constructor({ store, lateMs }: SettlementGuardParts) {
    this.#store = store
    this.#lateMs = lateMs
  }

  /**
   * Marks a reservation as settled; false if it was settled before. Rejects with `SLUICE_STORE_UNAVAILABLE` if the
   * store did not do it, and with `SLUICE_OUTCOME_UNKNOWN` if it may have.
   */
  async take(ticket: Ticket): Promise<boolean> {
    const { holder } = ticket.claim.receipt
    if (this.#left.get(holder) !== undefined) return true
    const batch = createBatch([createItem(this.#limitFor(ticket), keyOf(ticket), 1)])
    await this.#store.decide(batch)
    const { failure } = batch
    if (failure === undefined) return batch.allowed
    const why = { because: failure.cause, problem: 'a settlement could not be noted' } as const
    if (failure.charged === 'no') throw storeUnavailable(why)
    await this.takeBack(ticket)
    throw outcomeUnknown(why)
  }

  /** Removes the mark of this thread. Never rejects: a mark that cannot be removed is remembered. */
  async takeBack(ticket: Ticket): Promise<void> {
    const { holder } = ticket.claim.receipt
    this.#left.set(holder, true)
    try {
      await this.#store.reset([this.#limitFor(ticket)], keyOf(ticket))
      this.#left.delete(holder)
    } catch {
      // The caller gets the error of the settlement.
    }
  }

  /** Keeps the mark: the settlement succeeded. */
  keep(ticket: Ticket): void {
    this.#left.delete(ticket.claim.receipt.holder)
  }

  /**
   * Limit of one mark within the time in which the reservation can be settled. It depends on the ticket alone, so that
   * every process uses the same limit; times are rounded up to powers of two, so that there are few limits.
   */
  #limitFor({ endsAtMs, claim }: Ticket): Limit {
    const madeAtMs = Math.min(...claim.receipt.charges.map(({ at }) => at)) / MICROS_PER_MS
    const minutes = 2 ** Math.ceil(Math.log2(Math.max(1, (endsAtMs - madeAtMs) / MS_PER_MINUTE)))
    const known = this.#limits.get(minutes)
    if (known !== undefined) return known
    // Not a fixed window: it would forget a mark set just before its end.
    const rule = { limit: 1, window: this.#lateMs + (minutes + 1) * MS_PER_MINUTE, failureMode: 'closed' } as const
    const [limit] = compileRule('settlements', rule)
    this.#limits.set(minutes, limit!)
    return limit!
  }
}

function keyOf({ claim }: Ticket): string {
  return `settled:${claim.receipt.holder}`
}
