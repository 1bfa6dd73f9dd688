import type { CheckAnswer } from '../checks/check-answer-schema.ts'
import { CHECK_ANSWER, DENIED_EXAMPLE } from '../checks/check-answer-schema.ts'
import { ref } from '../schema/json-schema.ts'
import { DENIED_HEADERS, LIMIT_HEADERS } from './check-operations.ts'
import { operations, query } from './operation.ts'

/** What reverse proxies ask before they pass a request on. */
export const PROXY_OPERATIONS = operations('proxies', {
  forwardAuth: {
    method: 'GET',
    path: '/internal/ratelimit/forward-auth',
    role: 'none',
    summary: 'Checks a request of a reverse proxy',
    description:
      'For auth_request of nginx, forwardAuth of Traefik and forward_auth of Caddy. Checks the request that ' +
      'X-Forwarded-Uri, X-Forwarded-Method and X-Forwarded-For describe, and takes one token. Only loopback ' +
      'addresses and --trusted-proxies may ask; they need no API key. The address of the caller is the last one ' +
      'in X-Forwarded-For that is not of a trusted proxy; --forward-auth-identity names headers for other ' +
      'identities.',
    parameters: {
      denyStatus: query('Status of a denial; 403 for nginx, which turns 429 into 500. Default: 429.', {
        type: 'integer',
        minimum: 400,
        maximum: 499,
        default: 429,
      }),
    },
    answers: {
      200: { description: 'The request may go on.', schema: ref<CheckAnswer>(CHECK_ANSWER), headers: LIMIT_HEADERS },
      403: {
        description: 'The request must not go on, with denyStatus 403. It cost nothing.',
        schema: ref<CheckAnswer>(CHECK_ANSWER),
        headers: DENIED_HEADERS,
        example: DENIED_EXAMPLE,
      },
      429: {
        description: 'The request must not go on. It cost nothing. Another denyStatus has the same answer.',
        schema: ref<CheckAnswer>(CHECK_ANSWER),
        headers: DENIED_HEADERS,
        example: DENIED_EXAMPLE,
      },
    },
    problems: ['SLUICE_HTTP_NOT_READY', 'SLUICE_HTTP_OVERLOADED'],
  },
})
