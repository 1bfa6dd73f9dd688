import type { BatchAnswer, CheckAnswer } from '../checks/check-answer-schema.ts'
import { BATCH_ANSWER, CHECK_ANSWER, DENIED_EXAMPLE } from '../checks/check-answer-schema.ts'
import type { BatchRequest, CheckRequest } from '../checks/check-request.ts'
import { BATCH_REQUEST, CHECK_PATH, CHECK_REQUEST } from '../checks/check-request.ts'
import type { EnvoyAnswer } from '../checks/envoy-answer.ts'
import { ENVOY_ANSWER, OVER_LIMIT_EXAMPLE } from '../checks/envoy-answer.ts'
import type { EnvoyRequest } from '../checks/envoy-request.ts'
import { ENVOY_PATH, ENVOY_REQUEST } from '../checks/envoy-request.ts'
import type { ReportAnswer, ReportRequest } from '../checks/report-bodies.ts'
import { MOST_REPORTS, REPORT_ANSWER, REPORT_REQUEST } from '../checks/report-bodies.ts'
import type {
  AcquireRequest,
  HeartbeatAnswer,
  ReservationAnswer,
  ReservationRequest,
  ReserveRequest,
  SettlementAnswer,
  SettleRequest,
} from '../checks/reservation-bodies.ts'
import {
  ACQUIRE_REQUEST,
  HEARTBEAT_ANSWER,
  RESERVATION_ANSWER,
  RESERVATION_REQUEST,
  RESERVE_REQUEST,
  SETTLE_REQUEST,
  SETTLEMENT_ANSWER,
} from '../checks/reservation-bodies.ts'
import type { AnswerHeaderName } from '../headers/answer-headers.ts'
import { ref } from '../schema/json-schema.ts'
import type { ProblemCode } from '../service/problem.ts'
import { operations } from './operation.ts'

const BATCH_BYTES = 1_048_576

/** Headers of an answer with a decision. */
export const LIMIT_HEADERS: readonly AnswerHeaderName[] = [
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'X-RateLimit-Reset-After',
  'RateLimit',
  'RateLimit-Policy',
]

/** Headers of a denial. */
export const DENIED_HEADERS: readonly AnswerHeaderName[] = [...LIMIT_HEADERS, 'Retry-After', 'Cache-Control']

const BUSY: readonly ProblemCode[] = ['SLUICE_HTTP_NOT_READY', 'SLUICE_HTTP_OVERLOADED']

const STORE_AWAY: readonly ProblemCode[] = [...BUSY, 'SLUICE_HTTP_STORE_UNAVAILABLE', 'SLUICE_HTTP_OUTCOME_UNKNOWN']

const DENIED = {
  description: 'The call must not go on. It cost nothing.',
  schema: ref<CheckAnswer>(CHECK_ANSWER),
  headers: DENIED_HEADERS,
  example: DENIED_EXAMPLE,
} as const

const BATCH = {
  method: 'POST',
  role: 'none',
  summary: 'Checks several calls at once',
  description:
    'Decides up to 100 checks, each on its own and in order, like separate calls of check: what one of them takes ' +
    'is gone for the next. The status is 200 whatever the answers say. One invalid check rejects the ' +
    'whole batch, and nothing is counted.',
  body: ref<BatchRequest>(BATCH_REQUEST),
  maxBodyBytes: BATCH_BYTES,
  answers: {
    200: { description: 'One answer for each check, in their order.', schema: ref<BatchAnswer>(BATCH_ANSWER) },
  },
  problems: BUSY,
} as const

const HELD = {
  description: 'It was allowed. Settle, release or renew it by its reservationId, on any node.',
  schema: ref<ReservationAnswer>(RESERVATION_ANSWER),
  headers: LIMIT_HEADERS,
} as const

/** What gateways and services ask before they do something. */
export const CHECK_OPERATIONS = operations('checks', {
  check: {
    method: 'POST',
    path: CHECK_PATH,
    role: 'none',
    summary: 'Checks a call',
    description:
      'Finds the rules that hold for a call, decides all of them together, and takes its tokens when all allow it. ' +
      'A denied call takes nothing. When the store of the counters does not answer, each rule decides by its ' +
      'failure mode, and the answer says so.',
    body: ref<CheckRequest>(CHECK_REQUEST),
    answers: {
      200: { description: 'The call may go on.', schema: ref<CheckAnswer>(CHECK_ANSWER), headers: LIMIT_HEADERS },
      429: DENIED,
    },
    problems: BUSY,
  },
  checkBatch: { ...BATCH, path: '/internal/ratelimit/check/batch' },
  checkBatchAlias: { ...BATCH, path: '/internal/ratelimit/batch' },
  peek: {
    method: 'POST',
    path: '/internal/ratelimit/peek',
    role: 'none',
    summary: 'Checks a call without taking tokens',
    description: 'Answers as check would, and takes nothing.',
    body: ref<CheckRequest>(CHECK_REQUEST),
    answers: {
      200: { description: 'The call could go on.', schema: ref<CheckAnswer>(CHECK_ANSWER), headers: LIMIT_HEADERS },
      429: DENIED,
    },
    problems: BUSY,
  },
  reserve: {
    method: 'POST',
    path: '/internal/ratelimit/reserve',
    role: 'none',
    summary: 'Reserves tokens',
    description:
      'For calls whose cost is known afterwards: takes the tokens now; settle corrects them to what was used, ' +
      'release gives them back. What is neither settled nor released is given back by itself.',
    body: ref<ReserveRequest>(RESERVE_REQUEST),
    answers: { 200: HELD, 429: DENIED },
    problems: BUSY,
  },
  settle: {
    method: 'POST',
    path: '/internal/ratelimit/settle',
    role: 'none',
    summary: 'Settles a reservation',
    description:
      'Makes the charge of a reservation stand at what was used. Asked again, a node that remembers the settlement ' +
      'gives the same answer, and changes nothing.',
    body: ref<SettleRequest>(SETTLE_REQUEST),
    answers: {
      200: { description: 'What became of the reservation.', schema: ref<SettlementAnswer>(SETTLEMENT_ANSWER) },
    },
    problems: STORE_AWAY,
  },
  release: {
    method: 'POST',
    path: '/internal/ratelimit/release',
    role: 'none',
    summary: 'Releases a reservation or slot',
    description:
      'Gives back all that a reservation took, or the slot that is held. A second release gives nothing back.',
    body: ref<ReservationRequest>(RESERVATION_REQUEST),
    answers: { 200: { description: 'What became of it.', schema: ref<SettlementAnswer>(SETTLEMENT_ANSWER) } },
    problems: STORE_AWAY,
  },
  acquire: {
    method: 'POST',
    path: '/internal/ratelimit/acquire',
    role: 'none',
    summary: 'Acquires a slot',
    description:
      'For rules that limit how much goes on at once: takes a slot, and waits for one for as long as maxWaitMs ' +
      'says. Callers that wait in one thread of a node get slots in order of arrival, within 100 ms of a release ' +
      'on any node. The slot is held until it is released or its lease ends; heartbeat renews the lease. A wait ' +
      'for tokens of other rules that is known to be longer than maxWaitMs is denied at once.',
    body: ref<AcquireRequest>(ACQUIRE_REQUEST),
    answers: { 200: HELD, 429: DENIED },
    problems: BUSY,
  },
  heartbeat: {
    method: 'POST',
    path: '/internal/ratelimit/heartbeat',
    role: 'none',
    summary: 'Renews a slot',
    description: 'Renews the lease of a slot. When the slot is gone, the work that it was taken for should end.',
    body: ref<ReservationRequest>(RESERVATION_REQUEST),
    answers: { 200: { description: 'What became of the slot.', schema: ref<HeartbeatAnswer>(HEARTBEAT_ANSWER) } },
    problems: STORE_AWAY,
  },
  report: {
    method: 'POST',
    path: '/internal/ratelimit/report',
    role: 'none',
    summary: 'Reports how calls ended',
    description:
      `For limits that are cut while too many calls fail (errorRate): says of up to ${MOST_REPORTS} calls that ` +
      'were let through whether they failed. Each counts for all rules that its resource and method match, on the ' +
      'node that receives the report, at that instant. One invalid report rejects all of them, and nothing ' +
      'is counted.',
    body: ref<ReportRequest>(REPORT_REQUEST),
    maxBodyBytes: BATCH_BYTES,
    answers: { 200: { description: 'They were counted.', schema: ref<ReportAnswer>(REPORT_ANSWER) } },
    problems: BUSY,
  },
  shouldRateLimit: {
    method: 'POST',
    path: ENVOY_PATH,
    role: 'none',
    summary: 'Checks a call by the Envoy protocol',
    description:
      'Decides a request of the Envoy rate limit protocol by the domains of the enforced rule set, as ' +
      'envoyproxy/ratelimit does at the same path. All limits of a request are charged together, or none: a denied ' +
      'request costs nothing. An unknown domain and a descriptor that no rule is for limit nothing. When the store ' +
      'of the counters does not answer, the failure mode decides. Problems are those of this API.',
    body: ref<EnvoyRequest>(ENVOY_REQUEST),
    maxBodyBytes: BATCH_BYTES,
    answers: {
      200: { description: 'The call may go on.', schema: ref<EnvoyAnswer>(ENVOY_ANSWER), headers: LIMIT_HEADERS },
      429: {
        description: 'The call must not go on. It cost nothing.',
        schema: ref<EnvoyAnswer>(ENVOY_ANSWER),
        headers: DENIED_HEADERS,
        example: OVER_LIMIT_EXAMPLE,
      },
    },
    problems: BUSY,
  },
})
