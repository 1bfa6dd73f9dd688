import type { NamedSchema } from '../schema/json-schema.ts'
import { answerSchema, requestSchema } from '../schema/json-schema.ts'
import { text, whole } from '../schema/value-schemas.ts'
import { ALLOWED_EXAMPLE, CHECK_ANSWER_PROPERTIES, CHECK_EXAMPLE, CHECK_PROPERTIES } from './check-schemas.ts'
import type {
  AcquireRequest,
  HeartbeatAnswer,
  ReservationAnswer,
  ReservationRequest,
  ReserveRequest,
  SettlementAnswer,
  SettleRequest,
} from './reservation-bodies.ts'

const ID_EXAMPLE = 'r1.AAECAwQFBgc.4f9d1c'

const RESERVATION_ID = text('Names the reservation or slot, as it was given: opaque.', 8192)

const EXPIRES_AT = {
  description:
    'When it is given back by itself: an RFC 3339 instant in UTC, in milliseconds rounded down. Null when there is no such instant.',
  type: ['string', 'null'],
  pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$',
} as const

const LEASE_MS = {
  description: 'Milliseconds that a slot is held for, from each heartbeat on. Absent when no slot is held.',
  type: 'number',
  exclusiveMinimum: 0,
} as const

/** The schema of {@link ReserveRequest}. */
export const RESERVE_REQUEST: NamedSchema<ReserveRequest> = requestSchema('ReserveRequest', {
  description: 'A check whose tokens are taken in advance.',
  examples: [{ ...CHECK_EXAMPLE, tokens: 500, expiresAfterMs: 30_000 }],
  required: CHECK_PROPERTIES.required,
  optional: {
    ...CHECK_PROPERTIES.optional,
    expiresAfterMs: whole(
      'Milliseconds after which what was neither settled nor released is given back; 60000 when left out. Slots end with their lease.',
      1,
      86_400_000,
    ),
  },
})

/** The schema of {@link AcquireRequest}. */
export const ACQUIRE_REQUEST: NamedSchema<AcquireRequest> = requestSchema('AcquireRequest', {
  description: 'A call for a slot, under rules that limit how much goes on at once.',
  examples: [{ tenant: 'acme', resource: '/reports', maxWaitMs: 2000 }],
  required: CHECK_PROPERTIES.required,
  optional: {
    ...CHECK_PROPERTIES.optional,
    maxWaitMs: whole('Milliseconds to wait for a slot; 0 when left out, which answers at once.', 0, 30_000),
  },
})

/** The schema of {@link SettleRequest}. */
export const SETTLE_REQUEST: NamedSchema<SettleRequest> = requestSchema('SettleRequest', {
  description: 'What was really used of a reservation.',
  examples: [{ reservationId: ID_EXAMPLE, tokens: 317 }],
  required: {
    reservationId: RESERVATION_ID,
    tokens: whole('Tokens really used; may be more than was reserved.', 0, 1_000_000_000),
  },
})

/** The schema of {@link ReservationRequest}. */
export const RESERVATION_REQUEST: NamedSchema<ReservationRequest> = requestSchema('ReservationRequest', {
  description: 'Which reservation or slot is meant.',
  examples: [{ reservationId: ID_EXAMPLE }],
  required: { reservationId: RESERVATION_ID },
})

/** The schema of {@link ReservationAnswer}. */
export const RESERVATION_ANSWER: NamedSchema<ReservationAnswer> = answerSchema('ReservationAnswer', {
  description: 'The answer to the check, and what it is settled, released or renewed by.',
  examples: [{ ...ALLOWED_EXAMPLE, reservationId: ID_EXAMPLE, expiresAt: '2025-11-05T10:04:30.250Z' }],
  required: { ...CHECK_ANSWER_PROPERTIES.required, reservationId: RESERVATION_ID, expiresAt: EXPIRES_AT },
  optional: { ...CHECK_ANSWER_PROPERTIES.optional, leaseMs: LEASE_MS },
})

/** The schema of {@link SettlementAnswer}. */
export const SETTLEMENT_ANSWER: NamedSchema<SettlementAnswer> = answerSchema('SettlementAnswer', {
  description: 'What became of a reservation.',
  examples: [{ outcome: 'settled', corrected: -183 }],
  required: {
    outcome: {
      description:
        'settled: the charge stands at what was used, since this call or an earlier one. late: the reservation had run out, so that was charged anew. gone: the slot is no longer held.',
      enum: ['settled', 'late', 'gone'],
    },
    corrected: {
      description: 'Tokens changed, over all limits: below 0 given back, above 0 charged.',
      type: 'number',
    },
  },
})

/** The schema of {@link HeartbeatAnswer}. */
export const HEARTBEAT_ANSWER: NamedSchema<HeartbeatAnswer> = answerSchema('HeartbeatAnswer', {
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
