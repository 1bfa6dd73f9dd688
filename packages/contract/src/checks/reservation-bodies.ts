import type { Parsed } from '../schema/body-parser.ts'
import { bodyForm, formProblems, hasForm } from '../schema/body-parser.ts'
import type { Infer } from '../schema/json-schema.ts'
import { answerSchema, requestSchema } from '../schema/json-schema.ts'
import { text, whole } from '../schema/value-schemas.ts'
import { ALLOWED_EXAMPLE, CHECK_ANSWER_PROPERTIES } from './check-answer-schema.ts'
import type { ValidCheckRequest } from './check-request.ts'
import { CHECK_EXAMPLE, CHECK_PROPERTIES, CHECK_RULES, MOST_TOKENS, validRequest } from './check-request.ts'

/** Maximum length of `reservationId` in characters. */
export const LONGEST_RESERVATION_ID = 8192

/** Maximum time that a reservation may be held unsettled. */
const LONGEST_RESERVATION_MS = 86_400_000

/** Maximum time that a request waits for a slot. */
export const LONGEST_WAIT_MS = 30_000

const USUAL_RESERVATION_MS = 60_000

const ID_EXAMPLE = 'r1.AAECAwQFBgc.4f9d1c'

const RESERVATION_ID = text('Names the reservation or slot, as it was given: opaque.', LONGEST_RESERVATION_ID)

const EXPIRES_AT = {
  description:
    'When it is given back by itself: an RFC 3339 instant in UTC, in milliseconds rounded down. Null when there is ' +
    'no such instant.',
  type: ['string', 'null'],
  pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$',
} as const

const LEASE_MS = {
  description: 'Milliseconds that a slot is held for, from each heartbeat on. Absent when no slot is held.',
  type: 'number',
  exclusiveMinimum: 0,
} as const

export const RESERVE_REQUEST = requestSchema('ReserveRequest', {
  description: 'A check whose tokens are taken in advance.',
  examples: [{ ...CHECK_EXAMPLE, tokens: 500, expiresAfterMs: 30_000 }],
  required: CHECK_PROPERTIES.required,
  optional: {
    ...CHECK_PROPERTIES.optional,
    expiresAfterMs: whole(
      'Milliseconds after which what was neither settled nor released is given back. Default: 60000. Slots end ' +
        'with their lease.',
      1,
      LONGEST_RESERVATION_MS,
    ),
  },
})
export interface ReserveRequest extends Infer<typeof RESERVE_REQUEST> {}

export const ACQUIRE_REQUEST = requestSchema('AcquireRequest', {
  description: 'A call for a slot, under rules that limit how much goes on at once.',
  examples: [{ tenant: 'acme', resource: '/reports', maxWaitMs: 2000 }],
  required: CHECK_PROPERTIES.required,
  optional: {
    ...CHECK_PROPERTIES.optional,
    maxWaitMs: whole('Milliseconds to wait for a slot. Default: 0, which answers at once.', 0, LONGEST_WAIT_MS),
  },
})
export interface AcquireRequest extends Infer<typeof ACQUIRE_REQUEST> {}

export const SETTLE_REQUEST = requestSchema('SettleRequest', {
  description: 'What was really used of a reservation.',
  examples: [{ reservationId: ID_EXAMPLE, tokens: 317 }],
  required: {
    reservationId: RESERVATION_ID,
    tokens: whole('Tokens really used; may be more than was reserved.', 0, MOST_TOKENS),
  },
})
export interface SettleRequest extends Infer<typeof SETTLE_REQUEST> {}

export const RESERVATION_REQUEST = requestSchema('ReservationRequest', {
  description: 'Which reservation or slot is meant.',
  examples: [{ reservationId: ID_EXAMPLE }],
  required: { reservationId: RESERVATION_ID },
})
export interface ReservationRequest extends Infer<typeof RESERVATION_REQUEST> {}

export const RESERVATION_ANSWER = answerSchema('ReservationAnswer', {
  description: 'The answer to the check, and what it is settled, released or renewed by.',
  examples: [{ ...ALLOWED_EXAMPLE, reservationId: ID_EXAMPLE, expiresAt: '2025-11-05T10:04:30.250Z' }],
  required: { ...CHECK_ANSWER_PROPERTIES.required, reservationId: RESERVATION_ID, expiresAt: EXPIRES_AT },
  optional: { ...CHECK_ANSWER_PROPERTIES.optional, leaseMs: LEASE_MS },
})
export interface ReservationAnswer extends Infer<typeof RESERVATION_ANSWER> {}

export const SETTLEMENT_ANSWER = answerSchema('SettlementAnswer', {
  description: 'What became of a reservation.',
  examples: [{ outcome: 'settled', corrected: -183 }],
  required: {
    outcome: {
      description:
        'settled: the charge stands at what was used, since this call or an earlier one. late: the reservation had ' +
        'run out, so that was charged anew. gone: the slot is no longer held.',
      enum: ['settled', 'late', 'gone'],
    },
    corrected: {
      description: 'Tokens changed, over all limits: below 0 given back, above 0 charged.',
      type: 'number',
    },
  },
})
export interface SettlementAnswer extends Infer<typeof SETTLEMENT_ANSWER> {}

export const HEARTBEAT_ANSWER = answerSchema('HeartbeatAnswer', {
  description: 'What became of a slot.',
  examples: [
    { outcome: 'renewed', expiresAt: '2025-11-05T10:05:00.250Z', leaseMs: 30_000 },
    { outcome: 'gone', expiresAt: null },
  ],
  required: {
    outcome: {
      description: 'renewed: it is held until expiresAt. gone: it had run out, and somebody else may have it.',
      enum: ['renewed', 'gone'],
    },
    expiresAt: EXPIRES_AT,
  },
  optional: { leaseMs: LEASE_MS },
})
export interface HeartbeatAnswer extends Infer<typeof HEARTBEAT_ANSWER> {}

const RESERVE_FORM = bodyForm(RESERVE_REQUEST, 'a JSON object with the check to reserve for', CHECK_RULES)

const ACQUIRE_FORM = bodyForm(ACQUIRE_REQUEST, 'a JSON object with the check to hold a slot for', CHECK_RULES)

const SETTLE_FORM = bodyForm(SETTLE_REQUEST, 'a JSON object with "reservationId" and "tokens"', {
  private: ['reservationId'],
})

const RESERVATION_FORM = bodyForm(RESERVATION_REQUEST, 'a JSON object with "reservationId"', {
  private: ['reservationId'],
})

/** Parses the JSON of a body into a reservation, or into its problems. Never throws. */
export function parseReserveRequest(
  body: unknown,
): Parsed<{ readonly request: ValidCheckRequest; readonly expiresAfterMs: number }> {
  if (!hasForm(body, RESERVE_FORM)) return formProblems(body, RESERVE_FORM)
  return { ok: true, request: validRequest(body), expiresAfterMs: body.expiresAfterMs ?? USUAL_RESERVATION_MS }
}

/** Parses the JSON of a body into a request for a slot, or into its problems. Never throws. */
export function parseAcquireRequest(
  body: unknown,
): Parsed<{ readonly request: ValidCheckRequest; readonly maxWaitMs: number }> {
  if (!hasForm(body, ACQUIRE_FORM)) return formProblems(body, ACQUIRE_FORM)
  return { ok: true, request: validRequest(body), maxWaitMs: (body.maxWaitMs ?? 0) + 0 }
}

/** Parses the JSON of a body into a settlement, or into its problems. Never throws. */
export function parseSettleRequest(body: unknown): Parsed<SettleRequest> {
  if (!hasForm(body, SETTLE_FORM)) return formProblems(body, SETTLE_FORM)
  const { reservationId, tokens } = body
  // Adding 0 turns the -0 of JSON into 0, here and above.
  return { ok: true, reservationId, tokens: tokens + 0 }
}

/** Parses the JSON of a release or a heartbeat, or returns its problems. */
export function parseReservationRequest(body: unknown): Parsed<ReservationRequest> {
  if (!hasForm(body, RESERVATION_FORM)) return formProblems(body, RESERVATION_FORM)
  return { ok: true, reservationId: body.reservationId }
}

/**
 * The announced expiry: never after `expiresAtMs`, which is in milliseconds since 1970. Null for `Infinity`: no expiry.
 */
export function expiryText(expiresAtMs: number): string | null {
  return Number.isFinite(expiresAtMs) ? new Date(Math.floor(expiresAtMs)).toISOString() : null
}
