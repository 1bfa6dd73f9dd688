import type { Infer } from '../schema/json-schema.ts'
import { answerSchema } from '../schema/json-schema.ts'
import type { FieldProblem } from '../schema/value-schemas.ts'
import { FIELD_PROBLEM, flag, listOf, words } from '../schema/value-schemas.ts'
import type { ProblemCode, ReadinessReasonCode } from './problem.ts'
import { PROBLEMS, READINESS_REASONS } from './problem.ts'

export const IDS_ANSWER = answerSchema('IdsAnswer', {
  description: 'Unique ids.',
  examples: [{ ids: ['1987654321098765432', '1987654321098765433'] }],
  required: {
    ids: {
      description: 'The ids, rising; strings, because they have more digits than many languages keep in a number.',
      type: 'array',
      items: { type: 'string', pattern: '^[0-9]{1,19}$' },
    },
  },
})
export interface IdsAnswer extends Infer<typeof IDS_ANSWER> {}

export const LIVENESS_ANSWER = answerSchema('LivenessAnswer', {
  description: 'The process answers.',
  examples: [{ status: 'ok' }],
  required: { status: { description: 'Always ok.', const: 'ok' } },
})
export interface LivenessAnswer extends Infer<typeof LIVENESS_ANSWER> {}

const READINESS_CHECK = answerSchema('ReadinessCheck', {
  description: 'One thing that the service needs to be ready.',
  examples: [{ name: 'redis', ready: false, detail: 'no connection for 12 s' }],
  required: {
    name: words('What it is, such as redis, database or config.'),
    ready: flag('Whether it is ready.'),
    detail: words('How it stands, in words.'),
  },
})
export interface ReadinessCheck extends Infer<typeof READINESS_CHECK> {}

const READINESS_REASON = answerSchema('ReadinessReason', {
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
      enum: Object.keys(READINESS_REASONS) as ReadinessReasonCode[],
    },
    message: words('What is wrong and what to do.'),
  },
})
export interface ReadinessReason extends Infer<typeof READINESS_REASON> {}

export const READINESS_ANSWER = answerSchema('ReadinessAnswer', {
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
      enum: ['ready', 'degraded'],
    },
    reasons: listOf<ReadinessReason>('Why it is degraded; empty when it is ready.', READINESS_REASON.ref),
    checks: listOf<ReadinessCheck>('What was looked at.', READINESS_CHECK.ref),
  },
})
export interface ReadinessAnswer extends Infer<typeof READINESS_ANSWER> {}

export const PROBLEM = answerSchema('Problem', {
  description: 'A problem document (RFC 9457).',
  examples: [
    {
      type: 'urn:sluice:problem:invalid-request',
      title: PROBLEMS.SLUICE_HTTP_INVALID_REQUEST.title,
      status: 400,
      detail: 'One thing is wrong: /tokens. Nothing was done.',
      code: 'SLUICE_HTTP_INVALID_REQUEST',
      errors: [FIELD_PROBLEM.example],
    },
  ],
  required: {
    type: words('Names the kind of problem; compare it as a whole. It is a name, not an address.'),
    title: words('The kind of problem, in words.'),
    status: { description: 'The HTTP status.', type: 'integer', minimum: 400, maximum: 599 },
    detail: words('What happened here, and what to do.'),
    code: {
      description: 'The same as type, in another form.',
      enum: Object.keys(PROBLEMS) as ProblemCode[],
    },
  },
  optional: {
    errors: listOf<FieldProblem>('Each thing that is wrong with what was sent.', FIELD_PROBLEM.ref),
    checks: listOf<ReadinessCheck>('What the service waits for, when it is not ready.', READINESS_CHECK.ref),
    reasons: listOf<ReadinessReason>('Why the service is not ready.', READINESS_REASON.ref),
  },
})
export interface ProblemDocument extends Infer<typeof PROBLEM> {}
