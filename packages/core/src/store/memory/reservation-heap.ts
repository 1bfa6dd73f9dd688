import { SluiceError } from '../../errors.ts'
import { ExpiryHeap, type HeapEntry } from '../../expiry-heap.ts'
import type { Receipt } from '../store.ts'

/** A reservation, and when it gives itself back (`endsAt`, microseconds since 1970). */
interface Hold extends HeapEntry {
  readonly receipt: Receipt
}

/** Maximum number of open reservations. */
const MAX_OPEN = 1_000_000

/**
 * Reservations that give themselves back when their time ends. There is no timer: each use of the store first asks for
 * those that have expired.
 */
export class ReservationHeap {
  readonly #heap = new ExpiryHeap<Hold>()
  readonly #open = new Map<number, Hold>()

  /** Throws `SLUICE_STORE_FULL` at a million open reservations. Call it before charging. */
  checkRoom(): void {
    if (this.#open.size < MAX_OPEN) return
    throw new SluiceError('SLUICE_STORE_FULL', {
      problem: 'too many reservations are open',
      received: this.#open.size,
      expected: `fewer than ${MAX_OPEN}`,
      action: 'Settle or release reservations, or give them a shorter time to live.',
    })
  }

  /** Adds a reservation; one of the same holder is replaced. */
  add(receipt: Receipt, endsAt: number): void {
    this.checkRoom()
    const hold = { receipt, endsAt, position: 0 }
    this.#open.set(receipt.holder, hold)
    this.#heap.add(hold)
  }

  /** Removes a reservation because it is settled. False if it has expired, or was never added. */
  remove(holder: number): boolean {
    const hold = this.#open.get(holder)
    if (hold === undefined) return false
    this.#open.delete(holder)
    this.#heap.remove(hold)
    return true
  }

  /** Removes and returns one reservation that has expired at `now`, soonest first. */
  nextExpired(now: number): Hold | undefined {
    for (let { first } = this.#heap; first !== undefined && first.endsAt <= now; { first } = this.#heap) {
      this.#heap.remove(first)
      // A later reservation of the same holder has replaced this one.
      if (this.#open.get(first.receipt.holder) !== first) continue
      this.#open.delete(first.receipt.holder)
      return first
    }
    return undefined
  }

  /** Open reservations. */
  get size(): number {
    return this.#open.size
  }
}
