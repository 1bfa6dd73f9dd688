import { ref } from '../schema/json-schema.ts'
import type { IdsAnswer, LivenessAnswer, ReadinessAnswer } from '../service/service-bodies.ts'
import { IDS_ANSWER, LIVENESS_ANSWER, READINESS_ANSWER } from '../service/service-bodies.ts'
import { operations, query } from './operation.ts'

/** Most ids of one call. */
export const MOST_IDS = 1000

/** What tells about the service itself, and unique ids. */
export const SERVICE_OPERATIONS = operations('service', {
  ids: {
    method: 'GET',
    path: '/v1/ids',
    role: 'none',
    summary: 'Creates unique ids',
    description: 'Makes ids of 63 bits that no other node makes, rising with time.',
    parameters: {
      count: query('How many. Default: 1.', { type: 'integer', minimum: 1, maximum: MOST_IDS, default: 1 }),
    },
    answers: { 200: { description: 'The ids.', schema: ref<IdsAnswer>(IDS_ANSWER), headers: ['Cache-Control'] } },
    problems: ['SLUICE_HTTP_NOT_READY', 'SLUICE_HTTP_OVERLOADED'],
  },
  livez: {
    method: 'GET',
    path: '/livez',
    role: 'none',
    summary: 'Liveness probe',
    description:
      'Answers as long as the process does. It depends on nothing else: a restart would not bring that back.',
    answers: {
      200: { description: 'It is.', schema: ref<LivenessAnswer>(LIVENESS_ANSWER), headers: ['Cache-Control'] },
    },
  },
  readyz: {
    method: 'GET',
    path: '/readyz',
    role: 'none',
    summary: 'Readiness probe',
    description:
      'Says whether requests should be sent to the service: 200 when it can decide, 503 when it has no rules, is ' +
      'about to stop, or has lost Redis in failure mode closed. With 200, the status is "degraded" while something ' +
      'is wrong; "reasons" says what, and what to do. The answer lists what was checked.',
    answers: {
      200: {
        description: 'It is ready, or degraded.',
        schema: ref<ReadinessAnswer>(READINESS_ANSWER),
        headers: ['Cache-Control'],
      },
    },
    problems: ['SLUICE_HTTP_NOT_READY'],
  },
  metrics: {
    method: 'GET',
    path: '/metrics',
    role: 'none',
    summary: 'Metrics for Prometheus',
    description:
      'All metrics of the service, as text for Prometheus or, where the Accept header asks for it, OpenMetrics.',
    answers: {
      200: {
        description: 'The metrics.',
        mediaType: 'text/plain; version=0.0.4; charset=utf-8',
        schema: { type: 'string' },
        example: '# TYPE ratelimit_checks_total counter\nratelimit_checks_total{result="allowed"} 1200\n',
      },
    },
  },
  openapi: {
    method: 'GET',
    path: '/openapi.json',
    role: 'none',
    summary: 'This document',
    description: 'The OpenAPI 3.1 document of the service.',
    answers: { 200: { description: 'The document.', schema: { type: 'object' }, example: { openapi: '3.1.0' } } },
  },
})
