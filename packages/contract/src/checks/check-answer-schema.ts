import type { Infer, JsonSchema, TypedSchema, ValueOf } from '../schema/json-schema.ts'
import { answerSchema } from '../schema/json-schema.ts'
import { bodyOf, count, flag, listOf, words } from '../schema/value-schemas.ts'

// Apart from check-answer.ts: middleware imports that file, and its bundles must not hold schemas.

const FAILURE = answerSchema('Failure', {
  description: 'Says that a decision was made without the store, and why.',
  examples: [{ mode: 'local', cause: 'unreachable', charged: 'no' }],
  required: {
    mode: {
      description: 'How it was decided instead: all allowed, all denied, or by this node with its share of the limit.',
      enum: ['open', 'closed', 'local'],
    },
    cause: {
      description: 'No answer in time; no connection; an error; or not asked, because it failed so often just before.',
      enum: ['deadline', 'unreachable', 'refused', 'breaker'],
    },
    charged: {
      description: 'Whether the store may have charged the call all the same.',
      enum: ['no', 'unknown'],
    },
  },
})
export interface FailureLike extends Infer<typeof FAILURE> {}

/** A property that may also be undefined: in memory all answers have the same properties. JSON leaves undefined out. */
function orUndefined<const S extends JsonSchema>(schema: S): TypedSchema<ValueOf<S> | undefined> {
  return schema as unknown as TypedSchema<ValueOf<S> | undefined>
}

/** The schemas of the fields of an answer, for answers that hold more than these. */
export const CHECK_ANSWER_PROPERTIES = {
  required: {
    allowed: flag('Whether the call may go on.'),
    reason: {
      description:
        'Allowed: allowed, exempt (no rule holds for it), unlimited (no rule applies to it). Denied: limit (come ' +
        'back after retryAfter), never (the tokens can never fit), blocked, denied (on the deny list), unavailable ' +
        '(the store could not be asked).',
      enum: ['allowed', 'exempt', 'unlimited', 'limit', 'never', 'blocked', 'denied', 'unavailable'],
    },
    limit: {
      description: 'Tokens of the limit that decided; null when nothing limits the call.',
      type: ['integer', 'null'],
      minimum: 0,
    },
    remaining: {
      description:
        'Whole tokens left under it. Null when nothing limits the call (limit is null too), and when it is ' +
        'unknown: the store did not answer, and the call was allowed without it (failure is set).',
      type: ['integer', 'null'],
      minimum: 0,
    },
    resetAt: {
      description:
        'When the full limit is there again if nothing more is taken: an RFC 3339 instant in UTC, in whole seconds ' +
        'rounded up. Null when remaining is null, and when there is no such instant.',
      type: ['string', 'null'],
      pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$',
    },
    retryAfter: {
      description:
        'Whole seconds, rounded up, after which the same call would be allowed. Null when it is allowed, and when ' +
        'waiting does not help.',
      type: ['integer', 'null'],
      minimum: 0,
    },
    dimension: words('Who was counted by the limit that decided; empty when there is none.'),
    rule: words(
      'Name of the rule that decided, or of the entry of the deny list or exemption; empty when there is none.',
    ),
  },
  optional: {
    decisionId: orUndefined(words('Names this decision in logs and in later calls about it.')),
    version: orUndefined(count('Number of the rule set that decided.')),
    delayMs: orUndefined({
      description: 'Milliseconds that an admitted call must wait for its turn.',
      type: 'number',
      exclusiveMinimum: 0,
    }),
    failure: orUndefined(
      bodyOf<FailureLike>(FAILURE, 'Set when the store could not be asked and this was decided without it.'),
    ),
  },
} as const

/** The answer to an allowed check that examples show. */
export const ALLOWED_EXAMPLE = {
  allowed: true,
  reason: 'allowed',
  limit: 1000,
  remaining: 523,
  resetAt: '2025-11-05T10:05:00Z',
  retryAfter: null,
  dimension: 'user',
  rule: '/api/v1/data@user',
  decisionId: '1987654321098765432',
  version: 12,
} as const

/** The answer to a denied check that examples show. */
export const DENIED_EXAMPLE = {
  allowed: false,
  reason: 'limit',
  limit: 1000,
  remaining: 0,
  resetAt: '2025-11-05T10:05:00Z',
  retryAfter: 45,
  dimension: 'user',
  rule: '/api/v1/data@user',
  decisionId: '1987654321098765433',
  version: 12,
} as const

export const CHECK_ANSWER = answerSchema('CheckAnswer', {
  description: 'Whether the call may go on, and if not, why and until when.',
  examples: [ALLOWED_EXAMPLE, DENIED_EXAMPLE],
  ...CHECK_ANSWER_PROPERTIES,
})
export interface CheckAnswer extends Infer<typeof CHECK_ANSWER> {}

/** Why a request was let through or not. */
export type DecisionReason = CheckAnswer['reason']

export const BATCH_ANSWER = answerSchema('BatchAnswer', {
  description: 'One answer for each check, in their order.',
  examples: [{ answers: [ALLOWED_EXAMPLE, DENIED_EXAMPLE] }],
  required: { answers: listOf<CheckAnswer>('The answers.', CHECK_ANSWER.ref) },
})
export interface BatchAnswer extends Infer<typeof BATCH_ANSWER> {}
