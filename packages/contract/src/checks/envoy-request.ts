import type { Field, InvalidBody, Parsed } from '../schema/body-parser.ts'
import {
  bodyForm,
  entryProblems,
  formField,
  formProblems,
  hasForm,
  listField,
  plainTextField,
} from '../schema/body-parser.ts'
import type { Infer, ValueOf } from '../schema/json-schema.ts'
import { requestSchema } from '../schema/json-schema.ts'
import { bodyOf, flag, listOf, words } from '../schema/value-schemas.ts'

/**
 * The path of the Envoy rate limit protocol as JSON, with `POST`, as in envoyproxy/ratelimit.
 */
export const ENVOY_PATH = '/json'

/** Maximum number of descriptors in one request. */
export const MOST_ENVOY_DESCRIPTORS = 100

/** Maximum number of entries of one descriptor: rules have no more. */
export const MOST_ENVOY_ENTRIES = 32

/** Largest number of the protocol: 32 bits. */
export const LARGEST_ENVOY_COUNT = 4_294_967_295

/** The units of the protocol. */
export const ENVOY_UNITS = ['SECOND', 'MINUTE', 'HOUR', 'DAY', 'WEEK', 'MONTH', 'YEAR'] as const

/** Length of the window of a limit. */
export type EnvoyUnit = (typeof ENVOY_UNITS)[number]

/** A validated descriptor. */
export interface ValidEnvoyDescriptor {
  readonly entries: readonly Required<EnvoyEntry>[]
  readonly limit?: { readonly unit: Lowercase<EnvoyUnit>; readonly requestsPerUnit: number }
  readonly hitsAddend?: number
  readonly isNegativeHits?: boolean
}

/** A validated request: numbers are numbers, and each field has one name. The engine uses it as it is. */
export interface ValidEnvoyRequest {
  readonly domain: string
  readonly descriptors: readonly ValidEnvoyDescriptor[]
  readonly hitsAddend?: number
}

/** A number of the protocol, which may be a string. */
function envoyCount(description: string) {
  return {
    title: `a whole number from 0 to ${LARGEST_ENVOY_COUNT}, also as text`,
    description,
    anyOf: [
      { type: 'integer', minimum: 0, maximum: LARGEST_ENVOY_COUNT },
      { title: 'the same in decimal digits', type: 'string', pattern: '^[0-9]{1,10}$' },
    ],
  } as const
}

/**
 * A whole number from 0 to {@link LARGEST_ENVOY_COUNT}, or the same in decimal digits, as protobuf writes long ones.
 */
export type EnvoyCount = ValueOf<ReturnType<typeof envoyCount>>

const OTHER_NAME = 'by its other name; one of them may be there.'

const HITS = { hits_addend: envoyCount(`hitsAddend ${OTHER_NAME}`) }

const ENVOY_ENTRY = requestSchema('EnvoyEntry', {
  description: 'One thing that a descriptor says of a call.',
  examples: [{ key: 'api_key', value: 'abc' }],
  required: { key: { description: 'What is said.', type: 'string', minLength: 1 } },
  optional: { value: words('What it is. Default: empty.') },
})
export interface EnvoyEntry extends Infer<typeof ENVOY_ENTRY> {}

const ENVOY_LIMIT = requestSchema('EnvoyLimit', {
  description: 'A limit that holds instead of the one that a rule has.',
  examples: [{ requestsPerUnit: 10, unit: 'MINUTE' }],
  required: { unit: { description: 'Length of its window.', enum: ENVOY_UNITS } },
  optional: {
    requestsPerUnit: envoyCount('Hits in each window. Default: 0, which denies all.'),
    requests_per_unit: envoyCount(`requestsPerUnit ${OTHER_NAME}`),
  },
})
export interface EnvoyLimit extends Infer<typeof ENVOY_LIMIT> {}

const ENVOY_DESCRIPTOR = requestSchema('EnvoyDescriptor', {
  description: 'One thing that a call is limited by.',
  examples: [{ entries: [ENVOY_ENTRY.example] }],
  required: {
    entries: {
      ...listOf<EnvoyEntry>('What it says of the call, in the order of the levels of the rules.', ENVOY_ENTRY.ref),
      minItems: 1,
      maxItems: MOST_ENVOY_ENTRIES,
    },
  },
  optional: {
    limit: bodyOf<EnvoyLimit>(ENVOY_LIMIT, 'A limit that holds instead of the one that a rule has.'),
    hitsAddend: envoyCount("Hits of this descriptor, instead of the request's; 0 asks only."),
    ...HITS,
    isNegativeHits: flag('Gives the hits back instead of taking them; the status is OK. Default: false.'),
    is_negative_hits: flag(`isNegativeHits ${OTHER_NAME}`),
  },
})
export interface EnvoyDescriptor extends Infer<typeof ENVOY_DESCRIPTOR> {}

export const ENVOY_REQUEST = requestSchema('EnvoyRequest', {
  description: 'A request of the Envoy rate limit protocol (RateLimitRequest) as protobuf writes JSON.',
  examples: [
    { domain: 'shop', descriptors: [{ entries: [ENVOY_ENTRY.example] }] },
    {
      domain: 'shop',
      descriptors: [
        { entries: [ENVOY_ENTRY.example], hits_addend: '3', limit: { requests_per_unit: 10, unit: 'MINUTE' } },
      ],
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
  optional: { hitsAddend: envoyCount('Hits of each descriptor. Default: 1, also for 0.'), ...HITS },
})
export interface EnvoyRequest extends Infer<typeof ENVOY_REQUEST> {}

const DIGITS = /^\d{1,10}$/

const COUNT_FIELD: Field = {
  accepts: (value) => {
    const count = typeof value === 'string' && DIGITS.test(value) ? Number(value) : value
    return Number.isInteger(count) && (count as number) >= 0 && (count as number) <= LARGEST_ENVOY_COUNT
  },
  expected: `a whole number from 0 to ${LARGEST_ENVOY_COUNT}, also as text`,
  isPrivate: false,
}

const NAME_FIELD = plainTextField(1, false)

/** May name a person or be a secret. */
const VALUE_FIELD = plainTextField(0, true)

const ENTRY_FORM = bodyForm(ENVOY_ENTRY, 'an object with "key" and "value"', {
  fields: { key: NAME_FIELD, value: VALUE_FIELD },
})

const LIMIT_FORM = bodyForm(ENVOY_LIMIT, 'an object with "requestsPerUnit" and "unit"', {
  fields: { requestsPerUnit: COUNT_FIELD, requests_per_unit: COUNT_FIELD },
})

const ENTRIES_FIELD = listField(MOST_ENVOY_ENTRIES, 'entries', ENTRY_FORM)

const LIMIT_FIELD = formField(LIMIT_FORM)

const DESCRIPTOR_FORM = bodyForm(ENVOY_DESCRIPTOR, 'an object with "entries"', {
  fields: {
    entries: ENTRIES_FIELD,
    limit: LIMIT_FIELD,
    hitsAddend: COUNT_FIELD,
    hits_addend: COUNT_FIELD,
  },
})

const DESCRIPTORS_FIELD = listField(MOST_ENVOY_DESCRIPTORS, 'descriptors')

const REQUEST_FORM = bodyForm(ENVOY_REQUEST, 'a JSON object with "domain" and "descriptors"', {
  fields: {
    domain: NAME_FIELD,
    descriptors: DESCRIPTORS_FIELD,
    hitsAddend: COUNT_FIELD,
    hits_addend: COUNT_FIELD,
  },
})

/**
 * Parses the JSON of a body into a request with descriptors, or into its problems. One invalid descriptor rejects the
 * whole request. Never throws.
 */
export function parseEnvoyRequest(body: unknown): Parsed<{ readonly request: ValidEnvoyRequest }> {
  if (!hasForm(body, REQUEST_FORM)) return formProblems(body, REQUEST_FORM)
  const { domain, descriptors } = body
  const invalid = entryProblems(descriptors, DESCRIPTOR_FORM, '/descriptors') ?? doubledField(body)
  if (invalid !== undefined) return invalid
  return { ok: true, request: { domain, descriptors: descriptors.map(validDescriptor), ...hitsOf(body) } }
}

/** The problem of a request with both names of a field: it is ambiguous. */
function doubledField(request: EnvoyRequest): InvalidBody | undefined {
  const problems: InvalidBody['problems'][number][] = []
  const look = (value: object | undefined, [one, other]: readonly [string, string], at: string): void => {
    if (value === undefined || !Object.hasOwn(value, one) || !Object.hasOwn(value, other)) return
    problems.push({
      path: `${at}/${other}`,
      received: `it beside "${one}"`,
      expected: 'one of them: they are one field',
    })
  }
  look(request, HITS_NAMES, '')
  for (const [index, descriptor] of request.descriptors.entries()) {
    look(descriptor, HITS_NAMES, `/descriptors/${index}`)
    look(descriptor, NEGATIVE_NAMES, `/descriptors/${index}`)
    look(descriptor.limit, LIMIT_NAMES, `/descriptors/${index}/limit`)
  }
  return problems.length === 0 ? undefined : { ok: false, problems, unlisted: 0 }
}

const HITS_NAMES = ['hitsAddend', 'hits_addend'] as const
const NEGATIVE_NAMES = ['isNegativeHits', 'is_negative_hits'] as const
const LIMIT_NAMES = ['requestsPerUnit', 'requests_per_unit'] as const

function validDescriptor(descriptor: EnvoyDescriptor): ValidEnvoyDescriptor {
  const { entries, limit, is_negative_hits, isNegativeHits = is_negative_hits } = descriptor
  return {
    entries: entries.map(({ key, value = '' }) => ({ key, value })),
    ...(limit === undefined ? {} : { limit: validLimit(limit) }),
    ...hitsOf(descriptor),
    ...(isNegativeHits === undefined ? {} : { isNegativeHits }),
  }
}

function validLimit({
  unit,
  requestsPerUnit,
  requests_per_unit = 0,
}: EnvoyLimit): ValidEnvoyDescriptor['limit'] & object {
  return {
    unit: unit.toLowerCase() as Lowercase<EnvoyUnit>,
    requestsPerUnit: numberOf(requestsPerUnit ?? requests_per_unit),
  }
}

function hitsOf({ hitsAddend, hits_addend }: Pick<EnvoyRequest, 'hitsAddend' | 'hits_addend'>): {
  hitsAddend?: number
} {
  const hits = hitsAddend ?? hits_addend
  return hits === undefined ? {} : { hitsAddend: numberOf(hits) }
}

/** Adding 0 turns the -0 of JSON into 0. */
function numberOf(count: EnvoyCount): number {
  return Number(count) + 0
}
