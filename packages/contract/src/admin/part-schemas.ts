import type { NamedSchema, Reference } from '../schema/json-schema.ts'
import { answerSchema } from '../schema/json-schema.ts'
import { count, listOf, words } from '../schema/value-schemas.ts'
import type { DenyEntry, Exemption, Tier } from './rule-set-types.ts'
import { DENY_ENTRY, EXEMPTION, TIER } from './rule-set-types.ts'

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
