import type { FieldProblem } from '../schema/body-parser.ts'
import type { NamedSchema } from '../schema/json-schema.ts'
import { answerSchema, choices } from '../schema/json-schema.ts'
import { flag, listOf, words } from '../schema/value-schemas.ts'
import type { ProblemCode, ProblemDocument, ReadinessCheck, ReadinessReason, ReadinessReasonCode } from './problem.ts'
import { PROBLEMS, problemDocument, READINESS_REASONS } from './problem.ts'

/** The answer of `GET /v1/ids`. */
export interface IdsAnswer {
  /** Unique ids, rising; texts, because they have more digits than the numbers of JavaScript. */
  readonly ids: readonly string[]
}

/** The answer of `GET /livez`. */
export interface LivenessAnswer {
  readonly status: 'ok'
}

/** The answer of `GET /readyz` when requests should be sent to the service. */
export interface ReadinessAnswer {
  /** `degraded`: it decides, but something is wrong; `reasons` says what. */
  readonly status: 'ready' | 'degraded'
  /** Empty when the status is `ready`. */
  readonly reasons: readonly ReadinessReason[]
  readonly checks: readonly ReadinessCheck[]
}

/** The schema of {@link IdsAnswer}. */
export const IDS_ANSWER: NamedSchema<IdsAnswer> = answerSchema('IdsAnswer', {
  description: 'Unique ids.',
  examples: [{ ids: ['1987654321098765432', '1987654321098765433'] }],
  required: {
    ids: listOf<string>('The ids, rising; texts, because they have more digits than many languages keep in a number.', {
      type: 'string',
      pattern: '^[0-9]{1,19}$',
    }),
  },
})

/** The schema of {@link LivenessAnswer}. */
export const LIVENESS_ANSWER: NamedSchema<LivenessAnswer> = answerSchema('LivenessAnswer', {
  description: 'The process answers.',
  examples: [{ status: 'ok' }],
  required: { status: { description: 'Always ok.', const: 'ok' } },
})

/** The schema of {@link ReadinessCheck}. */
const READINESS_CHECK: NamedSchema<ReadinessCheck> = answerSchema('ReadinessCheck', {
  description: 'One thing that the service needs to be ready.',
  examples: [{ name: 'redis', ready: false, detail: 'no connection for 12 s' }],
  required: {
    name: words('What it is, such as redis, database or config.'),
    ready: flag('Whether it is ready.'),
    detail: words('How it stands, in words.'),
  },
})

/** The schema of {@link ReadinessReason}. */
const READINESS_REASON: NamedSchema<ReadinessReason> = answerSchema('ReadinessReason', {
  description: 'Why the service is degraded or not ready.',
  examples: [
    {
      code: 'redis-unreachable',
      message:
        'Redis at redis://cache:6379 is unreachable. Failure mode "open" applies to rules that set none: every ' +
        'check is allowed. Check REDIS_URL and the server.',
    },
  ],
  required: {
    code: {
      description: 'Stable name of the reason.',
      enum: choices(...(Object.keys(READINESS_REASONS) as ReadinessReasonCode[])),
    },
    message: words('What is wrong and what to do.'),
  },
})

/** The schema of {@link ReadinessAnswer}. */
export const READINESS_ANSWER: NamedSchema<ReadinessAnswer> = answerSchema('ReadinessAnswer', {
  description: 'Requests should be sent to the service.',
  examples: [
    {
      status: 'ready',
      reasons: [],
      checks: [{ name: 'config', ready: true, detail: 'version 12 from database, confirmed 0.4 s ago' }],
    },
  ],
  required: {
    status: {
      description: 'ready, or degraded: the service decides, but something is wrong.',
      enum: choices('ready', 'degraded'),
    },
    reasons: listOf<ReadinessReason>('Why it is degraded; empty when it is ready.', READINESS_REASON.ref),
    checks: listOf<ReadinessCheck>('What was looked at.', READINESS_CHECK.ref),
  },
})

/** The schema of {@link FieldProblem}. */
const FIELD_PROBLEM: NamedSchema<FieldProblem> = answerSchema('FieldProblem', {
  description: 'One thing that is wrong with a request.',
  examples: [{ path: '/tokens', received: '-1', expected: 'a whole number from 0 to 1000000000' }],
  required: {
    path: words(
      'Where: a JSON Pointer into the body, such as /user; empty for the body itself; ? and the name for a parameter.',
    ),
    received: words('What is there, in words. The text of an identity or a key is never repeated.'),
    expected: words('What should be there.'),
  },
  optional: {
    line: {
      description: 'Line of the text that was sent, where it was a text of several lines.',
      type: 'integer',
      minimum: 1,
    },
  },
})

/** The schema of {@link ProblemDocument}. */
export const PROBLEM: NamedSchema<ProblemDocument> = answerSchema('Problem', {
  description: 'A problem document (RFC 9457).',
  examples: [
    problemDocument('SLUICE_HTTP_INVALID_REQUEST', {
      detail: 'One thing is wrong: /tokens. Nothing was done.',
      errors: [{ path: '/tokens', received: '-1', expected: 'a whole number from 0 to 1000000000' }],
    }),
  ],
  required: {
    type: words('Names the kind of problem; compare it as a whole. It is a name, not an address.'),
    title: words('The kind of problem, in words.'),
    status: { description: 'The HTTP status.', type: 'integer', minimum: 400, maximum: 599 },
    detail: words('What happened here, and what to do.'),
    code: {
      description: 'The same as type, in another form.',
      enum: choices(...(Object.keys(PROBLEMS) as ProblemCode[])),
    },
  },
  optional: {
    errors: listOf<FieldProblem>('Each thing that is wrong with what was sent.', FIELD_PROBLEM.ref),
    checks: listOf<ReadinessCheck>('What the service waits for, when it is not ready.', READINESS_CHECK.ref),
    reasons: listOf<ReadinessReason>('Why the service is not ready.', READINESS_REASON.ref),
  },
})
