import { MICROS_PER_MS } from '@sluice/core/internal'
import type { PolicyDecision, PolicyReservation, ReservationClaim } from '@sluice/core/policy'

type Charge = ReservationClaim['receipt']['charges'][number]

/** Decision of an engine about a reservation. */
export type Taken = PolicyReservation | PolicyDecision

/** A reservation or a slot. */
export interface Ticket {
  /** `units`: charged in advance and corrected later. `slot`: held during a call. */
  readonly kind: 'units' | 'slot'
  /** The thread that issued it. */
  readonly thread: number
  /** Failure mode that decided; undefined if the store did. */
  readonly failure: 'open' | 'local' | undefined
  /** Expiry in milliseconds since 1970 by the clock of the store; `Infinity`: none. */
  readonly endsAtMs: number
  /** Lease of slots; 0 without slots. */
  readonly leaseMs: number
  /** Charges that can be corrected. */
  readonly claim: ReservationClaim
}

export interface Taking extends Pick<Ticket, 'kind' | 'thread'> {
  /** How long units are held. */
  readonly expiresAfterMs: number
}

/** The ticket of a decision. */
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

/** The part of a claim with only slots, or without them. */
export function partOf(claim: ReservationClaim, part: 'slots' | 'units'): ReservationClaim {
  const charges = claim.receipt.charges.filter((charge) => isSlot(charge) === (part === 'slots'))
  return { ...claim, receipt: { ...claim.receipt, charges } }
}

/** The claim without charges. */
export function withoutCharges(claim: ReservationClaim): ReservationClaim {
  return { ...claim, receipt: { ...claim.receipt, charges: [] } }
}

function isSlot(charge: Charge): charge is Charge & { readonly limit: { readonly algorithm: 'concurrency' } } {
  return charge.limit.algorithm === 'concurrency'
}
