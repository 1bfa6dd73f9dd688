import type { Store } from '@sluice/core'
import { compileRule, createBatch, createItem, MICROS_PER_MS } from '@sluice/core/internal'
import type { Limit } from '@sluice/core/store'
import { outcomeUnknown, storeUnavailable } from '@sluice/core/store'
import { BoundedMap } from './bounded-map.ts'
import type { Ticket } from './ticket.ts'

/** What marks are made with. */
export interface SettlementGuardParts {
  readonly store: Store
  /** How long after its end a reservation can still be settled, in milliseconds. */
  readonly lateMs: number
}

const MS_PER_MINUTE = 60_000

/** Most marks of its own that a thread knows it could not take back. */
const MOST_LEFT = 10_000

/**
 * Notes in the store itself which reservations were settled, so that one is settled once by all processes that share it: a
 * settlement that comes again, anywhere, finds the mark. It is made before anything is charged. When the settlement then fails,
 * or nobody knows whether the mark was made, it is taken back, so that the settlement can be tried again anywhere: what was used
 * is then counted once, or twice when the first try had been done unnoticed, and never left out. When the mark cannot be taken back
 * either, this process remembers that it is its own; another would take the reservation for settled until the mark is gone.
 */
export class SettlementGuard {
  readonly #store: Store
  readonly #lateMs: number
  readonly #limits = new Map<number, Limit>()
  /** Holders whose mark is perhaps there, and this thread's own. */
  readonly #left = new BoundedMap<number, true>(MOST_LEFT)

  constructor({ store, lateMs }: SettlementGuardParts) {
    this.#store = store
    this.#lateMs = lateMs
  }

  /**
   * Marks a reservation as settled; false when it was before. Rejects with `SLUICE_STORE_UNAVAILABLE` when the store did not do
   * it, and with `SLUICE_OUTCOME_UNKNOWN` when it may have.
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

  /** Takes the mark back that this thread made. Never rejects: what the store does not do now is remembered here. */
  async takeBack(ticket: Ticket): Promise<void> {
    const { holder } = ticket.claim.receipt
    this.#left.set(holder, true)
    try {
      await this.#store.reset([this.#limitFor(ticket)], keyOf(ticket))
      this.#left.delete(holder)
    } catch {
      // The settlement has failed already, and that is what is told.
    }
  }

  /** Says that the settlement was done: the mark stands. */
  keep(ticket: Ticket): void {
    this.#left.delete(ticket.claim.receipt.holder)
  }

  /**
   * One mark within the time in which the reservation can be settled. All that settle it must name the same limit, so that it
   * follows from the ticket alone; times are rounded up to powers of two to have few of them.
   */
  #limitFor({ endsAtMs, claim }: Ticket): Limit {
    const madeAtMs = Math.min(...claim.receipt.charges.map(({ at }) => at)) / MICROS_PER_MS
    const minutes = 2 ** Math.ceil(Math.log2(Math.max(1, (endsAtMs - madeAtMs) / MS_PER_MINUTE)))
    const known = this.#limits.get(minutes)
    if (known !== undefined) return known
    // No window with fixed edges: one would forget a mark that was made just before its end.
    const rule = { limit: 1, window: this.#lateMs + (minutes + 1) * MS_PER_MINUTE, failureMode: 'closed' } as const
    const [limit] = compileRule('settlements', rule)
    this.#limits.set(minutes, limit!)
    return limit!
  }
}

function keyOf({ claim }: Ticket): string {
  return `settled:${claim.receipt.holder}`
}
