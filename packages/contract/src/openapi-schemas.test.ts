import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseResetRequest } from './admin/usage-bodies.ts'
import { checkAnswer, checkAnswerJson } from './checks/check-answer.ts'
import { parseBatchRequest, parseCheckRequest } from './checks/check-request.ts'
import type { DecisionLike } from './checks/decision.ts'
import { envoyAnswer } from './checks/envoy-answer.ts'
import { parseEnvoyRequest } from './checks/envoy-request.ts'
import { parseReportRequest } from './checks/report-bodies.ts'
import {
  parseAcquireRequest,
  parseReservationRequest,
  parseReserveRequest,
  parseSettleRequest,
} from './checks/reservation-bodies.ts'
import { schemasNeededBy, validatorOf } from './document.test.support.ts'
import { SCHEMAS } from './openapi.ts'
import type { Operation } from './operations/operation.ts'
import { OPERATIONS } from './operations/operation-table.ts'
import type { JsonSchema } from './schema/json-schema.ts'
import type { ProblemCode } from './service/problem.ts'
import { PROBLEMS } from './service/problem.ts'
import { problemDocument } from './service/problem-document.ts'

const operations = Object.values<Operation>(OPERATIONS)
const sent = [...schemasNeededBy(operations.map(({ body }) => body))].filter((name) => Object.hasOwn(SCHEMAS, name))

/** Every schema within a schema, with the path to it. */
function partsOf(schema: JsonSchema, path: string): readonly (readonly [string, JsonSchema])[] {
  const { properties = {}, items, anyOf = [], additionalProperties, propertyNames } = schema
  const more = typeof additionalProperties === 'object' ? { '*': additionalProperties } : {}
  const named = Object.entries({
    ...properties,
    ...more,
    ...(items && { '[]': items }),
    ...(propertyNames && { name: propertyNames }),
  })
  return [
    [path, schema],
    ...named.flatMap(([name, part]) => partsOf(part, `${path}/${name}`)),
    ...anyOf.flatMap((branch, index) => partsOf(branch, `${path}|${index}`)),
  ]
}

describe('the schemas', () => {
  it('are all needed by an operation, or by another schema', () => {
    const needed = schemasNeededBy(operations)
    expect(Object.keys(SCHEMAS).filter((name) => !needed.has(name))).toEqual([])
  })

  it.each(Object.entries(SCHEMAS))('%s: its examples are valid', (name, { examples = [] }) => {
    const validate = validatorOf(name)
    expect(examples.length).toBeGreaterThan(0)
    for (const example of examples) expect([example, validate(example), validate.errors]).toEqual([example, true, null])
  })

  it.each(sent)('%s: a property that it does not name is refused', (name) => {
    const [example] = SCHEMAS[name]?.examples ?? []
    expect(validatorOf(name)({ ...(example as object), unheardOf: 1 })).toBe(false)
  })

  it('close every object that clients send', () => {
    const open = sent
      .flatMap((name) => partsOf(SCHEMAS[name]!, name))
      .filter(([, schema]) => schema.type === 'object' && (schema.additionalProperties ?? true) === true)
    expect(open.map(([path]) => path)).toEqual([])
  })

  it('say what every property means', () => {
    const silent = Object.entries(SCHEMAS).flatMap(([name, schema]) =>
      partsOf(schema, name).flatMap(([path, { properties = {} }]) =>
        Object.entries(properties)
          .filter(([, { description, $ref }]) => description === undefined && $ref === undefined)
          .map(([property]) => `${path}/${property}`),
      ),
    )
    expect(silent).toEqual([])
  })

  it('explain every pattern in words', () => {
    const silent = sent
      .flatMap((name) => partsOf(SCHEMAS[name]!, name))
      .filter(([path, { pattern, title }]) => pattern !== undefined && title === undefined && !path.endsWith('/name'))
    expect(silent.map(([path]) => path)).toEqual([])
  })
})

/** The bodies that functions of this package parse. All others are checked by their schema. */
const PARSERS: Readonly<Record<string, (body: unknown) => { readonly ok: boolean }>> = {
  CheckRequest: (body) => parseCheckRequest(body),
  BatchRequest: parseBatchRequest,
  ReserveRequest: parseReserveRequest,
  AcquireRequest: parseAcquireRequest,
  SettleRequest: parseSettleRequest,
  ReservationRequest: parseReservationRequest,
  ReportRequest: parseReportRequest,
  ResetRequest: parseResetRequest,
  EnvoyRequest: parseEnvoyRequest,
}

describe('the schemas by which the service checks bodies', () => {
  // What the check of rule sets understands: bodies are checked by the same code.
  const keywords = [
    ...['$ref', 'title', 'description', 'examples', 'type', 'enum', 'const', 'anyOf'],
    ...['properties', 'required', 'additionalProperties', 'propertyNames', 'minProperties'],
    ...['items', 'minItems', 'maxItems', 'minimum', 'maximum', 'exclusiveMinimum'],
    ...['pattern', 'minLength', 'maxLength'],
  ]

  it('use only keywords that it understands', () => {
    const foreign = sent
      .filter((name) => !Object.hasOwn(PARSERS, name))
      .flatMap((name) => partsOf(SCHEMAS[name]!, name))
      .flatMap(([path, schema]) => [
        ...Object.keys(schema)
          .filter((keyword) => !keywords.includes(keyword))
          .map((keyword) => `${path} ${keyword}`),
        ...(Array.isArray(schema.type) ? [`${path} has several types`] : []),
      ])
    expect(foreign).toEqual([])
  })
})

const texts = fc.oneof(
  fc.string({ maxLength: 4 }),
  fc.constantFrom(
    '',
    '/',
    '/a',
    'a/b',
    '*',
    'a',
    'GET',
    'GET /',
    'a\nb',
    'ü',
    '-a',
    'a_.@-9',
    '\u007f',
    '\u0085',
    '1.2.3.4',
    '::1',
    '1.2.3.4:80',
  ),
  fc
    .constantFrom(45, 46, 64, 65, 256, 257, 512, 513, 1000, 1001, 2047, 2048, 2049, 8192, 8193)
    .map((length) => 'x'.repeat(length)),
)
const numbers = fc.oneof(
  fc.integer({ min: -1, max: 2 }),
  fc.constantFrom(0.5, 1e9, 1e9 + 1, 86_400_000, 86_400_001, 30_000, 30_001),
)
const scalars = fc.oneof(texts, numbers, fc.constant(null), fc.boolean())
const descriptors = fc.oneof(
  fc.dictionary(fc.constantFrom('a', 'b.c', '9', 'x'.repeat(64), 'x'.repeat(65)), scalars, { maxKeys: 3 }),
  fc
    .constantFrom(32, 33)
    .map((count) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`d${index}`, 1]))),
)

/** A value that fits, or any at all. */
function mostly(fitting: unknown, any: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 2, arbitrary: fc.constant(fitting) }, { weight: 1, arbitrary: any })
}

/** Bodies with fields of a check, some right, some wrong. An address is right or is none at all. */
const checkBodies = fc.record(
  {
    userId: mostly('u', scalars),
    apiKey: mostly('k', scalars),
    clientIp: fc.constantFrom('1.2.3.4', '2001:db8::1', 'localhost', '', 7),
    tenantId: mostly('t', scalars),
    resource: mostly('/a', scalars),
    method: mostly('GET', scalars),
    tokens: mostly(3, scalars),
    descriptors: fc.oneof(descriptors, scalars),
    region: mostly('EU', scalars),
    tier: mostly('premium', scalars),
    service: mostly('billing', scalars),
  },
  { requiredKeys: ['resource'] },
)

/** At most two fields besides the resource, so that many are valid. */
const fewFields = fc.tuple(checkBodies, fc.nat(), fc.nat()).map(([body, one, other]) => {
  const entries = Object.entries(body).filter(([name]) => name !== 'resource')
  const kept = [entries[one % (entries.length || 1)], entries[other % (entries.length || 1)]]
  return { resource: body.resource, ...Object.fromEntries(kept.filter((entry) => entry !== undefined)) }
})

const callReports = fc.record(
  { resource: mostly('/a', scalars), method: mostly('GET', scalars), failed: mostly(true, scalars) },
  { requiredKeys: ['resource'] },
)

const longLists = fc
  .constantFrom(1000, 1001)
  .map((length) => Array.from({ length }, () => ({ resource: '/a', failed: false })))

/**
 * A number of Envoy's protocol that fits, or anything at all; as text only where the number of its digits says whether
 * it fits.
 */
const envoyCounts = mostly(
  3,
  fc.oneof(fc.constantFrom('3', '', '-1', '1.5', '12345678901', 4_294_967_295, 4_294_967_296), scalars),
)

const envoyEntries = fc.record({ key: mostly('k', scalars), value: mostly('v', scalars) }, { requiredKeys: ['key'] })

const envoyDescriptors = fc.record(
  {
    entries: fc.oneof(
      { weight: 4, arbitrary: fc.array(envoyEntries, { minLength: 1, maxLength: 2 }) },
      { weight: 1, arbitrary: fc.constantFrom(0, 32, 33).map((length) => Array(length).fill({ key: 'k' })) },
    ),
    limit: mostly(
      { unit: 'DAY' },
      fc.oneof(
        fc.record({ unit: fc.constantFrom('MINUTE', 'WEEK', 'minute', 1), requestsPerUnit: envoyCounts }),
        scalars,
      ),
    ),
    hits_addend: envoyCounts,
  },
  { requiredKeys: ['entries'] },
)

const BODIES: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  CheckRequest: fewFields,
  BatchRequest: fc.record({ requests: fc.oneof(fc.array(fewFields, { maxLength: 2 }), scalars) }),
  ReserveRequest: fc
    .tuple(fewFields, mostly(1000, numbers))
    .map(([body, expiresAfterMs]) => ({ ...body, expiresAfterMs })),
  AcquireRequest: fc.tuple(fewFields, mostly(1000, numbers)).map(([body, maxWaitMs]) => ({ ...body, maxWaitMs })),
  SettleRequest: fc.record(
    { reservationId: mostly('r', scalars), tokens: mostly(1, scalars) },
    { requiredKeys: ['reservationId'] },
  ),
  ReservationRequest: fc.record({ reservationId: mostly('r', scalars) }),
  ReportRequest: fc.record({ reports: fc.oneof(fc.array(callReports, { maxLength: 2 }), longLists, scalars) }),
  // It needs at least one part besides the note, which its schema does not say.
  ResetRequest: fc.record(
    { userId: mostly('u', scalars), resource: mostly('/a', scalars), note: mostly('why', scalars) },
    { requiredKeys: ['userId'] },
  ),
  // That a field stands under one of its names only is not said by its schema.
  EnvoyRequest: fc.record(
    {
      domain: mostly('shop', scalars),
      descriptors: fc.oneof(
        { weight: 4, arbitrary: fc.array(envoyDescriptors, { maxLength: 2 }) },
        {
          weight: 1,
          arbitrary: fc.constantFrom(100, 101).map((length) => Array(length).fill({ entries: [{ key: 'k' }] })),
        },
        { weight: 1, arbitrary: scalars },
      ),
      hitsAddend: envoyCounts,
    },
    { requiredKeys: ['domain', 'descriptors'] },
  ),
}

describe('parsers and schemas agree', () => {
  it.each(Object.keys(PARSERS))('property: on %s', (name) => {
    const validate = validatorOf(name)
    const seen = { valid: 0, invalid: 0 }
    fc.assert(
      fc.property(BODIES[name]!, (body) => {
        const isValid = validate(body)
        seen[isValid ? 'valid' : 'invalid'] += 1
        expect([body, PARSERS[name]!(body).ok]).toEqual([body, isValid])
      }),
      { numRuns: 1000 },
    )
    expect(seen.valid).toBeGreaterThan(50)
    expect(seen.invalid).toBeGreaterThan(50)
  })
})

describe('what is answered', () => {
  it('property: to a check, is valid', () => {
    const validate = validatorOf('CheckAnswer')
    const decision: fc.Arbitrary<DecisionLike> = fc.record({
      allowed: fc.boolean(),
      reason: fc.constantFrom('allowed', 'exempt', 'unlimited', 'limit', 'never', 'blocked', 'denied', 'unavailable'),
      rule: fc.string(),
      limit: fc.oneof(fc.nat(), fc.constant(Number.POSITIVE_INFINITY)),
      remaining: fc.nat(),
      resetAt: fc.nat(4_000_000_000_000),
      retryAfterMs: fc.oneof(fc.nat(), fc.constant(Number.POSITIVE_INFINITY)),
      delayMs: fc.nat(5),
      version: fc.nat(),
      failure: fc.option(
        fc.record({
          mode: fc.constantFrom('open', 'closed', 'local'),
          cause: fc.constantFrom('deadline', 'unreachable', 'refused', 'breaker'),
          charged: fc.constantFrom('no', 'unknown'),
        }),
        { nil: undefined },
      ),
    })
    fc.assert(
      fc.property(decision, fc.option(fc.string(), { nil: undefined }), (made, id) => {
        const answer: unknown = JSON.parse(checkAnswerJson(checkAnswer(made, 'user', id)))
        expect([answer, validate(answer), validate.errors]).toEqual([answer, true, null])
      }),
    )
  })

  it('property: as Envoy asks, is valid and has nothing that is 0 or empty', () => {
    const validate = validatorOf('EnvoyAnswer')
    const codes = fc.constantFrom('ok' as const, 'over' as const)
    const counts = fc.oneof(fc.constant(0), fc.nat(), fc.constant(4_294_967_295))
    const limit = fc.record({
      requestsPerUnit: counts,
      unit: fc.constantFrom('second' as const, 'week' as const, 'year' as const),
      name: fc.option(fc.string(), { nil: undefined }),
    })
    const status = fc.record({
      code: codes,
      limit: fc.option(limit, { nil: undefined }),
      remaining: counts,
      resetAfterSeconds: fc.nat(),
    })
    const metadata = fc.option(fc.constant({ pool: 'blue' }), { nil: undefined })
    const request = { domain: 'shop', descriptors: [{ entries: [{ key: 'user', value: 'a' }] }] }
    fc.assert(
      fc.property(fc.record({ code: codes, statuses: fc.array(status), metadata }), (decision) => {
        const answer = JSON.parse(JSON.stringify(envoyAnswer(decision, request)))
        expect([answer, validate(answer), validate.errors]).toEqual([answer, true, null])
        expect(JSON.stringify(answer)).not.toMatch(/:(?:0|"")[,}]/)
      }),
    )
  })

  it.each(Object.keys(PROBLEMS) as ProblemCode[])('as %s, is valid', (code) => {
    const errors = [{ path: '/a', received: 'b', expected: 'c', line: 1 }]
    const checks = [{ name: 'redis', ready: false, detail: 'away' }]
    const validate = validatorOf('Problem')
    for (const details of [{}, { errors }, { checks }]) {
      expect(validate(problemDocument(code, { detail: 'd', ...details }))).toBe(true)
    }
  })
})
