import type { Infer, NamedSchema, Reference } from '../schema/json-schema.ts'
import { answerSchema, requestSchema } from '../schema/json-schema.ts'
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
import type { Membership, Override } from './rule-set-types.ts'
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

const STORED_PARTS = {
  revision: count('Another with every change; its ETag. 0 when nothing was ever set.'),
  changedAt: instant('When it was changed last; 0 when never.'),
  changedBy: words('Name of the API key that changed it; empty when none did.'),
} as const

/** The schemas of a kind of entry: `page` of a list, and `put` for the answer to a change. */
function entrySchemas<E>(noun: string, entry: Reference<E>, example: NoInfer<E>) {
  const stored: NamedSchema<Stored<E>> = answerSchema(`Stored${noun}`, {
    description: 'An entry as it is kept.',
    examples: [storedExample(example)],
    required: { entry, ...STORED_PARTS },
  })
  const put: NamedSchema<PutAnswer<E>> = answerSchema(`Put${noun}`, {
    description: 'An entry that was put, and what it took the place of.',
    examples: [{ ...stored.example, replaced: { ...stored.example, revision: 3, changedBy: 'deploy' } }],
    required: { entry, ...STORED_PARTS },
    optional: { replaced: { ...stored.ref, description: 'What was there before; absent where nothing was.' } },
  })
  return { example, put, page: pageSchema(`${noun}Page`, stored) }
}

function storedExample<E>(entry: E): Stored<E> {
  return { entry, revision: 7, changedAt: 1_762_337_100_000, changedBy: 'ops' }
}

export const OVERRIDES = entrySchemas('Override', OVERRIDE, {
  dimension: 'tenant',
  entity: 'acme',
  resource: '*',
  terms: { multiplier: 5 },
  expiresAt: 1_798_761_600_000,
})

export const MEMBERS = entrySchemas('Member', MEMBERSHIP, { dimension: 'tenant', entity: 'acme', tier: 'premium' })

export const BLOCKS = entrySchemas('Block', BLOCK, {
  dimension: 'ip',
  entity: '192.0.2.7',
  until: 1_762_340_700_000,
  strikes: 1,
  forgottenAt: 1_762_340_700_000,
  reason: 'abuse report 4711',
})

export const INCIDENT_ANSWER = answerSchema('IncidentAnswer', {
  description: 'Whether an incident is declared, and how many rules it concerns.',
  examples: [{ ...storedExample({ active: true }), affectedRules: 2 }],
  required: {
    entry: INCIDENT,
    ...STORED_PARTS,
    affectedRules: count('Rules of the enforced version whose limits an incident changes.'),
  },
  optional: { warning: words('Why the incident that is declared changes no limit, and what to do; else absent.') },
})
export interface IncidentAnswer extends Infer<typeof INCIDENT_ANSWER> {}

export const BULK_OVERRIDES_REQUEST = requestSchema('BulkOverridesRequest', {
  description: 'Many overrides, put in one step: all of them, or none.',
  examples: [{ overrides: [OVERRIDES.example], note: 'contracts of November' }],
  required: {
    overrides: { ...listOf<Override>('The overrides.', OVERRIDE), minItems: 1, maxItems: MOST_BULK_ENTRIES },
  },
  optional: { note: NOTE },
})
export interface BulkOverridesRequest extends Infer<typeof BULK_OVERRIDES_REQUEST> {}

export const BULK_MEMBERS_REQUEST = requestSchema('BulkMembersRequest', {
  description: 'Many members, put in one step: all of them, or none.',
  examples: [{ members: [MEMBERS.example] }],
  required: {
    members: { ...listOf<Membership>('The members.', MEMBERSHIP), minItems: 1, maxItems: MOST_BULK_ENTRIES },
  },
  optional: { note: NOTE },
})
export interface BulkMembersRequest extends Infer<typeof BULK_MEMBERS_REQUEST> {}

export const BULK_ANSWER = answerSchema('BulkAnswer', {
  description: 'How many entries were put.',
  examples: [{ count: 1 }],
  required: { count: count('Number of entries.') },
})
export interface BulkAnswer extends Infer<typeof BULK_ANSWER> {}

export const BLOCK_REQUEST = requestSchema('BlockRequest', {
  description: 'Denies all requests of a caller for a time.',
  examples: [{ dimension: 'ip', entity: '192.0.2.7', duration: '1h', reason: 'abuse report 4711' }],
  required: { dimension: DIMENSION, entity: ENTITY, duration: duration('For how long, from now on.') },
  optional: { reason: text('Why, in words.', 1000) },
})
export interface BlockRequest extends Infer<typeof BLOCK_REQUEST> {}
