import type { BodyRules, Parsed } from '../schema/body-parser.ts'
import {
  bodyForm,
  DESCRIPTORS_FIELD,
  entryProblems,
  formProblems,
  hasForm,
  IP_FIELD,
  listField,
  METHOD_FIELD,
  RESOURCE_FIELD,
  TIER_FIELD,
} from '../schema/body-parser.ts'
import type { Infer } from '../schema/json-schema.ts'
import { requestSchema } from '../schema/json-schema.ts'
import type { FieldProblem } from '../schema/value-schemas.ts'
import { address, entryName, listOf, text } from '../schema/value-schemas.ts'

/** The path of checks, with `POST`. */
export const CHECK_PATH = '/internal/ratelimit/check'

/** Most tokens one request may take. */
export const MOST_TOKENS = 1_000_000_000

/** Most checks in one batch. */
export const MOST_CHECKS = 100

/** Further dimensions and numbers of a request, by name. */
export type Descriptors = NonNullable<CheckRequest['descriptors']>

/** A field of {@link CheckRequest}. */
export type CheckField = keyof CheckRequest

/** The fields of {@link CheckRequest} that are other names of identities. */
type OtherName = 'userId' | 'clientIp' | 'tenantId'

/** A check request that was found valid: nothing unknown in it, one name for each identity, `tokens` filled in. */
export type ValidCheckRequest = {
  readonly [Name in Exclude<CheckField, 'tokens' | 'resource' | OtherName>]: CheckRequest[Name] | undefined
} & Required<Pick<CheckRequest, 'resource' | 'tokens'>>

/** What {@link parseCheckRequest} found: the request, or everything that is wrong with it. */
export type ParsedCheckRequest = Parsed<{ readonly request: ValidCheckRequest }>

/** The schemas of the fields of a check, for bodies that hold more than these. */
export const CHECK_PROPERTIES = {
  required: {
    resource: {
      title: 'a path that begins with "/", a name without "/", or "*"',
      description: 'What is called: a path, a name without a slash, or * for everything.',
      type: 'string',
      minLength: 1,
      maxLength: 2048,
      pattern: '^(?:/[^\\u0000-\\u001f\\u007f-\\u009f]*|[^/\\u0000-\\u001f\\u007f-\\u009f]+)$',
    },
  },
  optional: {
    user: text('The user, as your authentication knows it.', 256),
    apiKey: text('The API key, or better a name for it.', 512),
    ip: address('Address of the caller.'),
    tenant: text('The tenant.', 256),
    service: text('Name of the internal service that calls, when it is one.', 256),
    userId: text('Another name of "user".', 256),
    clientIp: address('Another name of "ip".'),
    tenantId: text('Another name of "tenant".', 256),
    method: {
      title: 'an HTTP method such as "GET"',
      description: 'Its HTTP method.',
      type: 'string',
      pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}$",
    },
    tokens: {
      description: 'Tokens to take. 0 checks without taking. Default: 1.',
      type: 'integer',
      minimum: 0,
      maximum: MOST_TOKENS,
    },
    descriptors: {
      title: 'an object of at most 32 descriptors, by name',
      description:
        'Further dimensions and numbers, by name: rules may count by them, or take their cost from them. A ' +
        'descriptor "user", "apiKey", "ip" or "tenant" must have the value of the field of the same name, which ' +
        'says who is counted; "service" that of "service", if both are given.',
      type: 'object',
      maxProperties: 32,
      propertyNames: { type: 'string', pattern: '^[A-Za-z][A-Za-z0-9_.-]{0,63}$' },
      additionalProperties: { anyOf: [text('A string.', 512), { description: 'A number.', type: 'number' }] },
    },
    region: text('Where the call comes from, for limits that differ by region.', 64),
    tier: entryName('The tier of the caller, when you know it; else it is looked up.'),
  },
} as const

/** The check that examples begin with. */
export const CHECK_EXAMPLE = {
  user: 'user-123',
  apiKey: 'key-abc',
  ip: '1.2.3.4',
  resource: '/api/v1/data',
  method: 'POST',
  tokens: 1,
} as const

export const CHECK_REQUEST = requestSchema('CheckRequest', {
  description: 'Who calls what. The sender must have verified every field.',
  examples: [
    CHECK_EXAMPLE,
    { tenant: 'acme', resource: '/v1/completions', tokens: 5, descriptors: { model: 'large', bytes: 2048 } },
  ],
  ...CHECK_PROPERTIES,
})
export interface CheckRequest extends Infer<typeof CHECK_REQUEST> {}

export const BATCH_REQUEST = requestSchema('BatchRequest', {
  description: 'Several checks, each decided on its own, in their order.',
  examples: [{ requests: [CHECK_EXAMPLE, { ip: '2001:db8::1', resource: '/login' }] }],
  required: {
    requests: { ...listOf<CheckRequest>('The checks.', CHECK_REQUEST.ref), minItems: 1, maxItems: MOST_CHECKS },
  },
})
export interface BatchRequest extends Infer<typeof BATCH_REQUEST> {}

/** The identities: dimension and field have the same name, and some fields have another name as well. */
const IDENTITIES: readonly (readonly [name: IdentityName, otherName: OtherName | undefined])[] = [
  ['user', 'userId'],
  ['apiKey', undefined],
  ['ip', 'clientIp'],
  ['tenant', 'tenantId'],
  ['service', undefined],
]

/** A dimension that is an identity of the caller, by the name it has in rules, requests and command lines. */
export type IdentityName = 'user' | 'apiKey' | 'ip' | 'tenant' | 'service'

const NO_PROBLEMS: readonly FieldProblem[] = []

/**
 * Identities that a request names twice and not alike: by both names of a field, or by a field and a descriptor. Who is
 * counted would not be who the request seems to name. A descriptor "service" may stand alone: rules can count by it.
 */
function identityProblems(body: object, at: string): readonly FieldProblem[] {
  const call = body as Partial<CheckRequest>
  const { descriptors } = call
  const hasDescriptors = typeof descriptors === 'object' && descriptors !== null
  let problems = NO_PROBLEMS
  for (const [name, otherName] of IDENTITIES) {
    const value = call[name]
    const other = otherName === undefined ? undefined : call[otherName]
    if (value !== undefined && other !== undefined && value !== other) {
      problems = [...problems, disagreement(`${at}/${otherName}`, name, `"${otherName}"`)]
    }
    if (!hasDescriptors || !Object.hasOwn(descriptors, name)) continue
    const named = value ?? other
    if (named === undefined ? name === 'service' : named === String(descriptors[name])) continue
    const field = value === undefined && other !== undefined ? otherName! : name
    problems = [...problems, disagreement(`${at}/descriptors/${name}`, field, `descriptor "${name}"`)]
  }
  return problems
}

function disagreement(path: string, field: CheckField, second: string): FieldProblem {
  return {
    path,
    received: `a value that "${field}" does not have`,
    expected: `the value of "${field}", or no ${second}: "${field}" says who is counted`,
  }
}

/** What the parser knows of the fields of a check beyond their schemas. */
export const CHECK_RULES: BodyRules = {
  first: ['user', 'apiKey', 'ip', 'tenant', 'service', 'userId', 'clientIp', 'tenantId'],
  private: ['user', 'apiKey', 'tenant', 'userId', 'tenantId'],
  fields: {
    ip: IP_FIELD,
    clientIp: IP_FIELD,
    resource: RESOURCE_FIELD,
    method: METHOD_FIELD,
    descriptors: DESCRIPTORS_FIELD,
    tier: TIER_FIELD,
  },
  problemsBetween: identityProblems,
}

const CHECK_FORM = bodyForm(CHECK_REQUEST, 'a JSON object with the check', CHECK_RULES)

/**
 * Turns the parsed JSON of a body into a check request, or into the list of everything that is wrong with it: wrong
 * values, a missing `resource`, unknown fields, identities named twice and not alike. Never throws; `body` may be
 * anything that `JSON.parse` gives, also an object with a member named `__proto__`.
 */
export function parseCheckRequest(body: unknown): ParsedCheckRequest {
  if (!hasForm(body, CHECK_FORM)) return formProblems(body, CHECK_FORM)
  return { ok: true, request: validRequest(body) }
}

/** What {@link parseBatchRequest} found: the requests in their order, or everything that is wrong with them. */
export type ParsedBatchRequest = Parsed<{ readonly requests: readonly ValidCheckRequest[] }>

const CHECKS_FIELD = listField(MOST_CHECKS, 'checks')

const BATCH_FORM = bodyForm(BATCH_REQUEST, 'a JSON object with "requests", a list of checks', {
  fields: { requests: CHECKS_FIELD },
})

/**
 * Turns the parsed JSON of a batch into its check requests, or into what is wrong with it. One invalid request rejects
 * the whole batch. Never throws.
 */
export function parseBatchRequest(body: unknown): ParsedBatchRequest {
  if (!hasForm(body, BATCH_FORM)) return formProblems(body, BATCH_FORM)
  const { requests } = body
  return entryProblems(requests, CHECK_FORM, '/requests') ?? { ok: true, requests: requests.map(validRequest) }
}

/** The check in a body whose form is right; what else is in the body is left behind. */
export function validRequest(body: CheckRequest): ValidCheckRequest {
  const { userId, apiKey, clientIp, tenantId, service, resource, method, tokens = 1, descriptors, region, tier } = body
  const { user = userId, ip = clientIp, tenant = tenantId } = body
  return {
    user,
    apiKey,
    ip,
    tenant,
    service,
    resource,
    method,
    // Adding 0 turns the -0 of JSON into 0.
    tokens: tokens + 0,
    descriptors,
    region,
    tier,
  }
}
