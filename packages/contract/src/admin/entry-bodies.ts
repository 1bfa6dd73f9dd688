import type { NamedSchema, Reference } from '../schema/json-schema.ts'
import { answerSchema, requestSchema } from '../schema/json-schema.ts'
import type { Page } from '../schema/value-schemas.ts'
import {
  count,
  DIMENSION,
  duration,
  ENTITY,
  instant,
  listOf,
  NOTE,
  pageSchema,
  text,
  words,
} from '../schema/value-schemas.ts'
import type { Block, Incident, Membership, Override } from './rule-set-types.ts'
import { BLOCK, INCIDENT, MEMBERSHIP, OVERRIDE } from './rule-set-types.ts'

/** Most entries of a bulk change. */
export const MOST_BULK_ENTRIES = 10_000

/** An entry as it is kept. */
export interface Stored<E> {
  readonly entry: E
  /** Another with every change; its ETag. 0 when nothing was ever set. */
  readonly revision: number
  /** Milliseconds since 1970; 0 when nothing was ever set. */
  readonly changedAt: number
  readonly changedBy: string
}

/** An entry that was put. */
export interface PutAnswer<E> extends Stored<E> {
  /** What was there before; absent where nothing was. */
  readonly replaced?: Stored<E>
}

/** How the incident switch stands. */
export interface IncidentAnswer extends Stored<Incident> {
  /** Rules of the enforced version whose limits an incident changes. */
  readonly affectedRules: number
  /** Why the incident that is declared changes no limit, and what to do; else absent. */
  readonly warning?: string
}

/** The body that puts many overrides at once. */
export interface BulkOverridesRequest {
  readonly overrides: readonly Override[]
  /** Why, for the audit log. */
  readonly note?: string
}

/** The body that puts many members at once. */
export interface BulkMembersRequest {
  readonly members: readonly Membership[]
  /** Why, for the audit log. */
  readonly note?: string
}

/** How many entries a bulk change has put. */
export interface BulkAnswer {
  readonly count: number
}

/** The body that blocks a caller. */
export interface BlockRequest {
  readonly dimension: string
  readonly entity: string
  /** For how long, from now on, such as `1h`. */
  readonly duration: string
  readonly reason?: string
}

const OVERRIDE_EXAMPLE: Override = {
  dimension: 'tenant',
  entity: 'acme',
  resource: '*',
  terms: { multiplier: 5 },
  expiresAt: 1_798_761_600_000,
}

const MEMBER_EXAMPLE: Membership = { dimension: 'tenant', entity: 'acme', tier: 'premium' }

const BLOCK_EXAMPLE: Block = {
  dimension: 'ip',
  entity: '192.0.2.7',
  until: 1_762_340_700_000,
  strikes: 1,
  forgottenAt: 1_762_340_700_000,
  reason: 'abuse report 4711',
}

const STORED_PARTS = {
  revision: count('Another with every change; its ETag. 0 when nothing was ever set.'),
  changedAt: instant('When it was changed last; 0 when never.'),
  changedBy: words('Name of the API key that changed it; empty when none did.'),
} as const

/** The schemas of what is kept, and of pages of it. */
const STORED_OVERRIDE: NamedSchema<Stored<Override>> = storedSchema('StoredOverride', OVERRIDE, OVERRIDE_EXAMPLE)
export const OVERRIDE_PAGE: NamedSchema<Page<Stored<Override>>> = storedPage(
  'OverridePage',
  STORED_OVERRIDE,
  OVERRIDE_EXAMPLE,
)
const STORED_MEMBER: NamedSchema<Stored<Membership>> = storedSchema('StoredMember', MEMBERSHIP, MEMBER_EXAMPLE)
export const MEMBER_PAGE: NamedSchema<Page<Stored<Membership>>> = storedPage(
  'MemberPage',
  STORED_MEMBER,
  MEMBER_EXAMPLE,
)
const STORED_BLOCK: NamedSchema<Stored<Block>> = storedSchema('StoredBlock', BLOCK, BLOCK_EXAMPLE)
export const BLOCK_PAGE: NamedSchema<Page<Stored<Block>>> = storedPage('BlockPage', STORED_BLOCK, BLOCK_EXAMPLE)

/** The schema of {@link IncidentAnswer}. */
export const INCIDENT_ANSWER: NamedSchema<IncidentAnswer> = answerSchema('IncidentAnswer', {
  description: 'Whether an incident is declared, and how many rules it concerns.',
  examples: [{ ...storedExample({ active: true }), affectedRules: 2 }],
  required: {
    entry: INCIDENT,
    ...STORED_PARTS,
    affectedRules: count('Rules of the enforced version whose limits an incident changes.'),
  },
  optional: { warning: words('Why the incident that is declared changes no limit, and what to do; else absent.') },
})

/** The schemas of what was put. */
export const PUT_OVERRIDE: NamedSchema<PutAnswer<Override>> = putSchema('PutOverride', {
  entry: OVERRIDE,
  stored: STORED_OVERRIDE,
  example: OVERRIDE_EXAMPLE,
})
export const PUT_MEMBER: NamedSchema<PutAnswer<Membership>> = putSchema('PutMember', {
  entry: MEMBERSHIP,
  stored: STORED_MEMBER,
  example: MEMBER_EXAMPLE,
})
export const PUT_BLOCK: NamedSchema<PutAnswer<Block>> = putSchema('PutBlock', {
  entry: BLOCK,
  stored: STORED_BLOCK,
  example: BLOCK_EXAMPLE,
})

/** The schema of {@link BulkOverridesRequest}. */
export const BULK_OVERRIDES_REQUEST: NamedSchema<BulkOverridesRequest> = requestSchema('BulkOverridesRequest', {
  description: 'Many overrides, put in one step: all of them, or none.',
  examples: [{ overrides: [OVERRIDE_EXAMPLE], note: 'contracts of November' }],
  required: {
    overrides: { ...listOf<Override>('The overrides.', OVERRIDE), minItems: 1, maxItems: MOST_BULK_ENTRIES },
  },
  optional: { note: NOTE },
})

/** The schema of {@link BulkMembersRequest}. */
export const BULK_MEMBERS_REQUEST: NamedSchema<BulkMembersRequest> = requestSchema('BulkMembersRequest', {
  description: 'Many members, put in one step: all of them, or none.',
  examples: [{ members: [MEMBER_EXAMPLE] }],
  required: {
    members: { ...listOf<Membership>('The members.', MEMBERSHIP), minItems: 1, maxItems: MOST_BULK_ENTRIES },
  },
  optional: { note: NOTE },
})

/** The schema of {@link BulkAnswer}. */
export const BULK_ANSWER: NamedSchema<BulkAnswer> = answerSchema('BulkAnswer', {
  description: 'How many entries were put.',
  examples: [{ count: 1 }],
  required: { count: count('Number of entries.') },
})

/** The schema of {@link BlockRequest}. */
export const BLOCK_REQUEST: NamedSchema<BlockRequest> = requestSchema('BlockRequest', {
  description: 'Denies all requests of a caller for a time.',
  examples: [{ dimension: 'ip', entity: '192.0.2.7', duration: '1h', reason: 'abuse report 4711' }],
  required: { dimension: DIMENSION, entity: ENTITY, duration: duration('For how long, from now on.') },
  optional: { reason: text('Why, in words.', 1000) },
})

function storedExample<E>(entry: E): Stored<E> {
  return { entry, revision: 7, changedAt: 1_762_337_100_000, changedBy: 'ops' }
}

function storedSchema<E>(name: string, entry: Reference<E>, example: NoInfer<E>): NamedSchema<Stored<E>> {
  return answerSchema<Stored<E>>(name, {
    description: 'An entry as it is kept.',
    examples: [storedExample(example)],
    required: { entry, ...STORED_PARTS },
  })
}

/** What a {@link putSchema} is made of. */
interface PutParts<E> {
  readonly entry: Reference<E>
  readonly stored: NamedSchema<Stored<E>>
  readonly example: NoInfer<E>
}

function putSchema<E>(name: string, { entry, stored, example }: PutParts<E>): NamedSchema<PutAnswer<E>> {
  const put = storedExample(example)
  return answerSchema<PutAnswer<E>>(name, {
    description: 'An entry that was put, and what it took the place of.',
    examples: [{ ...put, replaced: { ...put, revision: 3, changedBy: 'deploy' } }],
    required: { entry, ...STORED_PARTS },
    optional: { replaced: { ...stored.ref, description: 'What was there before; absent where nothing was.' } },
  })
}

function storedPage<E>(name: string, item: NamedSchema<Stored<E>>, example: NoInfer<E>): NamedSchema<Page<Stored<E>>> {
  return pageSchema(name, item.ref, storedExample(example))
}
