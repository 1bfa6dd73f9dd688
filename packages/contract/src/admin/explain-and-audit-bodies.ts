import { CHECK_ANSWER } from '../checks/check-answer-schema.ts'
import type { Infer } from '../schema/json-schema.ts'
import { answerSchema } from '../schema/json-schema.ts'
import { count, instant, listOf, pageSchema, texts, words } from '../schema/value-schemas.ts'
import { BLOCK } from './rule-set-types.ts'
import type { Counter } from './usage-bodies.ts'
import { COUNTER } from './usage-bodies.ts'

const LIMIT_STEP = answerSchema('LimitStep', {
  description: 'One step on the way from what a rule says to the limit that holds.',
  examples: [{ source: 'rule', change: '"/api/v1/data@user" says so', limit: 1000 }],
  required: {
    source: {
      description: 'Where it comes from.',
      enum: ['rule', 'override', 'region', 'schedule', 'tier', 'incident', 'error-rate'],
    },
    change: words('What it does, in words.'),
    limit: {
      description: 'The limit after it, of the first window; off when nothing limits.',
      anyOf: [{ type: 'integer', minimum: 0 }, { const: 'off' }],
    },
  },
})
export interface LimitStep extends Infer<typeof LIMIT_STEP> {}

const RULE_EXPLANATION = answerSchema('RuleExplanation', {
  description: 'What a rule means for a request.',
  examples: [
    {
      rule: '/api/v1/data@user',
      resource: '/api/v1/data',
      dimension: 'user',
      origin: 'rules',
      fate: 'applies',
      why: '/api/v1/data matches, any method',
      entity: 'user-123',
      steps: [LIMIT_STEP.example],
      counters: [COUNTER.example],
    },
  ],
  required: {
    rule: words('Name of the rule.'),
    resource: words('The resource of the rule.'),
    dimension: words('Who it counts.'),
    origin: words('The part of the rule set it stands in.'),
    fate: {
      description:
        'applies: it is decided. shadow: it is measured only. replaced: another rule that is enforced for the ' +
        'caller, more specific or of its tier, stands in its place. no-match: resource or method is another. ' +
        'no-identity: the request has no value for the dimension. off: it does not limit this caller. disabled: it ' +
        'is switched off.',
      enum: ['applies', 'shadow', 'replaced', 'no-match', 'no-identity', 'off', 'disabled'],
    },
    why: words('Why, in words.'),
    steps: listOf<LimitStep>('How its limit comes about.', LIMIT_STEP.ref),
    counters: listOf<Counter>('How its counters stand, one for each window.', COUNTER.ref),
  },
  optional: {
    methods: texts('The HTTP methods it is for; all when absent.'),
    entity: words('Who it counts here; absent when it does not apply.'),
  },
})
export interface RuleExplanation extends Infer<typeof RULE_EXPLANATION> {}

const EXPLAINED_TIER = answerSchema('ExplainedTier', {
  description: 'The tier of a caller.',
  examples: [{ name: 'premium', from: 'tenant acme' }],
  required: { name: words('Name of the tier.'), from: words('Where it is known from.') },
})

export const EXPLANATION = answerSchema('Explanation', {
  description: 'Everything that bears on the decision of a request.',
  examples: [
    { version: 12, readings: ['/api/v1/data'], rules: [RULE_EXPLANATION.example], decision: CHECK_ANSWER.example },
  ],
  required: {
    version: count('Number of the rule set that decides.'),
    readings: texts('How the resource was read; more than one where servers differ.'),
    rules: listOf<RuleExplanation>('Every rule considered, those that apply first.', RULE_EXPLANATION.ref),
    decision: { ...CHECK_ANSWER.ref, description: 'What a check would answer now.' },
  },
  optional: {
    denied: words('Name of the entry of the deny list that matches.'),
    block: { ...BLOCK, description: 'The block that holds.' },
    exemption: words('Name of the exemption that matches.'),
    tier: EXPLAINED_TIER.ref,
  },
})
export interface Explanation extends Infer<typeof EXPLANATION> {}

const AUDIT_RECORD = answerSchema('AuditRecord', {
  description: 'Something that was done.',
  examples: [
    {
      number: 4711,
      at: 1_762_337_100_000,
      by: 'deploy',
      keyId: 'slk_3DBmkKOLiL8D',
      note: 'lower limit for exports',
      action: 'version.stage',
      target: 'version 13',
      before: { stage: 'draft' },
      after: { stage: 'shadow' },
    },
  ],
  required: {
    number: count('Rises with every record.'),
    at: instant('When.'),
    by: words('Name of the API key that did it. Several keys may have this name.'),
    action: words('What was done, such as override.put, version.stage or api-key.revoke.'),
    target: words('What it was done to. A value that could be misread is quoted as in JSON.'),
  },
  optional: {
    keyId: words(
      'Id of the API key that did it; absent for what the service did itself, and in records of older versions.',
    ),
    details: {
      description:
        'What exactly was touched, without secrets. For counters.reset: the caller, and the counters that were ' +
        'reset with rule, resource, dimension and entity, at most 100 of them, and counterCount, how many there ' +
        'were.',
    },
    note: words('Why, in the words of who did it.'),
    before: { description: 'What was there, without secrets; absent where nothing was.' },
    after: { description: 'What is there since, without secrets; absent where nothing is.' },
  },
})
export interface AuditRecord extends Infer<typeof AUDIT_RECORD> {}

export const AUDIT_PAGE = pageSchema<AuditRecord>('AuditPage', AUDIT_RECORD)
