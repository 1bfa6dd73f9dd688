import type { Clock, Settlement, Store } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type { PolicyEngine, ReservationClaim } from '@sluice/core/policy'
import { thenMaybe } from '../operations/handler.ts'
import type { Gathered, ThreadGroup } from '../threads/message-bus.ts'
import { BoundedMap } from './bounded-map.ts'
import { ReservationIds } from './reservation-id.ts'
import { SettlementGuard } from './settlement-guard.ts'
import type { Ticket } from './ticket.ts'
import { partOf, withoutCharges } from './ticket.ts'

/** What {@link Reservations} work with. */
export interface ReservationsParts {
  readonly engine: PolicyEngine
  readonly store: Store
  readonly clock: Clock
  readonly threads: ThreadGroup<ReservationMessages>
  /** Signs the ids; the same for all that share the store. */
  readonly secret: Uint8Array
}

/** How long after its end a reservation can still be settled, in milliseconds: what was used is charged anew then. */
const LATE_SETTLEMENT_MS = 3_600_000

const MS_PER_MINUTE = 60_000

/** Most reservations that this thread remembers something of beyond what their ids say. */
const MOST_REMEMBERED = 10_000

const NOTHING_OWED: Settlement = Object.freeze({ outcome: 'settled', corrected: 0 })
const SLOT_GONE: Settlement = Object.freeze({ outcome: 'gone', corrected: 0 })

/** What a reservations makes of an id: a ticket, or why it is of no use. */
export type Recognised =
  | { readonly ok: true; readonly ticket: Ticket }
  | { readonly ok: false; readonly received: string; readonly expected: string }

/** Messages about reservations that another thread created. Each replies null in threads that did not create it. */
export interface ReservationMessages {
  'reservations.settle': (ticket: Ticket, tokens: number) => Settlement | null
  'reservations.renew': (ticket: Ticket) => Settlement | null
}

/**
 * Hands out reservations by id and takes them back, also those of other threads and nodes: ids say nearly all there is to know.
 * What only the thread knows that handed one out, it is asked for: a store in memory notes in each thread what is to be given
 * back by itself, and what was decided while the store could not be asked was charged in one thread. Each thread remembers
 * what became of the last {@link MOST_REMEMBERED} it ended, so that ending one again gets the same answer. Another process on
 * the same store answers that it is settled and that nothing was corrected, which is so.
 */
export class Reservations {
  readonly #engine: PolicyEngine
  readonly #clock: Clock
  readonly #threads: ThreadGroup<ReservationMessages>
  readonly #ids: ReservationIds
  /** Whether threads note apart from each other what is to be given back by itself. */
  readonly #notesApart: boolean
  /** Where processes share the store: what any of them settled. */
  readonly #marks: SettlementGuard | undefined
  readonly #local = new BoundedMap<number, ReservationClaim>(MOST_REMEMBERED)
  readonly #ended = new BoundedMap<number, Settlement | Promise<Settlement>>(MOST_REMEMBERED)

  constructor({ engine, store, clock, threads, secret }: ReservationsParts) {
    this.#engine = engine
    this.#clock = clock
    this.#threads = threads
    this.#ids = new ReservationIds(secret)
    this.#notesApart = store.mode === 'sync'
    this.#marks = store.mode === 'async' ? new SettlementGuard({ store, lateMs: LATE_SETTLEMENT_MS }) : undefined
    threads.handle('reservations.settle', (ticket, tokens) =>
      this.#isOwn(ticket) ? this.#settleHere(ticket, tokens) : null,
    )
    threads.handle('reservations.renew', (ticket) => (this.#isOwn(ticket) ? this.#renewHere(ticket) : null))
  }

  /** The thread whose reservations this is. */
  get thread(): number {
    return this.#threads.index
  }

  /** The id for a ticket; undefined when it does not fit into one. */
  issue(ticket: Ticket): string | undefined {
    if (ticket.failure === undefined) return this.#ids.write(ticket)
    const id = this.#ids.write({ ...ticket, claim: withoutCharges(ticket.claim) })
    if (id !== undefined && ticket.failure === 'local') this.#local.set(ticket.claim.receipt.holder, ticket.claim)
    return id
  }

  /** The ticket of an id. */
  recognise(id: string): Recognised {
    const ticket = this.#ids.read(id)
    if (ticket === undefined) {
      return {
        ok: false,
        received: `a text of ${id.length} characters that is no reservation of this service`,
        expected: 'the "reservationId" of an answer, whole and unchanged, from a node with the same secret',
      }
    }
    const isOver = ticket.leaseMs === 0 && this.#nowMs() >= ticket.endsAtMs + LATE_SETTLEMENT_MS
    if (!isOver) return { ok: true, ticket }
    return {
      ok: false,
      received: `a reservation that ended at ${new Date(Math.floor(ticket.endsAtMs)).toISOString()} and was given back`,
      expected: `one that ended less than ${LATE_SETTLEMENT_MS / MS_PER_MINUTE} minutes ago; check what was used instead`,
    }
  }

  /** Makes the charges stand at `tokens`, and gives slots back. Once: ended again, it answers what it answered first. */
  settle(ticket: Ticket, tokens: number): Settlement | Promise<Settlement> {
    if (this.#knowsAll(ticket)) return this.#settleHere(ticket, tokens)
    return this.#threads
      .gather('reservations.settle', ticket, tokens)
      .then((gathered) => replyOfOwner(gathered) ?? this.#settleHere(ticket, tokens))
  }

  /** Gives units back whole, and slots. What was charged besides a slot stands: what the slot was for took place. */
  release(ticket: Ticket): Settlement | Promise<Settlement> {
    return this.settle(ticket, ticket.kind === 'slot' ? ticket.claim.cost : 0)
  }

  /** Holds slots for another lease. `gone` when they had run out. */
  renew(ticket: Ticket): Settlement | Promise<Settlement> {
    // Nothing holds it, and it was handed out all the same: it goes on.
    if (ticket.failure === 'open' || ticket.leaseMs === 0) return NOTHING_OWED
    if (this.#knowsAll(ticket)) return this.#renewHere(ticket)
    return this.#threads.gather('reservations.renew', ticket).then((gathered) => replyOfOwner(gathered) ?? SLOT_GONE)
  }

  /** Whether this thread can end the ticket as well as any other. */
  #knowsAll(ticket: Ticket): boolean {
    if (this.#threads.count === 1 || this.#isOwn(ticket)) return true
    return ticket.failure !== 'local' && !(this.#notesApart && ticket.claim.receipt.held)
  }

  #isOwn({ failure, thread, claim }: Ticket): boolean {
    // Another node may have a thread of this number, and its own charges; the number of a charge is its alone.
    return failure === 'local' ? this.#local.get(claim.receipt.holder) !== undefined : thread === this.#threads.index
  }

  #renewHere(ticket: Ticket): Settlement | Promise<Settlement> {
    const slots = partOf(this.#claimOf(ticket), 'slots')
    return slots.receipt.charges.length === 0 ? SLOT_GONE : this.#engine.renew(slots)
  }

  #settleHere(ticket: Ticket, tokens: number): Settlement | Promise<Settlement> {
    const { holder } = ticket.claim.receipt
    const before = this.#ended.get(holder)
    if (before !== undefined) return before
    const claim = this.#claimOf(ticket)
    if (claim.receipt.charges.length === 0) return NOTHING_OWED
    const settlement = this.#settleOnce({ ...ticket, claim }, tokens)
    this.#ended.set(holder, settlement)
    if (!(settlement instanceof Promise)) return settlement
    return settlement.catch((error: unknown) => {
      // It may be tried again.
      this.#ended.delete(holder)
      throw error
    })
  }

  /**
   * Units that are held and were given back are charged anew when they are settled, so that it must be known whether they were
   * settled before. Slots are known to the store.
   */
  #settleOnce(ticket: Ticket, tokens: number): Settlement | Promise<Settlement> {
    const { failure, leaseMs, claim } = ticket
    const needsMark = failure === undefined && leaseMs === 0 && claim.receipt.held
    if (this.#marks === undefined || !needsMark) return this.#settleClaim(claim, tokens)
    return this.#settleMarked(ticket, tokens, this.#marks)
  }

  async #settleMarked(ticket: Ticket, tokens: number, marks: SettlementGuard): Promise<Settlement> {
    if (!(await marks.take(ticket))) return NOTHING_OWED
    try {
      const settlement = await this.#settleClaim(ticket.claim, tokens)
      marks.keep(ticket)
      return settlement
    } catch (error) {
      await marks.takeBack(ticket)
      throw error
    }
  }

  #claimOf({ failure, claim }: Ticket): ReservationClaim {
    return failure === 'local' ? (this.#local.get(claim.receipt.holder) ?? claim) : claim
  }

  /**
   * Slots go first, and the rest is corrected only by whoever gave them back: the store hands that out once, so that an id that
   * comes twice does not give units back twice. Units alone have that from being held.
   */
  #settleClaim(claim: ReservationClaim, tokens: number): Settlement | Promise<Settlement> {
    const slots = partOf(claim, 'slots')
    if (slots.receipt.charges.length === 0) return this.#engine.settle(claim, tokens)
    const units = partOf(claim, 'units')
    return thenMaybe<Settlement, Settlement>(this.#engine.settle(slots, 0), (freed) => {
      if (freed.outcome === 'gone' || units.receipt.charges.length === 0 || tokens === claim.cost) return freed
      return thenMaybe<Settlement, Settlement>(this.#engine.settle(units, tokens), ({ corrected }) => {
        return { outcome: 'settled', corrected: freed.corrected + corrected }
      })
    })
  }

  #nowMs(): number {
    return this.#clock.nowMicros() / MICROS_PER_MS
  }
}

/** The reply of the thread that created the reservation; undefined if none did. */
function replyOfOwner({ replies }: Gathered<Settlement | null>): Settlement | undefined {
  return replies.find((reply) => reply !== null) ?? undefined
}
