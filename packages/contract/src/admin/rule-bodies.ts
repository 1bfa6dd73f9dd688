import type { Infer, NamedSchema, Reference } from '../schema/json-schema.ts'
import { answerSchema, requestSchema } from '../schema/json-schema.ts'
import { count, listOf, NOTE, RESOURCE, words } from '../schema/value-schemas.ts'
import type { ResourceRule } from './rule-set-types.ts'
import { DENY_ENTRY, EXEMPTION, RESOURCE_RULE, TIER } from './rule-set-types.ts'

const RULES: readonly ResourceRule[] = [
  { dimension: 'user', limit: 1000, window: '1m' },
  { dimension: 'apiKey', limit: 10_000, window: '1h' },
  { dimension: 'ip', limit: 100, window: '1s' },
]

const RULES_LIST = listOf<ResourceRule>('Who may do how much, one rule for each dimension or method.', RESOURCE_RULE)

export const RATE_LIMITS_REQUEST = requestSchema('RateLimitsRequest', {
  description: 'All rules of one resource.',
  examples: [{ resource: '/api/v1/data', rules: RULES }],
  required: { resource: RESOURCE, rules: { ...RULES_LIST, minItems: 1, maxItems: 1000 } },
  optional: { note: NOTE },
})
export interface RateLimitsRequest extends Infer<typeof RATE_LIMITS_REQUEST> {}

const RATE_LIMITS = answerSchema('RateLimits', {
  description: 'The rules of one resource.',
  examples: [{ resource: '/api/v1/data', rules: RULES }],
  required: { resource: RESOURCE, rules: RULES_LIST },
})
export interface RateLimits extends Infer<typeof RATE_LIMITS> {}

export const RATE_LIMITS_ANSWER = answerSchema('RateLimitsAnswer', {
  description: 'The rules of one resource, after a change.',
  examples: [{ resource: '/api/v1/data', rules: RULES, version: 13 }],
  required: { resource: RESOURCE, rules: RULES_LIST, version: count('Number of the version that the change made.') },
  optional: {
    replaced: listOf<ResourceRule>('The rules that the resource had before; absent where it had none.', RESOURCE_RULE),
  },
})
export interface RateLimitsAnswer extends Infer<typeof RATE_LIMITS_ANSWER> {}

export const RATE_LIMITS_PAGE = answerSchema('RateLimitsPage', {
  description: 'Resources and their rules.',
  examples: [{ items: [RATE_LIMITS.example], version: 13 }],
  required: {
    items: listOf<RateLimits>('The resources of this page.', RATE_LIMITS.ref),
    version: count('Number of the version they are from; 0 when none is enforced.'),
  },
  optional: { next: words('Give it back as "after" for the next page; absent on the last.') },
})
export interface RateLimitsPage extends Infer<typeof RATE_LIMITS_PAGE> {}

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

/** The schemas of a part of the enforced rule set: `answer` after a change, and `page` of a list. */
function partSchemas<P>(noun: string, entry: Reference<P>, example: NoInfer<P>) {
  const answer: NamedSchema<PartAnswer<P>> = answerSchema(`${noun}Answer`, {
    description: 'A part of the enforced rule set, after a change.',
    examples: [{ entry: example, version: 13 }],
    required: { entry, version: count('Number of the version that the change made.') },
    optional: { replaced: { ...entry, description: 'What had its name before; absent where nothing had.' } },
  })
  const page: NamedSchema<PartPage<P>> = answerSchema(`${noun}Page`, {
    description: 'Parts of the enforced rule set, in the order in which they count.',
    examples: [{ items: [example], version: 13 }],
    required: {
      items: listOf('What is on this page.', entry),
      version: count('Number of the version they are from; 0 when none is enforced.'),
    },
    optional: { next: words('Give it back as "after" for the next page; absent on the last.') },
  })
  return { answer, page }
}

export const TIERS = partSchemas('Tier', TIER, { name: 'premium', multiplier: 10, burst: 100 })
export const EXEMPTIONS = partSchemas('Exemption', EXEMPTION, { name: 'health', match: { resource: '/health' } })
export const DENY_LIST = partSchemas('Deny', DENY_ENTRY, { name: 'scrapers', match: { cidrs: ['192.0.2.0/24'] } })
