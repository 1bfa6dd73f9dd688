import type { Clock, Settlement, Store } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type { PolicyEngine, ReservationClaim } from '@sluice/core/policy'
import { thenMaybe } from '../operations/handler.ts'
import type { Gathered, ThreadGroup } from '../thread-messages/message-bus.ts'
import { BoundedMap } from './bounded-map.ts'
import { ReservationIds } from './reservation-id.ts'
import type { Ticket } from './reservation-ticket.ts'
import { partOf, withoutCharges } from './reservation-ticket.ts'
import { SettlementGuard } from './settlement-guard.ts'

/** What {@link Reservations} work with. */
export interface ReservationsParts {
  readonly engine: PolicyEngine
  readonly store: Store
  readonly clock: Clock
  readonly threads: ThreadGroup<ReservationMessages>
  /** Signs the ids; the same on all nodes that share the store. */
  readonly secret: Uint8Array
}

/** How long after its expiry a reservation can be settled, in milliseconds. Usage is charged again then. */
const LATE_SETTLEMENT_MS = 3_600_000

const MS_PER_MINUTE = 60_000

/** Maximum number of reservations for which this thread keeps state beyond their ids. */
const MAX_REMEMBERED = 10_000

const NOTHING_OWED: Settlement = Object.freeze({ outcome: 'settled', corrected: 0 })
const SLOT_GONE: Settlement = Object.freeze({ outcome: 'gone', corrected: 0 })

/** Result of parsing an id: a ticket, or why it is invalid. */
export type Recognised =
  | { readonly ok: true; readonly ticket: Ticket }
  | { readonly ok: false; readonly received: string; readonly expected: string }

/** Messages about reservations that another thread created. Each replies null in threads that did not create it. */
export interface ReservationMessages {
  'reservations.settle': (ticket: Ticket, tokens: number) => Settlement | null
  'reservations.renew': (ticket: Ticket) => Settlement | null
}

/**
 * Issues reservations and ends them by id, including those of other threads and nodes: ids contain nearly everything.
 * Some state is only in the thread that issued a reservation, which then settles it: a memory store tracks expiry per
 * thread, and decisions without the store are charged in one thread. Each thread keeps the results of the last {@link
 * MAX_REMEMBERED} settlements, so that a repeated settlement gets the same answer. Another process on the same store
 * answers that it is settled with nothing corrected.
 */
export class Reservations {
  readonly #engine: PolicyEngine
  readonly #clock: Clock
  readonly #threads: ThreadGroup<ReservationMessages>
  readonly #ids: ReservationIds
  /** Whether each thread tracks the expiry of its own reservations. */
  readonly #notesApart: boolean
  /** For a store that processes share: which reservations are settled. */
  readonly #marks: SettlementGuard | undefined
  readonly #local = new BoundedMap<number, ReservationClaim>(MAX_REMEMBERED)
  readonly #ended = new BoundedMap<number, Settlement | Promise<Settlement>>(MAX_REMEMBERED)

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

  /** Number of this thread. */
  get thread(): number {
    return this.#threads.index
  }

  /** The id of a ticket; undefined if it would be too long. */
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
        received: `a string of ${id.length} characters that is not a reservation id of this service`,
        expected: 'an unchanged "reservationId" of a response, from a node with the same secret',
      }
    }
    const isOver = ticket.leaseMs === 0 && this.#nowMs() >= ticket.endsAtMs + LATE_SETTLEMENT_MS
    if (!isOver) return { ok: true, ticket }
    return {
      ok: false,
      received: `a reservation that expired at ${new Date(Math.floor(ticket.endsAtMs)).toISOString()}`,
      expected:
        `one that expired less than ${LATE_SETTLEMENT_MS / MS_PER_MINUTE} minutes ago; charge the usage with a ` +
        'check instead',
    }
  }

  /** Corrects the charge to `tokens` and frees slots. A repeated call returns the first result. */
  settle(ticket: Ticket, tokens: number): Settlement | Promise<Settlement> {
    if (this.#knowsAll(ticket)) return this.#settleHere(ticket, tokens)
    return this.#threads
      .gather('reservations.settle', ticket, tokens)
      .then((gathered) => replyOfOwner(gathered) ?? this.#settleHere(ticket, tokens))
  }

  /** Refunds units and frees slots. Charges made together with a slot stay: the call took place. */
  release(ticket: Ticket): Settlement | Promise<Settlement> {
    return this.settle(ticket, ticket.kind === 'slot' ? ticket.claim.cost : 0)
  }

  /** Extends slots by another lease. `gone` if they have expired. */
  renew(ticket: Ticket): Settlement | Promise<Settlement> {
    // No store holds it, so there is nothing to renew.
    if (ticket.failure === 'open' || ticket.leaseMs === 0) return NOTHING_OWED
    if (this.#knowsAll(ticket)) return this.#renewHere(ticket)
    return this.#threads.gather('reservations.renew', ticket).then((gathered) => replyOfOwner(gathered) ?? SLOT_GONE)
  }

  /** Whether this thread has everything needed to end the ticket. */
  #knowsAll(ticket: Ticket): boolean {
    if (this.#threads.count === 1 || this.#isOwn(ticket)) return true
    return ticket.failure !== 'local' && !(this.#notesApart && ticket.claim.receipt.held)
  }

  #isOwn({ failure, thread, claim }: Ticket): boolean {
    // Another node may have a thread with this number; the holder number is unique.
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
      // It can be retried.
      this.#ended.delete(holder)
      throw error
    })
  }

  /**
   * Held units that have expired are charged again when they are settled, so it must be known whether they were settled
   * before. For slots, the store knows.
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
   * Slots first; the rest is corrected only by the call that freed them. The store frees a slot once, so a repeated id
   * does not refund units twice. Units without slots are protected by being held.
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
