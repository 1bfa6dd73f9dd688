import { CHECK_PROPERTIES } from '../checks/check-schemas.ts'
import type { NamedSchema } from '../schema/json-schema.ts'
import { answerSchema, requestSchema } from '../schema/json-schema.ts'
import { count, listOf, NOTE, RESOURCE, words } from '../schema/value-schemas.ts'
import type { ResourceRule } from './rule-set-types.ts'
import { RESOURCE_RULE } from './rule-set-types.ts'
import type { ResetRequest } from './usage-bodies.ts'

/** The body that puts all rules of one resource. */
export interface RateLimitsRequest {
  readonly resource: string
  readonly rules: readonly ResourceRule[]
  /** Why, for the audit log. */
  readonly note?: string
}

/** The rules of one resource. */
export interface RateLimits {
  readonly resource: string
  readonly rules: readonly ResourceRule[]
}

/** The rules of one resource, after a change. */
export interface RateLimitsAnswer extends RateLimits {
  /** Number of the version that the change made. */
  readonly version: number
  /** The rules that the resource had before; absent where it had none. */
  readonly replaced?: readonly ResourceRule[]
}

/** A page of resources and their rules. */
export interface RateLimitsPage {
  readonly items: readonly RateLimits[]
  readonly next?: string
  /** Number of the version they are from; 0 when none is enforced. */
  readonly version: number
}

/** How one counter stands. */
export interface Counter {
  readonly limit: number
  /** Whole units in use; null when the store did not answer. */
  readonly used: number | null
  /** Whole units left now; a burst may make them more or fewer than the limit. Null when the store did not answer. */
  readonly remaining: number | null
  /** When the full limit is there again if nothing more is taken: as in {@link CheckAnswer}. Null when the store did not answer. */
  readonly resetAt: string | null
  /** Until when the caller is blocked under the rule, in the same form. Null when it is not. */
  readonly blockedUntil: string | null
}

/** What one rule has counted for one caller. */
export interface Usage {
  readonly rule: string
  readonly resource: string
  readonly dimension: string
  readonly entity: string
  /** One for each window of the rule. */
  readonly counters: readonly Counter[]
}

/** What was counted for the callers asked for. */
export interface UsageAnswer {
  readonly version: number
  readonly usage: readonly Usage[]
}

/** What a reset did. */
export interface ResetAnswer {
  /** Rules whose counters start anew for these callers; 0 when no rule counts them. */
  readonly count: number
}

const RULES: readonly [ResourceRule, ...ResourceRule[]] = [
  { dimension: 'user', limit: 1000, window: '1m' },
  { dimension: 'apiKey', limit: 10_000, window: '1h' },
  { dimension: 'ip', limit: 100, window: '1s' },
]

const COUNTER_EXAMPLE: Counter = {
  limit: 1000,
  used: 477,
  remaining: 523,
  resetAt: '2025-11-05T10:05:00Z',
  blockedUntil: null,
}

const RULES_LIST = listOf<ResourceRule>('Who may do how much, one rule for each dimension or method.', RESOURCE_RULE)

/** The schema of {@link RateLimitsRequest}. */
export const RATE_LIMITS_REQUEST: NamedSchema<RateLimitsRequest> = requestSchema('RateLimitsRequest', {
  description: 'All rules of one resource.',
  examples: [{ resource: '/api/v1/data', rules: RULES }],
  required: { resource: RESOURCE, rules: { ...RULES_LIST, minItems: 1, maxItems: 1000 } },
  optional: { note: NOTE },
})

/** The schema of {@link RateLimits}. */
export const RATE_LIMITS: NamedSchema<RateLimits> = answerSchema('RateLimits', {
  description: 'The rules of one resource.',
  examples: [{ resource: '/api/v1/data', rules: RULES }],
  required: { resource: RESOURCE, rules: RULES_LIST },
})

/** The schema of {@link RateLimitsAnswer}. */
export const RATE_LIMITS_ANSWER: NamedSchema<RateLimitsAnswer> = answerSchema('RateLimitsAnswer', {
  description: 'The rules of one resource, after a change.',
  examples: [{ resource: '/api/v1/data', rules: RULES, version: 13 }],
  required: { resource: RESOURCE, rules: RULES_LIST, version: count('Number of the version that the change made.') },
  optional: {
    replaced: listOf<ResourceRule>('The rules that the resource had before; absent where it had none.', RESOURCE_RULE),
  },
})

/** The schema of {@link RateLimitsPage}. */
export const RATE_LIMITS_PAGE: NamedSchema<RateLimitsPage> = answerSchema('RateLimitsPage', {
  description: 'Resources and their rules.',
  examples: [{ items: [{ resource: '/api/v1/data', rules: RULES }], version: 13 }],
  required: {
    items: listOf<RateLimits>('The resources of this page.', RATE_LIMITS.ref),
    version: count('Number of the version they are from; 0 when none is enforced.'),
  },
  optional: { next: words('Give it back as "after" for the next page; absent on the last.') },
})

/** The schema of {@link Counter}. */
export const COUNTER: NamedSchema<Counter> = answerSchema('Counter', {
  description: 'How one counter stands.',
  examples: [COUNTER_EXAMPLE],
  required: {
    limit: count('Units announced to callers as the limit.'),
    used: {
      description: 'Whole units in use. Null when the store did not answer.',
      type: ['integer', 'null'],
      minimum: 0,
    },
    remaining: {
      description:
        'Whole units left now; a burst may make them more or fewer than the limit. Null when the store did not answer.',
      type: ['integer', 'null'],
      minimum: 0,
    },
    resetAt: {
      description:
        'When the full limit is there again if nothing more is taken, in whole seconds rounded up. Null when the store did not answer.',
      type: ['string', 'null'],
    },
    blockedUntil: {
      description: 'Until when the caller is blocked under the rule, in the same form. Null when it is not.',
      type: ['string', 'null'],
    },
  },
})

/** The schema of {@link Usage}. */
export const USAGE: NamedSchema<Usage> = answerSchema('Usage', {
  description: 'What one rule has counted for one caller.',
  examples: [
    {
      rule: '/api/v1/data@user',
      resource: '/api/v1/data',
      dimension: 'user',
      entity: 'user-123',
      counters: [COUNTER_EXAMPLE],
    },
  ],
  required: {
    rule: words('Name of the rule.'),
    resource: words('The resource of the rule.'),
    dimension: words('Who it counts.'),
    entity: words('The caller.'),
    counters: listOf<Counter>('One for each window of the rule.', COUNTER.ref),
  },
})

/** The schema of {@link UsageAnswer}. */
export const USAGE_ANSWER: NamedSchema<UsageAnswer> = answerSchema('UsageAnswer', {
  description: 'What was counted for the callers asked for.',
  examples: [
    {
      version: 12,
      usage: [
        {
          rule: '/api/v1/data@user',
          resource: '/api/v1/data',
          dimension: 'user',
          entity: 'user-123',
          counters: [COUNTER_EXAMPLE],
        },
      ],
    },
  ],
  required: {
    version: count('Number of the rule set by which it was looked up.'),
    usage: listOf<Usage>('One for each rule and caller.', USAGE.ref),
  },
})

const { user, apiKey, ip, tenant, service, userId, clientIp, tenantId, descriptors } = CHECK_PROPERTIES.optional

/** The schema of {@link ResetRequest}. */
export const RESET_REQUEST: NamedSchema<ResetRequest> = requestSchema('ResetRequest', {
  description:
    'Whose counters start anew: of the rules that the resource matches, or of all without one. At least one part.',
  examples: [{ user: 'user-123', resource: '/api/v1/data', note: 'import of last night' }],
  required: {},
  optional: {
    user,
    apiKey,
    ip,
    tenant,
    service,
    userId,
    clientIp,
    tenantId,
    descriptors,
    resource: CHECK_PROPERTIES.required.resource,
    note: NOTE,
  },
})

/** The schema of {@link ResetAnswer}. */
export const RESET_ANSWER: NamedSchema<ResetAnswer> = answerSchema('ResetAnswer', {
  description: 'What a reset did.',
  examples: [{ count: 1 }],
  required: { count: count('Rules whose counters start anew for these callers; 0 when no rule counts them.') },
})
