import type { Infer } from '../schema/json-schema.ts'
import { answerSchema } from '../schema/json-schema.ts'
import { bodyOf, listOf, whole, words } from '../schema/value-schemas.ts'
import type { EnvoyUnit, ValidEnvoyRequest } from './envoy-request.ts'
import { ENVOY_UNITS, LARGEST_ENVOY_COUNT } from './envoy-request.ts'

/** What this package needs to know of a decision on descriptors; those of the rule engine have this shape. */
export interface EnvoyDecisionLike {
  readonly code: 'ok' | 'over'
  readonly statuses: readonly {
    readonly code: 'ok' | 'over'
    /** Undefined when nothing was counted. */
    readonly limit:
      | {
          readonly requestsPerUnit: number
          /** Undefined if its window is no unit. */
          readonly unit: Lowercase<EnvoyUnit> | undefined
          readonly name: string | undefined
        }
      | undefined
    /** Null when it is unknown. */
    readonly remaining: number | null
    readonly resetAfterSeconds: number
  }[]
  /** Of the rules that have room; undefined when there is none. */
  readonly metadata: Readonly<Record<string, unknown>> | undefined
}

/** The answer that tells `decision` on `request`. */
export function envoyAnswer(decision: EnvoyDecisionLike, request: ValidEnvoyRequest): EnvoyAnswer {
  const { code, statuses } = decision
  const dynamicMetadata = envoyMetadata(decision, request)
  return {
    overallCode: CODES[code],
    statuses: statuses.map(statusOf),
    ...(dynamicMetadata === undefined ? {} : { dynamicMetadata }),
  }
}

/**
 * What Envoy hands on to its next filters: the metadata of the rules that have room, and what was asked, in the form of
 * envoyproxy/ratelimit. Undefined when no rule has metadata.
 */
export function envoyMetadata(
  { metadata }: Pick<EnvoyDecisionLike, 'metadata'>,
  { domain, descriptors, hitsAddend = 0 }: ValidEnvoyRequest,
): Readonly<Record<string, unknown>> | undefined {
  if (metadata === undefined) return undefined
  return {
    domain,
    descriptors: descriptors.map(({ entries, hitsAddend: hits }) => ({
      entries: entries.map(({ key, value }) => `${key}=${value}`),
      ...(hits === undefined ? {} : { hitsAddend: hits }),
    })),
    ...(hitsAddend === 0 ? {} : { hitsAddend }),
    metadata,
  }
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
    ...(unit === undefined ? {} : { unit: unit.toUpperCase() as EnvoyUnit }),
    ...(name === '' ? {} : { name }),
  }
}

const ENVOY_CODES = ['OK', 'OVER_LIMIT'] as const

const ENVOY_CURRENT_LIMIT = answerSchema('EnvoyCurrentLimit', {
  description: 'A limit.',
  examples: [{ requestsPerUnit: 2, unit: 'MINUTE' }],
  required: {},
  optional: {
    unit: { description: 'Length of its window; absent when that is no unit.', enum: ENVOY_UNITS },
    requestsPerUnit: whole('Hits in each window; absent when it is 0.', 0, LARGEST_ENVOY_COUNT),
    name: words('Its name; absent when it has none.'),
  },
})
export interface EnvoyCurrentLimit extends Infer<typeof ENVOY_CURRENT_LIMIT> {}

const ENVOY_STATUS = answerSchema('EnvoyStatus', {
  description: 'How one descriptor stands.',
  examples: [
    { code: 'OK', currentLimit: ENVOY_CURRENT_LIMIT.example, limitRemaining: 1, durationUntilReset: '42s' },
    { code: 'OK' },
    { code: 'OK', limitRemaining: LARGEST_ENVOY_COUNT },
  ],
  required: { code: { description: 'Whether it is over its limit.', enum: ENVOY_CODES } },
  optional: {
    currentLimit: bodyOf<EnvoyCurrentLimit>(ENVOY_CURRENT_LIMIT, 'Its limit; absent when nothing was counted.'),
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
export interface EnvoyStatus extends Infer<typeof ENVOY_STATUS> {}

/** The answer to a denied request that examples show. */
export const OVER_LIMIT_EXAMPLE = {
  overallCode: 'OVER_LIMIT',
  statuses: [{ code: 'OVER_LIMIT', currentLimit: ENVOY_CURRENT_LIMIT.example, durationUntilReset: '42s' }],
} as const

export const ENVOY_ANSWER = answerSchema('EnvoyAnswer', {
  description:
    'An answer of the Envoy rate limit protocol (RateLimitResponse) as protobuf writes JSON, which leaves out what ' +
    'is 0 or empty.',
  examples: [{ overallCode: 'OK', statuses: [ENVOY_STATUS.example] }, OVER_LIMIT_EXAMPLE],
  required: {
    overallCode: { description: 'Whether the call may go on.', enum: ENVOY_CODES },
    statuses: listOf<EnvoyStatus>('One for each descriptor, in their order.', ENVOY_STATUS.ref),
  },
  optional: {
    dynamicMetadata: {
      description:
        'The metadata of the rules that have room as "metadata", with the domain and the descriptors of the request; ' +
        'absent when they have none.',
      type: 'object',
    },
  },
})
export interface EnvoyAnswer extends Infer<typeof ENVOY_ANSWER> {}
