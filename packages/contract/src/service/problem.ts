/** The media type of a problem document. */
export const PROBLEM_MEDIA_TYPE = 'application/problem+json'

/**
 * Every problem the service answers with: its status, the last part of its `type`, its title. Codes and types are part
 * of the public API: they are never renamed or reused.
 */
export const PROBLEMS = {
  SLUICE_HTTP_MALFORMED: { status: 400, name: 'malformed', title: 'The request is not valid HTTP' },
  SLUICE_HTTP_INVALID_JSON: { status: 400, name: 'invalid-json', title: 'The body is not JSON' },
  SLUICE_HTTP_INVALID_REQUEST: { status: 400, name: 'invalid-request', title: 'The request has invalid fields' },
  SLUICE_HTTP_UNAUTHORIZED: { status: 401, name: 'unauthorized', title: 'A valid API key is required' },
  SLUICE_HTTP_FORBIDDEN: { status: 403, name: 'forbidden', title: 'The API key lacks permission' },
  SLUICE_HTTP_CSRF: { status: 403, name: 'csrf', title: 'The request may come from another site' },
  SLUICE_HTTP_NOT_FOUND: { status: 404, name: 'not-found', title: 'Nothing exists at this path' },
  SLUICE_HTTP_METHOD_NOT_ALLOWED: {
    status: 405,
    name: 'method-not-allowed',
    title: 'The method is not allowed',
  },
  SLUICE_HTTP_TIMEOUT: { status: 408, name: 'timeout', title: 'The request did not arrive in time' },
  SLUICE_HTTP_CONFLICT: { status: 409, name: 'conflict', title: 'The change conflicts with the current state' },
  SLUICE_HTTP_PRECONDITION_FAILED: {
    status: 412,
    name: 'precondition-failed',
    title: 'It has changed since it was read',
  },
  SLUICE_HTTP_TOO_LARGE: { status: 413, name: 'too-large', title: 'The body is too large' },
  SLUICE_HTTP_UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    name: 'unsupported-media-type',
    title: 'The media type of the body is not supported',
  },
  SLUICE_HTTP_EXPECTATION_FAILED: {
    status: 417,
    name: 'expectation-failed',
    title: 'The Expect header is not supported',
  },
  SLUICE_HTTP_UNKNOWN_HOST: { status: 421, name: 'unknown-host', title: 'The Host header is not accepted' },
  SLUICE_HTTP_INVALID_RULE_SET: { status: 422, name: 'invalid-rule-set', title: 'The rules are invalid' },
  SLUICE_HTTP_TOO_MANY_FAILURES: {
    status: 429,
    name: 'too-many-failures',
    title: 'Too many attempts with an invalid API key',
  },
  SLUICE_HTTP_HEADERS_TOO_LARGE: { status: 431, name: 'headers-too-large', title: 'The headers are too large' },
  SLUICE_HTTP_INTERNAL: { status: 500, name: 'internal', title: 'The service failed' },
  SLUICE_HTTP_NOT_READY: { status: 503, name: 'not-ready', title: 'The service is not ready' },
  SLUICE_HTTP_OVERLOADED: { status: 503, name: 'overloaded', title: 'The service is overloaded' },
  SLUICE_HTTP_TOO_MANY_CONNECTIONS: {
    status: 503,
    name: 'too-many-connections',
    title: 'Too many connections from this address',
  },
  SLUICE_HTTP_CONFIG_UNAVAILABLE: {
    status: 503,
    name: 'config-unavailable',
    title: 'The configuration database is unavailable',
  },
  SLUICE_HTTP_STORE_UNAVAILABLE: {
    status: 503,
    name: 'store-unavailable',
    title: 'The store of the counters is unreachable',
  },
  SLUICE_HTTP_CONFIG_NOT_WRITABLE: {
    status: 507,
    name: 'config-not-writable',
    title: 'The configuration database is not writable',
  },
  SLUICE_HTTP_OUTCOME_UNKNOWN: { status: 504, name: 'outcome-unknown', title: 'The outcome is unknown' },
} as const

/** One of the codes of {@link PROBLEMS}. */
export type ProblemCode = keyof typeof PROBLEMS

/**
 * Every reason for which a service is degraded or not ready, and what it means. Codes are part of the public API: they
 * are never renamed or reused.
 */
export const READINESS_REASONS = {
  stopping: 'The service is about to stop.',
  'no-rules': 'No rules are known, so nothing can be decided.',
  'redis-unreachable': 'Redis gives no usable answer, so checks are decided by failure mode.',
  'config-unreachable': 'The configuration cannot be read. The rules known last stay active; changes are not possible.',
  'version-refused': 'A newer version of the rules cannot be used. The previous one stays active.',
  'dimension-undeclared': 'Rules use a dimension that is neither built in nor declared, so they may match no request.',
  'threads-missing': 'Fewer threads answer requests than should.',
  'gateway-waiting': 'The gateway was started and waits for services or upstreams that it needs.',
  'upstream-unavailable': 'No instance of an upstream takes requests, so its routes are answered with 503.',
  'token-keys-unavailable': 'The keys of an issuer cannot be loaded. Those loaded last stay in use.',
  'gateway-config-refused': 'The routes in the file cannot be used. The previous ones stay in use.',
  'tls-files-unusable': 'The TLS files of a listener have changed and cannot be used. The previous ones stay in use.',
} as const

/** One of the codes of {@link READINESS_REASONS}. */
export type ReadinessReasonCode = keyof typeof READINESS_REASONS
