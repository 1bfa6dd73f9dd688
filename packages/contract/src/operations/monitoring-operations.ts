import type { Explanation } from '../admin/explain-and-audit-bodies.ts'
import { AUDIT_PAGE, EXPLANATION } from '../admin/explain-and-audit-bodies.ts'
import type { GatewayAnswer } from '../admin/gateway-bodies.ts'
import { GATEWAY_ANSWER } from '../admin/gateway-bodies.ts'
import type { HistoryAnswer, LiveSample, TopAnswer } from '../admin/traffic-bodies.ts'
import { HISTORY_ANSWER, LIVE_SAMPLE, TOP_ANSWER } from '../admin/traffic-bodies.ts'
import type { CheckRequest } from '../checks/check-request.ts'
import { CHECK_REQUEST } from '../checks/check-request.ts'
import { ref } from '../schema/json-schema.ts'
import { DIMENSION, instant, text, whole } from '../schema/value-schemas.ts'
import type { ProblemCode } from '../service/problem.ts'
import { NODE_PARAMETER, operations, PAGE_PARAMETERS, query } from './operation.ts'

const READS: readonly ProblemCode[] = ['SLUICE_HTTP_OVERLOADED', 'SLUICE_HTTP_CONFIG_UNAVAILABLE']

/** What happens, and why. */
export const MONITORING_OPERATIONS = operations('monitoring', {
  explain: {
    method: 'POST',
    path: '/admin/explain',
    role: 'viewer',
    summary: 'Explains a decision',
    description:
      'For a call: every rule that was considered, why it holds or not, where its limit comes from, how its ' +
      'counters stand, and what a check would answer. Nothing is charged.',
    body: ref<CheckRequest>(CHECK_REQUEST),
    answers: { 200: { description: 'The explanation.', schema: ref<Explanation>(EXPLANATION) } },
    problems: ['SLUICE_HTTP_OVERLOADED', 'SLUICE_HTTP_STORE_UNAVAILABLE'],
  },
  listAudit: {
    method: 'GET',
    path: '/admin/audit',
    role: 'viewer',
    summary: 'Lists the audit log',
    description: 'Every change, newest first: who made it, with which key, why, what was there before and after.',
    parameters: {
      ...PAGE_PARAMETERS,
      by: query('Only what was done with the API key of this name.', text('A name.', 200)),
      keyId: query('Only what was done with the API key of this id.', text('An id such as slk_3DBmkKOLiL8D.', 200)),
      action: query('Only actions of this kind.', text('An action such as override.put.', 100)),
      since: query('Only what was done from then on.', instant('From then on.')),
    },
    answers: { 200: { description: 'The records.', schema: AUDIT_PAGE.ref } },
    problems: READS,
  },
  live: {
    method: 'GET',
    path: '/admin/live',
    role: 'viewer',
    summary: 'Streams live traffic',
    description:
      'A stream of server-sent events, one each second, over all nodes or one: the event is called "sample", its ' +
      'data is JSON.',
    parameters: NODE_PARAMETER,
    answers: {
      200: {
        description: 'The stream.',
        mediaType: 'text/event-stream',
        schema: ref<LiveSample>(LIVE_SAMPLE),
        headers: ['Cache-Control'],
      },
    },
    problems: ['SLUICE_HTTP_NOT_FOUND', 'SLUICE_HTTP_OVERLOADED'],
    streams: true,
  },
  history: {
    method: 'GET',
    path: '/admin/history',
    role: 'viewer',
    summary: 'Shows traffic history',
    description: 'Checks, denials and latency of the past, in equal intervals.',
    parameters: {
      from: query('Start. Default: an hour before "to".', instant('From then on.')),
      to: query('End. Default: now.', instant('Until then.')),
      stepMs: query(
        'Length of each interval. Default: chosen to fit the range.',
        whole('Milliseconds; the next longer span that is kept is taken.', 1000, 86_400_000),
      ),
      ...NODE_PARAMETER,
    },
    answers: { 200: { description: 'What happened.', schema: ref<HistoryAnswer>(HISTORY_ANSWER) } },
    problems: ['SLUICE_HTTP_NOT_FOUND', ...READS],
  },
  top: {
    method: 'GET',
    path: '/admin/top',
    role: 'viewer',
    summary: 'Lists the most denied callers',
    description:
      'The users, addresses and other callers that were denied most in the last minutes, by all nodes or one, with ' +
      'how exact that is.',
    parameters: {
      dimension: query('Only callers of this dimension.', DIMENSION),
      limit: query('Maximum number of callers per dimension. Default: 10.', {
        ...whole('How many.', 1, 100),
        default: 10,
      }),
      ...NODE_PARAMETER,
    },
    answers: { 200: { description: 'The callers.', schema: ref<TopAnswer>(TOP_ANSWER) } },
    problems: ['SLUICE_HTTP_NOT_FOUND', 'SLUICE_HTTP_OVERLOADED'],
  },
  gateway: {
    method: 'GET',
    path: '/admin/gateway',
    role: 'viewer',
    summary: 'Shows how the gateway stands',
    description:
      'Routes, upstreams and their instances with health, circuit breaker and requests in flight, over all threads ' +
      'of this node.',
    answers: { 200: { description: 'How it stands.', schema: ref<GatewayAnswer>(GATEWAY_ANSWER) } },
    problems: ['SLUICE_HTTP_OVERLOADED'],
  },
})
