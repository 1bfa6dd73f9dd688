import type { CheckRequest } from '../checks/check-request.ts'
import { CHECK_REQUEST } from '../checks/check-request.ts'
import type { Infer } from '../schema/json-schema.ts'
import { answerSchema } from '../schema/json-schema.ts'
import { bodyOf, count, flag, instant, listOf, pageSchema, texts, words } from '../schema/value-schemas.ts'
import type { Explanation } from './explain-and-audit-bodies.ts'
import { EXPLANATION } from './explain-and-audit-bodies.ts'

const DECISION_RECORD = answerSchema('DecisionRecord', {
  description: 'One decision of the recent past, from a sample in which denials are preferred.',
  examples: [
    {
      id: '1987654321098765432',
      at: 1_762_337_100_000,
      node: 'k3Jd82nWq0Zx',
      allowed: false,
      resource: '/api/v1/data',
      method: 'POST',
      rule: '/api/v1/data@user',
      dimension: 'user',
      caller: 'user-123',
      reason: 'limit',
      limit: 1000,
      remaining: 0,
      retryAfterMs: 45_000,
      tokens: 1,
      version: 12,
      durationMs: 0.4,
      request: { user: 'user-123', resource: '/api/v1/data', method: 'POST' },
      hidden: [],
    },
  ],
  required: {
    id: words('Id of the decision, as in the answer of the check; one of its own where that had none.'),
    at: instant('When it was decided.'),
    node: words('Id of the node that decided.'),
    allowed: flag('Whether the call was allowed.'),
    resource: words('What was called.'),
    dimension: words('The dimension that decided; empty when no rule applied.'),
    tokens: count('Tokens asked for.'),
    version: count('Number of the rule set that decided.'),
    durationMs: { description: 'How long it took, in milliseconds.', type: 'number', minimum: 0 },
    request: bodyOf<CheckRequest>(CHECK_REQUEST, 'The call, without what "hidden" names.'),
    hidden: texts('Identities of the call that are secrets, such as apiKey: they are not shown.'),
  },
  optional: {
    method: words('Its HTTP method.'),
    rule: words('Name of the rule that decided; absent when none applied.'),
    caller: words('Who was counted in that dimension; a digest for an API key.'),
    reason: words('Why it was denied, as in the answer of the check; absent when it was allowed.'),
    limit: count('Units of the limit that decided.'),
    remaining: count('Whole units left under it.'),
    retryAfterMs: count('Milliseconds after which it is worth trying again.'),
    region: words('Where the call came from.'),
    failure: words('Why it was decided without the store; absent when it was not.'),
  },
})
export interface DecisionRecord extends Infer<typeof DECISION_RECORD> {}

export const DECISION_PAGE = pageSchema<DecisionRecord>('DecisionPage', DECISION_RECORD)

export const DECISION_EXPLANATION = answerSchema('DecisionExplanation', {
  description: 'A decision of the recent past, and how the same call is decided now.',
  examples: [{ decision: DECISION_RECORD.example, explanation: EXPLANATION.example, unknown: [] }],
  required: {
    decision: bodyOf<DecisionRecord>(DECISION_RECORD, 'The decision as it was made.'),
    explanation: bodyOf<Explanation>(EXPLANATION, 'Every rule considered for the same call, and its counters now.'),
    unknown: texts(
      'Identities that the call had and this node does not know, because secrets do not leave the node that decided; ' +
        'rules that count them are not explained.',
    ),
  },
})
export interface DecisionExplanation extends Infer<typeof DECISION_EXPLANATION> {}

export const DECISION_UPDATE = answerSchema('DecisionUpdate', {
  description: 'Decisions since the last event, oldest first.',
  examples: [{ decisions: [DECISION_RECORD.example], skipped: 120 }],
  required: {
    decisions: listOf<DecisionRecord>('A sample of at most 50; denials first choice.', DECISION_RECORD.ref),
    skipped: count('Decisions of the sample that match the filter and are left out.'),
  },
})
export interface DecisionUpdate extends Infer<typeof DECISION_UPDATE> {}
