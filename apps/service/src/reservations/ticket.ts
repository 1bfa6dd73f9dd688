import { MICROS_PER_MS } from '@sluice/core/internal'
import type { PolicyDecision, PolicyReservation, ReservationClaim } from '@sluice/core/policy'

type Charge = ReservationClaim['receipt']['charges'][number]

/** What an engine answers when something is to be taken in advance. */
export type Taken = PolicyReservation | PolicyDecision

/** All that is known of a reservation or a slot that was handed out. */
export interface Ticket {
  /** `units` were taken in advance, and are corrected later. A `slot` is held while something goes on. */
  readonly kind: 'units' | 'slot'
  /** The thread that handed it out. */
  readonly thread: number
  /** How it was decided when the store could not be asked; undefined when it was. */
  readonly failure: 'open' | 'local' | undefined
  /** When the store gives it back by itself, milliseconds since 1970 by its clock; `Infinity` when it does not. */
  readonly endsAtMs: number
  /** For how long slots are held; 0 when none are. */
  readonly leaseMs: number
  /** What was charged, as far as it can be corrected later. */
  readonly claim: ReservationClaim
}

/** How something was taken. */
export interface Taking extends Pick<Ticket, 'kind' | 'thread'> {
  /** How long units were to be held. */
  readonly expiresAfterMs: number
}

/** The ticket for what `decision` charged. */
export function ticketFor(
  { failure }: PolicyDecision,
  claim: ReservationClaim,
  { kind, thread, expiresAfterMs }: Taking,
): Ticket {
  const { charges, held } = claim.receipt
  const leases = charges.filter(isSlot).map(({ limit }) => limit.leaseMicros / MICROS_PER_MS)
  const leaseMs = leases.length === 0 ? 0 : Math.min(...leases)
  const madeAtMs = Math.min(...charges.map(({ at }) => at)) / MICROS_PER_MS
  const unitsMs = held ? expiresAfterMs : Number.POSITIVE_INFINITY
  return {
    kind,
    thread,
    failure: failure?.mode === 'closed' ? undefined : failure?.mode,
    endsAtMs: madeAtMs + (leaseMs > 0 ? leaseMs : unitsMs),
    leaseMs,
    claim,
  }
}

/** The claim on only its slots, or on all but them. */
export function partOf(claim: ReservationClaim, part: 'slots' | 'units'): ReservationClaim {
  const charges = claim.receipt.charges.filter((charge) => isSlot(charge) === (part === 'slots'))
  return { ...claim, receipt: { ...claim.receipt, charges } }
}

/** The claim on nothing. */
export function withoutCharges(claim: ReservationClaim): ReservationClaim {
  return { ...claim, receipt: { ...claim.receipt, charges: [] } }
}

function isSlot(charge: Charge): charge is Charge & { readonly limit: { readonly algorithm: 'concurrency' } } {
  return charge.limit.algorithm === 'concurrency'
}
