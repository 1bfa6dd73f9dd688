import { expiryText } from '@sluice/contract'
import type { Settlement } from '@sluice/core'
import { isSluiceError } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type { PolicyEngine, PolicyRequest, PolicyReservation } from '@sluice/core/policy'
import type { Taken, Ticket } from '../../reservations/reservation-ticket.ts'
import { withoutCharges } from '../../reservations/reservation-ticket.ts'
import type { ServiceContext } from '../../service-context.ts'
import type { Answer, OperationHandlers } from '../handler.ts'
import { jsonAnswer, thenMaybe } from '../handler.ts'
import { invalidRequestAnswer } from '../problems.ts'
import type { ReservationParts } from './reservations.ts'
import { handOut, withTicket } from './reservations.ts'

/** What the handlers of slots need besides. */
export type SlotParts = ReservationParts & Pick<ServiceContext, 'clock'>

/**
 * Slots, held while something goes on: `acquire` and `heartbeat`. They end by `release`, `settle`, or with their lease.
 */
export function slotHandlers(parts: SlotParts): OperationHandlers<'acquire' | 'heartbeat'> {
  const { engine, reservations, clock, requestOf } = parts
  const taking = { kind: 'slot', thread: reservations.thread, expiresAfterMs: Number.POSITIVE_INFINITY } as const
  const nowMs = (): number => clock.nowMicros() / MICROS_PER_MS
  return {
    acquire: (asked) => {
      const { maxWaitMs } = asked.body
      const request = requestOf(asked.body.request)
      const taken =
        maxWaitMs === 0
          ? engine.reserve(request)
          : waitFor(engine, request, { maxWait: maxWaitMs, signal: asked.signal })
      return thenMaybe<Taken, Answer>(taken, (answer) =>
        thenMaybe<Taken, Answer>(asCheck(answer), (kept) => handOut(parts, kept, taking)),
      )
    },
    heartbeat: ({ body: { reservationId } }) =>
      withTicket(reservations, reservationId, (ticket) => {
        if (ticket.kind === 'units' && ticket.leaseMs === 0) return NOT_A_SLOT
        // Read before the call to the store: the lease ends no sooner.
        const fromMs = nowMs()
        return thenMaybe(reservations.renew(ticket), (settlement) => heartbeatAnswer(settlement, ticket, fromMs))
      }),
  }
}

/** Waits for a slot. A client that has disconnected takes none and gets no answer. */
async function waitFor(
  engine: PolicyEngine,
  request: PolicyRequest,
  { maxWait, signal }: { readonly maxWait: number; readonly signal: AbortSignal },
): Promise<Taken> {
  try {
    return await engine.acquire(request, { maxWait, signal })
  } catch (error) {
    if (!signal.aborted) throw error
    return await engine.peek(request)
  }
}

/**
 * Without a rule that has slots, the units would be reserved and expire. But the call takes place, so the charge is
 * kept, as after a check.
 */
function asCheck(taken: Taken): Taken | Promise<Taken> {
  if (!('claim' in taken && taken.claim.receipt.held)) return taken
  const standing: PolicyReservation = { ...taken, claim: withoutCharges(taken.claim) }
  const settled = taken.settle(taken.claim.cost)
  if (!(settled instanceof Promise)) return standing
  return settled.then(
    () => standing,
    (error: unknown) => {
      // The call is allowed either way. If the store could not do it, one charge too many is given back.
      if (isSluiceError(error, 'SLUICE_STORE_UNAVAILABLE') || isSluiceError(error, 'SLUICE_OUTCOME_UNKNOWN'))
        return standing
      throw error
    },
  )
}

function heartbeatAnswer({ outcome }: Settlement, { leaseMs }: Ticket, fromMs: number): Answer {
  if (outcome === 'gone') return GONE
  const expiresAt = expiryText(leaseMs > 0 ? fromMs + leaseMs : Number.POSITIVE_INFINITY)
  return jsonAnswer(200, JSON.stringify({ outcome: 'renewed', expiresAt, ...(leaseMs > 0 ? { leaseMs } : {}) }))
}

const GONE = jsonAnswer(200, JSON.stringify({ outcome: 'gone', expiresAt: null }))

const NOT_A_SLOT = invalidRequestAnswer({
  problems: [
    {
      path: '/reservationId',
      received: 'a reservation that holds no slot',
      expected: 'one that acquire gave: units are reserved for a fixed time, which "expiresAfterMs" sets',
    },
  ],
})
