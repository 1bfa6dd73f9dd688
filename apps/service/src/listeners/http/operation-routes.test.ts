import type { Operation } from '@sluice/contract'
import { InFlight } from '@sluice/runtime'
import { describe, expect, it } from 'vitest'
import type { OperationRequest } from '../../operations/handler.ts'
import { jsonAnswer } from '../../operations/handler.ts'
import type { Endpoint, RequestParameters } from './endpoint.ts'
import type { EndpointParts } from './operation-routes.ts'
import { operationRoutes } from './operation-routes.ts'
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
      schema: { type: 'integer', minimum: 1, maximum: 9 },
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

const LIVEZ: Operation = { ...PUT_TIER, id: 'livez', method: 'GET', path: '/livez', role: 'none', parameters: {} }

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
    handlers: { [`${operation.method} ${operation.path}`]: () => jsonAnswer(200, '{}') },
    components: { Tier: TIER, Part: { type: 'string', minLength: 1 } },
    authenticate: (_, role) => ({ id: 'k1', name: 'ada', role: role as 'editor' }),
    treatmentOf: () => ({
      inFlightLimit: undefined,
      bodies: READER,
      needsKey: false,
      checksItself: false,
      hasRequestId: true,
    }),
    ...more,
  })
  return route!.target
}

/** A request as far as parameters are concerned. */
function asked(name: string, query: string): OperationRequest & RequestParameters {
  const parameters: RequestParameters = { params: { name }, query: new URLSearchParams(query), hasQuery: query !== '' }
  return parameters as OperationRequest & RequestParameters
}

function refusalOf(endpoint: Endpoint, name: string, query: string): unknown {
  const answer = endpoint.rejectParameters!(asked(name, query))
  return answer === undefined ? undefined : JSON.parse(answer.body).errors
}

describe('the parameters of an operation', () => {
  const endpoint = endpointOf(PUT_TIER)

  it.each(['mode=one', 'mode=two&count=9', 'count=1&mode=one'])('are right with %s', (query) => {
    expect(refusalOf(endpoint, 'gold', query)).toBeUndefined()
  })

  it.each([
    ['gold', '', [{ path: '?mode', received: 'nothing', expected: 'it to be given' }]],
    ['gold', 'mode=one&mode=two', [{ path: '?mode', received: 'it 2 times', expected: 'it once' }]],
    ['gold', 'mode=one&cuont=1', [{ path: '?cuont', received: 'an unknown parameter', expected: 'only count, mode' }]],
    ['gold', 'mode=three', [{ path: '?mode', received: '"three"', expected: expect.stringContaining('"one", "two"') }]],
    ['gold', 'mode=one&count=10', [{ path: '?count', received: '10', expected: 'a whole number from 1 to 9' }]],
    ['gold', 'mode=one&count=1.5', [{ path: '?count', received: '"1.5"', expected: 'a whole number from 1 to 9' }]],
    ['much too long', 'mode=one', [{ path: '?name', received: '"much too long"', expected: expect.any(String) }]],
  ])('%s?%s are refused', (name, query, errors) => {
    expect(refusalOf(endpoint, name, query)).toEqual(errors)
  })

  it('are told all at once', () => {
    expect(refusalOf(endpoint, 'gold', 'x=1&count=0')).toHaveLength(3)
  })

  it('of a public operation that has none are not looked at', () => {
    expect(endpointOf(LIVEZ).rejectParameters).toBeUndefined()
  })

  it('are left to a handler that checks itself, but for those it does not have', () => {
    const treatment = {
      inFlightLimit: undefined,
      bodies: READER,
      needsKey: false,
      checksItself: true,
      hasRequestId: false,
    }
    const own = endpointOf({ ...PUT_TIER, parameters: {} }, { treatmentOf: () => treatment })
    expect([own.body?.problemsOf, own.body?.maxBytes]).toEqual([undefined, 1000])
    const unread = {
      params: {},
      hasQuery: false,
      get query(): URLSearchParams {
        return expect.fail('a query that is not there is not read')
      },
    }
    expect(own.rejectParameters!(unread)).toBeUndefined()
    expect(refusalOf(own, 'gold', 'bogus=1')).toEqual([
      { path: '?bogus', received: 'an unknown parameter', expected: 'no parameters' },
    ])
  })
})

describe('the body of an operation', () => {
  const { body } = endpointOf(PUT_TIER)

  it('is checked by the schema that the table names, and those it refers to', () => {
    expect(body!.problemsOf!({ multiplier: 2, parts: ['a'] })).toEqual([])
    expect(body!.problemsOf!({ multiplier: -1, mulitplier: 1, parts: ['', 3] }).map(({ path }) => path)).toEqual([
      '/multiplier',
      '/mulitplier',
      '/parts/0',
      '/parts/1',
    ])
  })

  it.each([null, 'text', [], 7])('is no %j', (value) => {
    expect(body!.problemsOf!(value)).toHaveLength(1)
  })

  it('whose schema is missing or cannot be checked by is a mistake that is found at once', () => {
    expect(() => endpointOf(PUT_TIER, { components: {} })).toThrow('#/components/schemas/Tier')
    expect(() => endpointOf(PUT_TIER, { components: { Tier: { oneOf: [] } } })).toThrow('oneOf')
  })
})

describe('who may', () => {
  it('is found out for the role of the operation, and for a key where one is asked for', () => {
    expect(endpointOf(PUT_TIER).admit!(asked('gold', ''))).toMatchObject({ role: 'editor' })
    expect(endpointOf(LIVEZ).admit).toBeUndefined()
    const treatment = {
      inFlightLimit: undefined,
      bodies: READER,
      needsKey: true,
      checksItself: false,
      hasRequestId: true,
    }
    expect(endpointOf(LIVEZ, { treatmentOf: () => treatment }).admit!(asked('', ''))).toMatchObject({ role: 'none' })
  })
})

describe('routes', () => {
  it('are those of operations that have a handler', () => {
    const routes = operationRoutes({
      operations: [PUT_TIER, LIVEZ],
      handlers: { 'GET /livez': () => jsonAnswer(200, '{}') },
      components: { Tier: TIER, Part: {} },
      authenticate: () => jsonAnswer(401, '{}'),
      treatmentOf: () => ({
        inFlightLimit: new InFlight({ most: 1 }),
        bodies: READER,
        needsKey: false,
        checksItself: false,
        hasRequestId: true,
      }),
    })
    expect(routes.map(({ path, method, target }) => [path, method, target.name])).toEqual([
      ['/livez', 'GET', 'GET /livez'],
    ])
  })

  it('are refused when a handler has no operation', () => {
    expect(() => endpointOf(LIVEZ, { handlers: { 'GET /livex': () => jsonAnswer(200, '{}') } })).toThrow('GET /livex')
  })
})
