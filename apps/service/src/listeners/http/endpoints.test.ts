import type { Operation } from '@sluice/contract'
import { InFlight } from '@sluice/runtime'
import { describe, expect, it } from 'vitest'
import type { RequestContext } from '../../operations/handler.ts'
import { jsonAnswer } from '../../operations/handler.ts'
import type { Endpoint, EndpointParts, UndecodedRequest } from './endpoints.ts'
import { operationRoutes } from './endpoints.ts'
import { BodyReader } from './request-body.ts'

const READER = new BodyReader(1_000_000)

const PUT_TIER: Operation = {
  id: 'putTier',
  method: 'PUT',
  path: '/admin/tiers/{name}',
  role: 'editor',
  summary: 'Puts a tier',
  description: 'Puts a tier.',
  tag: 'rules',
  parameters: {
    name: { in: 'path', required: true, description: 'Its name.', schema: { type: 'string', maxLength: 8 } },
    count: {
      in: 'query',
      required: false,
      description: 'A number.',
      schema: { type: 'integer', minimum: 1, maximum: 9, default: 3 },
    },
    mode: { in: 'query', required: true, description: 'A word.', schema: { enum: ['one', 'two'] } },
  },
  body: { $ref: '#/components/schemas/Tier' },
  maxBodyBytes: 1000,
  answers: {},
  hasEtag: false,
  isPaged: false,
  streams: false,
}

const { body: _body, ...WITHOUT_BODY } = PUT_TIER

const LIVEZ: Operation = {
  ...WITHOUT_BODY,
  id: 'livez',
  method: 'GET',
  path: '/livez',
  role: 'none',
  parameters: {},
}

const TIER = {
  type: 'object',
  properties: {
    multiplier: { type: 'number', minimum: 0 },
    parts: { type: 'array', items: { $ref: '#/components/schemas/Part' } },
  },
  required: ['multiplier'],
  additionalProperties: false,
}

function endpointOf(operation: Operation, more: Partial<EndpointParts> = {}): Endpoint {
  const [route] = operationRoutes({
    operations: [operation],
    handlers: { [operation.id]: () => jsonAnswer(200, '{}') },
    components: { Tier: TIER, Part: { type: 'string', minLength: 1 } },
    authenticator: { authenticate: (_, role) => ({ id: 'k1', name: 'ada', role }) },
    treatmentOf: () => ({
      inFlightLimit: undefined,
      bodies: READER,
      needsKey: false,
      hasRequestId: true,
    }),
    ...more,
  })
  return route!.target
}

/** A request as far as its head is concerned. */
function asked(name: string, query: string, headers: UndecodedRequest['headers'] = {}): UndecodedRequest {
  return { params: { name }, query: new URLSearchParams(query), hasQuery: query !== '', headers }
}

function rejectionOf(endpoint: Endpoint, name: string, query: string): unknown {
  const decoded = endpoint.decode(asked(name, query))
  return decoded.ok ? undefined : JSON.parse(decoded.answer.body).errors
}

describe('the parameters of an operation', () => {
  const endpoint = endpointOf(PUT_TIER)

  it.each([
    ['mode=one', { name: 'gold', mode: 'one', count: 3 }],
    ['mode=two&count=9', { name: 'gold', mode: 'two', count: 9 }],
    ['count=1&mode=one', { name: 'gold', mode: 'one', count: 1 }],
  ])('are decoded, numbers as numbers and defaults filled in (%s)', (query, parameters) => {
    expect(endpoint.decode(asked('gold', query))).toEqual({ ok: true, parameters, precondition: undefined })
  })

  it.each([
    ['gold', '', [{ path: '?mode', received: 'nothing', expected: 'it to be given' }]],
    ['gold', 'mode=one&mode=two', [{ path: '?mode', received: 'it 2 times', expected: 'it once' }]],
    ['gold', 'mode=one&cuont=1', [{ path: '?cuont', received: 'an unknown parameter', expected: 'only count, mode' }]],
    ['gold', 'mode=three', [{ path: '?mode', received: '"three"', expected: expect.stringContaining('"one", "two"') }]],
    ['gold', 'mode=one&count=10', [{ path: '?count', received: '10', expected: 'a whole number from 1 to 9' }]],
    ['gold', 'mode=one&count=1.5', [{ path: '?count', received: '"1.5"', expected: 'a whole number from 1 to 9' }]],
    ['much too long', 'mode=one', [{ path: '?name', received: '"much too long"', expected: expect.any(String) }]],
  ])('%s?%s are rejected', (name, query, errors) => {
    expect(rejectionOf(endpoint, name, query)).toEqual(errors)
  })

  it('are all reported in one answer', () => {
    expect(rejectionOf(endpoint, 'gold', 'x=1&count=0')).toHaveLength(3)
  })

  it('of a public operation that takes nothing are not looked at', () => {
    expect(rejectionOf(endpointOf(LIVEZ), '', 'bogus=1')).toBeUndefined()
  })

  it('of any other operation without parameters are rejected, and a query that is not there is not read', () => {
    const own = endpointOf({ ...PUT_TIER, path: '/admin/tiers', role: 'none', parameters: {} })
    const unread = {
      ...asked('', ''),
      get query(): URLSearchParams {
        return expect.fail('a query that is not there is not read')
      },
    }
    expect(own.decode(unread)).toEqual({ ok: true, parameters: {}, precondition: undefined })
    expect(rejectionOf(own, '', 'bogus=1')).toEqual([
      { path: '?bogus', received: 'an unknown parameter', expected: 'no parameters' },
    ])
  })
})

describe('the precondition of an operation', () => {
  it('is decoded where the table says that changes take one', () => {
    const request = asked('gold', 'mode=one', { 'if-match': '"7"' })
    expect(endpointOf({ ...PUT_TIER, hasEtag: true }).decode(request)).toMatchObject({ precondition: 7 })
    expect(endpointOf(PUT_TIER).decode(request)).toMatchObject({ precondition: undefined })
  })

  it('that cannot be understood does not hold', () => {
    const decoded = endpointOf({ ...PUT_TIER, hasEtag: true }).decode(asked('gold', 'mode=one', { 'if-match': 'x' }))
    expect(decoded).toMatchObject({ ok: false, answer: { status: 412 } })
  })
})

describe('the body of an operation', () => {
  const { body } = endpointOf(PUT_TIER)

  function wrongPaths(value: unknown): readonly string[] {
    const decoded = body!.decode(value)
    return decoded.ok ? [] : decoded.problems.map(({ path }) => path)
  }

  it('is checked by the schema that the table names, and those it refers to', () => {
    const right = { multiplier: 2, parts: ['a'] }
    expect(body!.decode(right)).toEqual({ ok: true, body: right })
    expect(wrongPaths({ multiplier: -1, mulitplier: 1, parts: ['', 3] })).toEqual([
      '/multiplier',
      '/mulitplier',
      '/parts/0',
      '/parts/1',
    ])
  })

  it.each([null, 'text', [], 7])('is no %j', (value) => {
    expect(wrongPaths(value)).toEqual([''])
  })

  it('of a check is read by the reader of the contract', () => {
    const check = endpointOf({ ...PUT_TIER, id: 'check' }).body!
    expect(check.decode({ resource: '/a', userId: 'u' })).toMatchObject({
      ok: true,
      body: { request: { resource: '/a', user: 'u', tokens: 1 } },
    })
    expect(check.decode({ userId: 'u' })).toMatchObject({ ok: false, problems: [{ path: '/resource' }], unlisted: 0 })
  })

  it('whose schema is missing or cannot be checked by is a mistake that is found at once', () => {
    expect(() => endpointOf(PUT_TIER, { components: {} })).toThrow('#/components/schemas/Tier')
    expect(() => endpointOf(PUT_TIER, { components: { Tier: { oneOf: [] } } })).toThrow('oneOf')
  })
})

describe('who may', () => {
  it('is authenticated for the role of the operation, or for any key where one is required', () => {
    expect(endpointOf(PUT_TIER).admit!({ headers: {} } as RequestContext)).toMatchObject({ role: 'editor' })
    expect(endpointOf(LIVEZ).admit).toBeUndefined()
    const treatment = {
      inFlightLimit: undefined,
      bodies: READER,
      needsKey: true,
      hasRequestId: true,
    }
    const { admit } = endpointOf(LIVEZ, { treatmentOf: () => treatment })
    expect(admit!({ headers: {} } as RequestContext)).toMatchObject({ role: 'none' })
  })
})

describe('routes', () => {
  it('are those of operations that have a handler', () => {
    const routes = operationRoutes({
      operations: [PUT_TIER, LIVEZ],
      handlers: { livez: () => jsonAnswer(200, '{}') },
      components: { Tier: TIER, Part: {} },
      authenticator: { authenticate: () => jsonAnswer(401, '{}') },
      treatmentOf: () => ({
        inFlightLimit: new InFlight({ most: 1 }),
        bodies: READER,
        needsKey: false,
        hasRequestId: true,
      }),
    })
    expect(routes.map(({ path, method, target }) => [path, method, target.name])).toEqual([
      ['/livez', 'GET', 'GET /livez'],
    ])
  })
})
