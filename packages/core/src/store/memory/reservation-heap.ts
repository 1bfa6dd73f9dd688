import { SluiceError } from '../../errors.ts'
import type { Receipt } from '../store.ts'

/** A reservation, and when it gives itself back (microseconds since 1970). */
export interface Hold {
  readonly receipt: Receipt
  readonly expiresAt: number
}

/** Maximum number of open reservations. */
const MAX_OPEN = 1_000_000

/** Settled reservations that may lie in the heap besides as many as are open. */
const SPARE_PLACES = 64

/**
 * Reservations that are to be given back by themselves. Nothing ticks: whoever uses the store first asks for those that
 * have run out. A binary heap by expiry. Settled ones stay in it until they surface, or until they are more than the open
 * ones: then they are cleared out.
 */
export class ReservationHeap {
  #heap: Hold[] = []
  readonly #open = new Map<number, Hold>()

  /** Throws `SLUICE_STORE_FULL` at a million open reservations. Ask before charging what is to be noted. */
  checkRoom(): void {
    if (this.#open.size < MAX_OPEN) return
    throw new SluiceError('SLUICE_STORE_FULL', {
      problem: 'too many reservations are open',
      received: this.#open.size,
      expected: `fewer than ${MAX_OPEN}`,
      action: 'Settle or release reservations, or give them a shorter time to live.',
    })
  }

  /** Notes a reservation. */
  add(receipt: Receipt, expiresAt: number): void {
    this.checkRoom()
    const hold = { receipt, expiresAt }
    this.#open.set(receipt.holder, hold)
    let place = this.#heap.length
    this.#heap.push(hold)
    while (place > 0) {
      const parent = (place - 1) >> 1
      if (this.#heap[parent]!.expiresAt <= expiresAt) break
      this.#heap[place] = this.#heap[parent]!
      place = parent
    }
    this.#heap[place] = hold
  }

  /** Strikes a reservation off because it is settled. False when it has run out, or was never noted. */
  strike(holder: number): boolean {
    if (!this.#open.delete(holder)) return false
    if (this.#heap.length > 2 * this.#open.size + SPARE_PLACES) this.#clearOut()
    return true
  }

  /** Strikes off and returns one reservation that has run out at `now`, soonest first. */
  nextExpired(now: number): Hold | undefined {
    while (this.#heap.length > 0 && this.#heap[0]!.expiresAt <= now) {
      const hold = this.#popFirst()
      if (this.#open.get(hold.receipt.holder) !== hold) continue
      this.#open.delete(hold.receipt.holder)
      return hold
    }
    return undefined
  }

  /** Open reservations. */
  get size(): number {
    return this.#open.size
  }

  /** Places taken, by settled reservations too: at most twice the open ones, and a few. */
  get places(): number {
    return this.#heap.length
  }

  /** Keeps the open ones only. What is sorted is a heap. */
  #clearOut(): void {
    this.#heap = [...this.#open.values()].sort((one, other) => one.expiresAt - other.expiresAt)
  }

  #popFirst(): Hold {
    const heap = this.#heap
    const first = heap[0]!
    const last = heap.pop()!
    if (heap.length === 0) return first
    let place = 0
    for (;;) {
      let child = 2 * place + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && heap[child + 1]!.expiresAt < heap[child]!.expiresAt) child++
      if (heap[child]!.expiresAt >= last.expiresAt) break
      heap[place] = heap[child]!
      place = child
    }
    heap[place] = last
    return first
  }
}
