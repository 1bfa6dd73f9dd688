import type { NamedSchema, Reference } from '../schema/json-schema.ts'
import { answerSchema, requestSchema } from '../schema/json-schema.ts'
import { count, listOf, NOTE, RESOURCE, words } from '../schema/value-schemas.ts'
import type { DenyEntry, Exemption, ResourceRule, Tier } from './rule-set-types.ts'
import { DENY_ENTRY, EXEMPTION, RESOURCE_RULE, TIER } from './rule-set-types.ts'

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

const RULES: readonly [ResourceRule, ...ResourceRule[]] = [
  { dimension: 'user', limit: 1000, window: '1m' },
  { dimension: 'apiKey', limit: 10_000, window: '1h' },
  { dimension: 'ip', limit: 100, window: '1s' },
]

const RULES_LIST = listOf<ResourceRule>('Who may do how much, one rule for each dimension or method.', RESOURCE_RULE)

/** The schema of {@link RateLimitsRequest}. */
export const RATE_LIMITS_REQUEST: NamedSchema<RateLimitsRequest> = requestSchema('RateLimitsRequest', {
  description: 'All rules of one resource.',
  examples: [{ resource: '/api/v1/data', rules: RULES }],
  required: { resource: RESOURCE, rules: { ...RULES_LIST, minItems: 1, maxItems: 1000 } },
  optional: { note: NOTE },
})

/** The schema of {@link RateLimits}. */
const RATE_LIMITS: NamedSchema<RateLimits> = answerSchema('RateLimits', {
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

/** A named part of the enforced rule set, after a change. */
export interface PartAnswer<P> {
  readonly entry: P
  /** Number of the version that the change made. */
  readonly version: number
  /** What had its name before; absent where nothing had. */
  readonly replaced?: P
}

/** A page of named parts of the enforced rule set. */
export interface PartPage<P> {
  readonly items: readonly P[]
  readonly next?: string
  /** Number of the version they are from; 0 when none is enforced. */
  readonly version: number
}

const TIER_EXAMPLE: Tier = { name: 'premium', multiplier: 10, burst: 100 }
const EXEMPTION_EXAMPLE: Exemption = { name: 'health', match: { resource: '/health' } }
const DENY_EXAMPLE: DenyEntry = { name: 'scrapers', match: { cidrs: ['192.0.2.0/24'] } }

/** The schemas of single parts, and of pages of them. */
export const TIER_ANSWER: NamedSchema<PartAnswer<Tier>> = partSchema('TierAnswer', TIER, TIER_EXAMPLE)
export const TIER_PAGE: NamedSchema<PartPage<Tier>> = partPage('TierPage', TIER, TIER_EXAMPLE)
export const EXEMPTION_ANSWER: NamedSchema<PartAnswer<Exemption>> = partSchema(
  'ExemptionAnswer',
  EXEMPTION,
  EXEMPTION_EXAMPLE,
)
export const EXEMPTION_PAGE: NamedSchema<PartPage<Exemption>> = partPage('ExemptionPage', EXEMPTION, EXEMPTION_EXAMPLE)
export const DENY_ANSWER: NamedSchema<PartAnswer<DenyEntry>> = partSchema('DenyAnswer', DENY_ENTRY, DENY_EXAMPLE)
export const DENY_PAGE: NamedSchema<PartPage<DenyEntry>> = partPage('DenyPage', DENY_ENTRY, DENY_EXAMPLE)

function partSchema<P>(name: string, entry: Reference<P>, example: NoInfer<P>): NamedSchema<PartAnswer<P>> {
  return answerSchema<PartAnswer<P>>(name, {
    description: 'A part of the enforced rule set, after a change.',
    examples: [{ entry: example, version: 13 }],
    required: { entry, version: count('Number of the version that the change made.') },
    optional: { replaced: { ...entry, description: 'What had its name before; absent where nothing had.' } },
  })
}

function partPage<P>(name: string, entry: Reference<P>, example: NoInfer<P>): NamedSchema<PartPage<P>> {
  return answerSchema<PartPage<P>>(name, {
    description: 'Parts of the enforced rule set, in the order in which they count.',
    examples: [{ items: [example], version: 13 }],
    required: {
      items: listOf('What is on this page.', entry),
      version: count('Number of the version they are from; 0 when none is enforced.'),
    },
    optional: { next: words('Give it back as "after" for the next page; absent on the last.') },
  })
}
