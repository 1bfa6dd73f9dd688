import type { NamedSchema } from '../schema/json-schema.ts'
import { answerSchema, choices } from '../schema/json-schema.ts'
import { listOf, whole, words } from '../schema/value-schemas.ts'
import type { EnvoyUnit } from './envoy-request.ts'
import { ENVOY_UNITS, LARGEST_ENVOY_COUNT } from './envoy-request.ts'

/** Whether something is over its limit. */
export type EnvoyCode = 'OK' | 'OVER_LIMIT'

/** A limit as the answer tells it. */
export interface EnvoyCurrentLimit {
  /** Left out when it is 0. */
  readonly requestsPerUnit?: number
  readonly unit: EnvoyUnit
  /** Left out when it has none. */
  readonly name?: string
}

/** How one descriptor stands. */
export interface EnvoyStatus {
  readonly code: EnvoyCode
  /** Left out when nothing was counted, also because the store did not answer. */
  readonly currentLimit?: EnvoyCurrentLimit
  /** Hits that are left, 4,294,967,295 where a rule does not limit; left out when it is 0. */
  readonly limitRemaining?: number
  /** Until the window ends: whole seconds, rounded up, and `s`; left out when nothing was counted. */
  readonly durationUntilReset?: string
}

/**
 * A `RateLimitResponse` of the Envoy rate limit protocol as protobuf writes JSON, which leaves out what is 0 or empty:
 * status 200 when it is `OK`, 429 when it is `OVER_LIMIT`.
 */
export interface EnvoyAnswer {
  readonly overallCode: EnvoyCode
  /** One for each descriptor, in their order. */
  readonly statuses: readonly EnvoyStatus[]
}

/** What this package needs to know of a decision on descriptors; those of the rule engine have this shape. */
export interface EnvoyDecisionLike {
  readonly code: 'ok' | 'over'
  readonly statuses: readonly {
    readonly code: 'ok' | 'over'
    /** Undefined when nothing was counted. */
    readonly limit:
      | {
          readonly requestsPerUnit: number
          readonly unit: Lowercase<EnvoyUnit>
          readonly name: string | undefined
        }
      | undefined
    /** Null when it is unknown. */
    readonly remaining: number | null
    readonly resetAfterSeconds: number
  }[]
}

/** The answer that tells `decision`. */
export function envoyAnswer({ code, statuses }: EnvoyDecisionLike): EnvoyAnswer {
  return { overallCode: CODES[code], statuses: statuses.map(statusOf) }
}

const CODES = { ok: 'OK', over: 'OVER_LIMIT' } as const

function statusOf({ code, limit, remaining, resetAfterSeconds }: EnvoyDecisionLike['statuses'][number]): EnvoyStatus {
  // The protocol cannot say "unknown": without a limit, Envoy announces none. A limit alone would read as 0 left.
  if (remaining === null) return { code: CODES[code] }
  return {
    code: CODES[code],
    ...(limit === undefined ? {} : { currentLimit: currentLimit(limit) }),
    ...(remaining === 0 ? {} : { limitRemaining: remaining }),
    ...(limit === undefined ? {} : { durationUntilReset: `${resetAfterSeconds}s` }),
  }
}

function currentLimit({
  requestsPerUnit,
  unit,
  name = '',
}: EnvoyDecisionLike['statuses'][number]['limit'] & object): EnvoyCurrentLimit {
  return {
    ...(requestsPerUnit === 0 ? {} : { requestsPerUnit }),
    unit: unit.toUpperCase() as EnvoyUnit,
    ...(name === '' ? {} : { name }),
  }
}

const ENVOY_CODES = choices('OK', 'OVER_LIMIT')

const LIMIT_EXAMPLE: EnvoyCurrentLimit = { requestsPerUnit: 2, unit: 'MINUTE' }

/** The answer to a denied request that examples show. */
export const OVER_LIMIT_EXAMPLE: EnvoyAnswer = {
  overallCode: 'OVER_LIMIT',
  statuses: [{ code: 'OVER_LIMIT', currentLimit: LIMIT_EXAMPLE, durationUntilReset: '42s' }],
}

const OK_STATUS: EnvoyStatus = {
  code: 'OK',
  currentLimit: LIMIT_EXAMPLE,
  limitRemaining: 1,
  durationUntilReset: '42s',
}

/** The schema of {@link EnvoyCurrentLimit}. */
const ENVOY_CURRENT_LIMIT: NamedSchema<EnvoyCurrentLimit> = answerSchema('EnvoyCurrentLimit', {
  description: 'A limit.',
  examples: [LIMIT_EXAMPLE],
  required: { unit: { description: 'Length of its window.', enum: choices(...ENVOY_UNITS) } },
  optional: {
    requestsPerUnit: whole('Hits in each window; absent when it is 0.', 0, LARGEST_ENVOY_COUNT),
    name: words('Its name; absent when it has none.'),
  },
})

/** The schema of {@link EnvoyStatus}. */
const ENVOY_STATUS: NamedSchema<EnvoyStatus> = answerSchema('EnvoyStatus', {
  description: 'How one descriptor stands.',
  examples: [OK_STATUS, { code: 'OK' }, { code: 'OK', limitRemaining: LARGEST_ENVOY_COUNT }],
  required: { code: { description: 'Whether it is over its limit.', enum: ENVOY_CODES } },
  optional: {
    currentLimit: { ...ENVOY_CURRENT_LIMIT.ref, description: 'Its limit; absent when nothing was counted.' },
    limitRemaining: whole(
      `Hits that are left, ${LARGEST_ENVOY_COUNT} where a rule does not limit; absent when it is 0.`,
      0,
      LARGEST_ENVOY_COUNT,
    ),
    durationUntilReset: {
      description: 'Until the window ends: whole seconds, rounded up, and "s"; absent when nothing was counted.',
      type: 'string',
      pattern: '^[0-9]+s$',
    },
  },
})

/** The schema of {@link EnvoyAnswer}. */
export const ENVOY_ANSWER: NamedSchema<EnvoyAnswer> = answerSchema('EnvoyAnswer', {
  description:
    'An answer of the Envoy rate limit protocol (RateLimitResponse) as protobuf writes JSON, which leaves out what ' +
    'is 0 or empty.',
  examples: [{ overallCode: 'OK', statuses: [OK_STATUS] }, OVER_LIMIT_EXAMPLE],
  required: {
    overallCode: { description: 'Whether the call may go on.', enum: ENVOY_CODES },
    statuses: listOf<EnvoyStatus>('One for each descriptor, in their order.', ENVOY_STATUS.ref),
  },
})
