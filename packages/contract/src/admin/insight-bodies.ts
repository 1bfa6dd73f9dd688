import type { CheckAnswer } from '../checks/check-answer.ts'
import { ALLOWED_EXAMPLE, CHECK_ANSWER } from '../checks/check-answer-schema.ts'
import type { NamedSchema } from '../schema/json-schema.ts'
import { answerSchema, choices } from '../schema/json-schema.ts'
import type { Page } from '../schema/value-schemas.ts'
import { count, instant, listOf, pageSchema, words } from '../schema/value-schemas.ts'
import type { Block } from './rule-set-types.ts'
import { BLOCK } from './rule-set-types.ts'
import type { Counter } from './usage-bodies.ts'
import { COUNTER } from './usage-bodies.ts'

/** One step on the way from what a rule says to the limit that holds. */
export interface LimitStep {
  readonly source: 'rule' | 'override' | 'region' | 'schedule' | 'tier' | 'incident' | 'error-rate'
  /** What it does, in words. */
  readonly change: string
  /** The limit after it, of the first window; `off` when nothing limits. */
  readonly limit: number | 'off'
}

/** What a rule means for a request. */
export interface RuleExplanation {
  readonly rule: string
  readonly resource: string
  readonly methods?: readonly string[]
  readonly dimension: string
  /** The part of the rule set it stands in: `rules`, or the name of a tier or exemption. */
  readonly origin: string
  /**
   * `applies`: it is decided. `shadow`: it is measured only. `replaced`: another rule that is enforced for the caller,
   * more specific or of its tier, stands in its place. `no-match`: resource or method is another. `nobody`: the request
   * does not say who it counts. `off`: it does not limit this caller. `disabled`: it is switched off.
   */
  readonly fate: 'applies' | 'shadow' | 'replaced' | 'no-match' | 'no-identity' | 'off' | 'disabled'
  readonly why: string
  /** Who it counts; absent when it does not apply. */
  readonly entity?: string
  readonly steps: readonly LimitStep[]
  /** How its counters stand, one for each window; empty when it does not apply. */
  readonly counters: readonly Counter[]
}

/** The tier of a caller. */
export interface ExplainedTier {
  readonly name: string
  /** Where it is known from. */
  readonly from: string
}

/** Everything that bears on the decision of a request. */
export interface Explanation {
  readonly version: number
  /** How the resource was read; more than one where servers differ. */
  readonly readings: readonly string[]
  /** Name of the entry of the deny list that matches. */
  readonly denied?: string
  readonly block?: Block
  /** Name of the exemption that matches. */
  readonly exemption?: string
  readonly tier?: ExplainedTier
  /** Every rule considered, those that apply first. */
  readonly rules: readonly RuleExplanation[]
  /** What a check would answer now. */
  readonly decision: CheckAnswer
}

const STEP_EXAMPLE: LimitStep = { source: 'rule', change: '"/api/v1/data@user" says so', limit: 1000 }

const RULE_EXAMPLE: RuleExplanation = {
  rule: '/api/v1/data@user',
  resource: '/api/v1/data',
  dimension: 'user',
  origin: 'rules',
  fate: 'applies',
  why: '/api/v1/data matches, any method',
  entity: 'user-123',
  steps: [STEP_EXAMPLE],
  counters: [{ limit: 1000, used: 477, remaining: 523, resetAt: '2025-11-05T10:05:00Z', blockedUntil: null }],
}

/** The schema of {@link LimitStep}. */
const LIMIT_STEP: NamedSchema<LimitStep> = answerSchema('LimitStep', {
  description: 'One step on the way from what a rule says to the limit that holds.',
  examples: [STEP_EXAMPLE],
  required: {
    source: {
      description: 'Where it comes from.',
      enum: choices('rule', 'override', 'region', 'schedule', 'tier', 'incident', 'error-rate'),
    },
    change: words('What it does, in words.'),
    limit: {
      description: 'The limit after it, of the first window; off when nothing limits.',
      anyOf: [{ type: 'integer', minimum: 0 }, { const: 'off' }],
    },
  },
})

/** The schema of {@link RuleExplanation}. */
const RULE_EXPLANATION: NamedSchema<RuleExplanation> = answerSchema('RuleExplanation', {
  description: 'What a rule means for a request.',
  examples: [RULE_EXAMPLE],
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
      enum: choices('applies', 'shadow', 'replaced', 'no-match', 'no-identity', 'off', 'disabled'),
    },
    why: words('Why, in words.'),
    steps: listOf<LimitStep>('How its limit comes about.', LIMIT_STEP.ref),
    counters: listOf<Counter>('How its counters stand, one for each window.', COUNTER.ref),
  },
  optional: {
    methods: listOf<string>('The HTTP methods it is for; all when absent.', { type: 'string' }),
    entity: words('Who it counts here; absent when it does not apply.'),
  },
})

/** The schema of {@link ExplainedTier}. */
const EXPLAINED_TIER: NamedSchema<ExplainedTier> = answerSchema('ExplainedTier', {
  description: 'The tier of a caller.',
  examples: [{ name: 'premium', from: 'tenant acme' }],
  required: { name: words('Name of the tier.'), from: words('Where it is known from.') },
})

/** The schema of {@link Explanation}. */
export const EXPLANATION: NamedSchema<Explanation> = answerSchema('Explanation', {
  description: 'Everything that bears on the decision of a request.',
  examples: [{ version: 12, readings: ['/api/v1/data'], rules: [RULE_EXAMPLE], decision: ALLOWED_EXAMPLE }],
  required: {
    version: count('Number of the rule set that decides.'),
    readings: listOf<string>('How the resource was read; more than one where servers differ.', { type: 'string' }),
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

/** Something that was done. */
export interface AuditRecord {
  /** Rises with every record. */
  readonly number: number
  /** Milliseconds since 1970. */
  readonly at: number
  readonly by: string
  /** The id of the API key it was done with; absent for what the service did itself. */
  readonly keyId?: string
  readonly note?: string
  /** Such as `override.put`. */
  readonly action: string
  /** What it was done to, such as `user:u1 /orders`. */
  readonly target: string
  /** What exactly was touched, without secrets; absent where `before` and `after` say it. */
  readonly details?: unknown
  /** What was there, without secrets; absent where nothing was. */
  readonly before?: unknown
  /** What is there since, without secrets; absent where nothing is. */
  readonly after?: unknown
}

const EXAMPLE: AuditRecord = {
  number: 4711,
  at: 1_762_337_100_000,
  by: 'deploy',
  keyId: 'slk_3DBmkKOLiL8D',
  note: 'lower limit for exports',
  action: 'version.stage',
  target: 'version 13',
  before: { stage: 'draft' },
  after: { stage: 'shadow' },
}

/** The schema of {@link AuditRecord}. */
const AUDIT_RECORD: NamedSchema<AuditRecord> = answerSchema('AuditRecord', {
  description: 'Something that was done.',
  examples: [EXAMPLE],
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

/** The schema of a page of {@link AuditRecord}. */
export const AUDIT_PAGE: NamedSchema<Page<AuditRecord>> = pageSchema('AuditPage', AUDIT_RECORD.ref, EXAMPLE)
