import { expiryText } from '@sluice/contract'
import type { Settlement } from '@sluice/core'
import type { Taken, Taking, Ticket } from '../../reservations/reservation-ticket.ts'
import { ticketFor } from '../../reservations/reservation-ticket.ts'
import type { Reservations } from '../../reservations/reservations.ts'
import type { Answer, OperationHandlers } from '../handler.ts'
import { jsonAnswer, thenMaybe } from '../handler.ts'
import { invalidRequestAnswer, problemAnswer } from '../problems.ts'
import type { CheckParts } from './check.ts'

/** What the handlers of reservations and slots work with. */
export interface ReservationParts extends CheckParts {
  readonly reservations: Reservations
}

/** Units taken in advance: `reserve`, `settle`, `release`. The last two also end slots. */
export function reservationHandlers(parts: ReservationParts): OperationHandlers<'reserve' | 'settle' | 'release'> {
  const { engine, reservations, requestOf } = parts
  return {
    reserve: ({ body: { request, expiresAfterMs } }) => {
      const taken = engine.reserve(requestOf(request), { expiresAfter: expiresAfterMs })
      return thenMaybe<Taken, Answer>(taken, (answer) =>
        handOut(parts, answer, { kind: 'units', thread: reservations.thread, expiresAfterMs }),
      )
    },
    settle: ({ body: { reservationId, tokens } }) =>
      withTicket(reservations, reservationId, (ticket) =>
        thenMaybe(reservations.settle(ticket, tokens), settlementAnswer),
      ),
    release: ({ body: { reservationId } }) =>
      withTicket(reservations, reservationId, (ticket) => thenMaybe(reservations.release(ticket), settlementAnswer)),
  }
}

/** The answer to what was taken, with its id; or to a denial. */
export function handOut(
  { reservations, answers }: ReservationParts,
  taken: Taken,
  taking: Taking,
): Answer | Promise<Answer> {
  if (!('claim' in taken)) return answers.tell(taken)
  const ticket = ticketFor(taken.decision, taken.claim, taking)
  const id = reservations.issue(ticket)
  if (id === undefined) return thenMaybe(reservations.settle(ticket, 0), () => TOO_LONG)
  const expiresAt = expiryText(ticket.endsAtMs)
  const lease = ticket.leaseMs > 0 ? `,"leaseMs":${ticket.leaseMs}` : ''
  // Neither has a character that JSON would write otherwise.
  const ends = expiresAt === null ? 'null' : `"${expiresAt}"`
  return answers.tellWith(taken.decision, `"reservationId":"${id}","expiresAt":${ends}${lease}`)
}

/** The answer for the ticket of an id, or to an id that is of no use. */
export function withTicket(
  reservations: Reservations,
  id: string,
  use: (ticket: Ticket) => Answer | Promise<Answer>,
): Answer | Promise<Answer> {
  const recognised = reservations.recognise(id)
  if (recognised.ok) return use(recognised.ticket)
  const { received, expected } = recognised
  return invalidRequestAnswer({ problems: [{ path: '/reservationId', received, expected }] })
}

function settlementAnswer({ outcome, corrected }: Settlement): Answer {
  return jsonAnswer(200, JSON.stringify({ outcome, corrected }))
}

const TOO_LONG = problemAnswer('SLUICE_HTTP_INVALID_REQUEST', {
  detail:
    'The limits and identities of this call do not fit into a reservation id. What was taken is given back. Name ' +
    'callers by shorter strings, or let fewer rules hold for this resource.',
  errors: [
    {
      path: '',
      received: 'a call with too many limits, or too long identities',
      expected: 'one whose limits and identities fit into 8192 characters',
    },
  ],
})
