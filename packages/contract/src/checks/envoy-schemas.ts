import type { NamedSchema, PropertySchema } from '../schema/json-schema.ts'
import { answerSchema, requestSchema } from '../schema/json-schema.ts'
import { listOf, whole, words } from '../schema/value-schemas.ts'
import type { EnvoyAnswer, EnvoyCode, EnvoyCurrentLimit, EnvoyStatus } from './envoy-answer.ts'
import type { EnvoyCount, EnvoyDescriptor, EnvoyEntry, EnvoyLimit, EnvoyRequest } from './envoy-request.ts'
import { ENVOY_UNITS, LARGEST_ENVOY_COUNT, MOST_ENVOY_DESCRIPTORS, MOST_ENVOY_ENTRIES } from './envoy-request.ts'

const ENTRY_EXAMPLE: EnvoyEntry = { key: 'api_key', value: 'abc' }

const CODES: readonly EnvoyCode[] = ['OK', 'OVER_LIMIT']

/** A number of the protocol, which may be written as text. */
function count(description: string): PropertySchema<EnvoyCount> {
  return {
    title: `a whole number from 0 to ${LARGEST_ENVOY_COUNT}, also as text`,
    description,
    anyOf: [
      { type: 'integer', minimum: 0, maximum: LARGEST_ENVOY_COUNT },
      { title: 'the same in decimal digits', type: 'string', pattern: '^[0-9]{1,10}$' },
    ],
  }
}

const OTHER_NAME = 'by its other name; one of them may be there.'

const HITS = { hits_addend: count(`hitsAddend ${OTHER_NAME}`) }

/** The schema of {@link EnvoyEntry}. */
export const ENVOY_ENTRY: NamedSchema<EnvoyEntry> = requestSchema('EnvoyEntry', {
  description: 'One thing that a descriptor says of a call.',
  examples: [ENTRY_EXAMPLE],
  required: { key: { description: 'What is said.', type: 'string', minLength: 1 } },
  optional: { value: words('What it is; empty when left out.') },
})

/** The schema of {@link EnvoyLimit}. */
export const ENVOY_LIMIT: NamedSchema<EnvoyLimit> = requestSchema('EnvoyLimit', {
  description: 'A limit that holds instead of the one that a rule has.',
  examples: [{ requestsPerUnit: 10, unit: 'MINUTE' }],
  required: { unit: { description: 'Length of its window.', enum: ENVOY_UNITS } },
  optional: {
    requestsPerUnit: count('Hits in each window; 0, which refuses all, when left out.'),
    requests_per_unit: count(`requestsPerUnit ${OTHER_NAME}`),
  },
})

/** The schema of {@link EnvoyDescriptor}. */
export const ENVOY_DESCRIPTOR: NamedSchema<EnvoyDescriptor> = requestSchema('EnvoyDescriptor', {
  description: 'One thing that a call is limited by.',
  examples: [{ entries: [ENTRY_EXAMPLE] }],
  required: {
    entries: {
      ...listOf<EnvoyEntry>('What it says of the call, in the order of the levels of the rules.', ENVOY_ENTRY.ref),
      minItems: 1,
      maxItems: MOST_ENVOY_ENTRIES,
    },
  },
  optional: {
    limit: { ...ENVOY_LIMIT.ref, description: 'A limit that holds instead of the one that a rule has.' },
    hitsAddend: count("Hits of this descriptor, instead of the request's; 0 asks only."),
    ...HITS,
  },
})

/** The schema of {@link EnvoyRequest}. */
export const ENVOY_REQUEST: NamedSchema<EnvoyRequest> = requestSchema('EnvoyRequest', {
  description: 'A request of the Envoy rate limit protocol (RateLimitRequest) as protobuf writes JSON.',
  examples: [
    { domain: 'shop', descriptors: [{ entries: [ENTRY_EXAMPLE] }] },
    {
      domain: 'shop',
      descriptors: [{ entries: [ENTRY_EXAMPLE], hits_addend: '3', limit: { requests_per_unit: 10, unit: 'MINUTE' } }],
      hitsAddend: 1,
    },
  ],
  required: {
    domain: {
      description: 'Whose rules are meant; nothing is limited in a domain that no rule set has.',
      type: 'string',
      minLength: 1,
    },
    descriptors: {
      ...listOf<EnvoyDescriptor>('What the call is limited by, all together.', ENVOY_DESCRIPTOR.ref),
      minItems: 1,
      maxItems: MOST_ENVOY_DESCRIPTORS,
    },
  },
  optional: { hitsAddend: count('Hits of each descriptor; 1 when left out or 0.'), ...HITS },
})

const LIMIT_EXAMPLE: EnvoyCurrentLimit = { requestsPerUnit: 2, unit: 'MINUTE' }

/** The answer to a refused request that examples show. */
export const OVER_LIMIT_EXAMPLE: EnvoyAnswer = {
  overallCode: 'OVER_LIMIT',
  statuses: [{ code: 'OVER_LIMIT', currentLimit: LIMIT_EXAMPLE, durationUntilReset: '42s' }],
}

const OK_STATUS: EnvoyStatus = {
  code: 'OK',
  currentLimit: LIMIT_EXAMPLE,
  limitRemaining: 1,
  durationUntilReset: '42s',
}

/** The schema of {@link EnvoyCurrentLimit}. */
export const ENVOY_CURRENT_LIMIT: NamedSchema<EnvoyCurrentLimit> = answerSchema('EnvoyCurrentLimit', {
  description: 'A limit.',
  examples: [LIMIT_EXAMPLE],
  required: { unit: { description: 'Length of its window.', enum: ENVOY_UNITS } },
  optional: {
    requestsPerUnit: whole('Hits in each window; absent when it is 0.', 0, LARGEST_ENVOY_COUNT),
    name: words('Its name; absent when it has none.'),
  },
})

/** The schema of {@link EnvoyStatus}. */
export const ENVOY_STATUS: NamedSchema<EnvoyStatus> = answerSchema('EnvoyStatus', {
  description: 'How one descriptor stands.',
  examples: [OK_STATUS, { code: 'OK' }, { code: 'OK', limitRemaining: LARGEST_ENVOY_COUNT }],
  required: { code: { description: 'Whether it is over its limit.', enum: CODES } },
  optional: {
    currentLimit: { ...ENVOY_CURRENT_LIMIT.ref, description: 'Its limit; absent when nothing was counted.' },
    limitRemaining: whole(
      `Hits that are left, ${LARGEST_ENVOY_COUNT} where a rule does not limit; absent when it is 0.`,
      0,
      LARGEST_ENVOY_COUNT,
    ),
    durationUntilReset: {
      description: 'Until the window ends: whole seconds, rounded up, and "s"; absent when nothing was counted.',
      type: 'string',
      pattern: '^[0-9]+s$',
    },
  },
})

/** The schema of {@link EnvoyAnswer}. */
export const ENVOY_ANSWER: NamedSchema<EnvoyAnswer> = answerSchema('EnvoyAnswer', {
  description:
    'An answer of the Envoy rate limit protocol (RateLimitResponse) as protobuf writes JSON, which leaves out what is 0 or empty.',
  examples: [{ overallCode: 'OK', statuses: [OK_STATUS] }, OVER_LIMIT_EXAMPLE],
  required: {
    overallCode: { description: 'Whether the call may go on.', enum: CODES },
    statuses: listOf<EnvoyStatus>('One for each descriptor, in their order.', ENVOY_STATUS.ref),
  },
})
