import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isSluiceError } from '../../errors.ts'
import type { PolicyRequest } from '../rule-set/policy-request.ts'
import type { RequestMatch } from '../rule-set/rule-set.ts'
import { CidrTable, parseCidr } from './cidr.ts'
import { parseIp } from './ip-address.ts'
import type { EntityOf, MatchEntry, MatchTableOptions } from './match-table.ts'
import { MatchTable } from './match-table.ts'
import { ResourceTable } from './resource-table.ts'

const DENY: MatchTableOptions = { purpose: 'deny' }
const LIFT: MatchTableOptions = { purpose: 'lift' }

/** A table of matches whose values are their numbers. */
function tableOf(...list: readonly RequestMatch[]): MatchTable<number> {
  return new MatchTable(
    list.map((match, value) => ({ match, value })),
    DENY,
  )
}

function entityOf(request: PolicyRequest): EntityOf {
  return (dimension) => (dimension === 'user' ? request.user : request.tenant)
}

function find<T>(table: MatchTable<T>, request: Partial<PolicyRequest>, nowMs = 0): T | undefined {
  const whole = { resource: '/', ...request }
  return table.find(whole, entityOf(whole), nowMs)
}

describe('a match', () => {
  it.each<[string, RequestMatch, Partial<PolicyRequest>, Partial<PolicyRequest>]>([
    ['resource', { resource: '/orders/:id' }, { resource: '/Orders/17/' }, { resource: '/orders' }],
    ['methods', { methods: ['post'] }, { method: 'POST' }, { method: 'GET' }],
    [
      'resource and methods',
      { resource: '/orders', methods: ['GET'] },
      { resource: '/orders', method: 'GET' },
      { resource: '/orders', method: 'POST' },
    ],
    ['entities', { dimension: 'user', entities: ['u1', 'u2'] }, { user: 'u2' }, { user: 'u3' }],
    ['entities of their dimension', { dimension: 'user', entities: ['u1'] }, { user: 'u1' }, { tenant: 'u1' }],
    ['addresses', { cidrs: ['10.0.0.0/8', '::1'] }, { ip: '::ffff:10.2.3.4' }, { ip: '11.2.3.4' }],
    ['addresses that can be read', { cidrs: ['0.0.0.0/0'] }, { ip: '1.2.3.4' }, { ip: '1.2.3' }],
    ['addresses that are there', { cidrs: ['0.0.0.0/0', '::/0'] }, { ip: '::2' }, {}],
    ['services', { services: ['billing', 'mail'] }, { service: 'mail' }, { service: 'Mail' }],
    ['services that are named', { services: ['billing'] }, { service: 'billing' }, {}],
  ])('by %s', (_title, match, meeting, failing) => {
    const table = tableOf(match)
    expect(find(table, meeting)).toBe(0)
    expect(find(table, failing)).toBeUndefined()
  })

  const all: RequestMatch = {
    resource: '/orders',
    methods: ['GET'],
    dimension: 'user',
    entities: ['u1'],
    cidrs: ['10.0.0.0/8'],
    services: ['billing'],
  }
  const request: PolicyRequest = { resource: '/orders', method: 'GET', user: 'u1', ip: '10.0.0.1', service: 'billing' }

  it('of all parts needs every one of them', () => {
    const table = tableOf(all)
    expect(find(table, request)).toBe(0)
    for (const other of [{ resource: '/' }, { method: 'PUT' }, { user: 'u2' }, { ip: '11.0.0.1' }, { service: 'x' }]) {
      expect(find(table, { ...request, ...other })).toBeUndefined()
    }
  })

  it.each([
    ['entities', { user: 'u2' }, { entities: ['u2'], dimension: 'user' }],
    ['addresses', { ip: '11.0.0.1' }, { cidrs: ['11.0.0.0/8'] }],
    ['services', { service: 'mail' }, { services: ['mail'] }],
    ['resource', { resource: '/items' }, { resource: '/items' }],
  ])('of all parts needs every one of them when it is found by its %s', (_part, other, different) => {
    // Of a hundred entries that differ in one part, each is found by that part and the others are compared.
    const rest = Array.from({ length: 100 }, () => all)
    const table = tableOf(...rest, { ...all, ...different })
    expect(find(table, { ...request, ...other })).toBe(100)
    for (const wrong of [{ method: 'PUT' }, { resource: '/x' }, { user: 'x' }, { ip: '12.0.0.1' }, { service: 'x' }]) {
      expect(find(table, { ...request, ...other, ...wrong })).toBeUndefined()
    }
  })

  it.each<[string, RequestMatch]>([
    ['without any part', {}],
    ['with a dimension only', { dimension: 'user' }],
    ['with no entities', { dimension: 'user', entities: [] }],
    ['with no addresses', { resource: '/', cidrs: [] }],
    ['with no services', { resource: '/', services: [] }],
    ['with no methods', { resource: '/', methods: [] }],
  ])('%s is met by nothing', (_title, match) => {
    const table = tableOf(match)
    expect(find(table, { user: 'u1', method: 'GET', ip: '1.2.3.4', service: 'billing' })).toBeUndefined()
    expect(table.isEmpty).toBe(true)
  })

  it('with an invalid address is rejected when the table is created', () => {
    let thrown: unknown
    try {
      tableOf({ cidrs: ['10.0.0.1/8'] })
    } catch (error) {
      thrown = error
    }
    expect(isSluiceError(thrown, 'SLUICE_INVALID_RULE_SET')).toBe(true)
    expect(String(thrown)).toContain('10.0.0.0/8')
  })
})

describe('a table of matches', () => {
  it('gives the first of the list that a request meets, whatever it is found by', () => {
    const list: RequestMatch[] = [
      { resource: '/a' },
      { dimension: 'user', entities: ['u1'] },
      { cidrs: ['10.0.0.0/8'] },
      { services: ['billing'] },
      { dimension: 'tenant', entities: ['t1'] },
      { cidrs: ['10.0.0.0/16'] },
      { resource: '*' },
    ]
    const request = { resource: '/a', user: 'u1', tenant: 't1', ip: '10.0.0.1', service: 'billing' }
    for (let turn = 0; turn < list.length; turn++) {
      const turned = [...list.slice(turn), ...list.slice(0, turn)]
      expect(find(tableOf(...turned), request)).toBe(0)
    }
  })

  it('passes over entries that have expired', () => {
    const match: RequestMatch = { dimension: 'user', entities: ['u1'] }
    const table = new MatchTable<string>(
      [
        { match, value: 'short', expiresAt: 1000 },
        { match, value: 'long' },
      ],
      DENY,
    )
    expect(find(table, { user: 'u1' }, 999)).toBe('short')
    expect(find(table, { user: 'u1' }, 1000)).toBe('long')
  })

  it('does not find an entry by what only another one names', () => {
    const table = new MatchTable<string>(
      [
        { match: { dimension: 'user', entities: ['u1', 'u2'] }, value: 'both', expiresAt: 1000 },
        { match: { dimension: 'user', entities: ['u1'] }, value: 'one' },
      ],
      DENY,
    )
    expect(find(table, { user: 'u1' }, 1000)).toBe('one')
    expect(find(table, { user: 'u2' }, 1000)).toBeUndefined()
  })

  it('is empty without entries, and then reads nothing of a request', () => {
    const table = tableOf()
    const ask: EntityOf = () => {
      throw new Error('asked')
    }
    expect(table.isEmpty).toBe(true)
    expect(table.find({ resource: '/' }, ask, 0)).toBeUndefined()
    expect(tableOf({ resource: '/' }).isEmpty).toBe(false)
  })

  it('compares entities in the spelling of requests', () => {
    const match: RequestMatch = { dimension: 'user', entities: ['U1'] }
    const options: MatchTableOptions = { ...DENY, canonicalEntity: (dimension, entity) => `${dimension}:${entity}` }
    const table = new MatchTable([{ match, value: 1 }], options)
    expect(find(table, { user: 'user:U1' })).toBe(1)
    expect(find(table, { user: 'U1' })).toBeUndefined()
  })

  it('denies by any reading of a path, and lifts limits only by all of them', () => {
    const entries: MatchEntry<string>[] = [{ match: { resource: '/health/*' }, value: 'found' }]
    const denying = new MatchTable(entries, DENY)
    const lifting = new MatchTable(entries, LIFT)
    // Read as one segment below /health, or as the way to /orders.
    const odd = { resource: '/health/..%2forders' }
    expect(find(denying, odd)).toBe('found')
    expect(find(lifting, odd)).toBeUndefined()
    expect(find(lifting, { resource: '/health/live' })).toBe('found')
  })

  it('denies requests without a method, and does not lift limits for them', () => {
    const entries: MatchEntry<string>[] = [{ match: { resource: '/a', methods: ['GET'] }, value: 'found' }]
    expect(find(new MatchTable(entries, DENY), { resource: '/a' })).toBe('found')
    expect(find(new MatchTable(entries, LIFT), { resource: '/a' })).toBeUndefined()
  })

  it('finds each of 5000 entities, of one entry or of as many', () => {
    const entities = Array.from({ length: 5000 }, (_, index) => `u${index}`)
    const one = tableOf({ dimension: 'user', entities })
    const many = tableOf(...entities.map((entity) => ({ dimension: 'user', entities: [entity] })))
    for (const [index, user] of entities.entries()) {
      expect(find(one, { user })).toBe(0)
      expect(find(many, { user })).toBe(index)
    }
    expect(find(one, { user: 'x' })).toBeUndefined()
    expect(find(many, { user: 'x' })).toBeUndefined()
  })
})

const optional = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined })

const users = fc.constantFrom('e1', 'e2', 'e3')
const services = fc.constantFrom('s1', 's2')
const resources = fc.constantFrom('/a', '/a/:id', '/a/*', '/b', '*')
const cidrs = fc.constantFrom('10.0.0.0/8', '10.1.0.0/16', '10.1.1.1', '0.0.0.0/0', '::/0')
const methods = fc.constantFrom('GET', 'POST')

/** Only what is given, as in a rule set. */
function given<T extends object>(parts: T): T {
  return Object.fromEntries(Object.entries(parts).filter(([, part]) => part !== undefined)) as T
}

const matches = fc
  .record({
    resource: optional(resources),
    methods: optional(fc.array(methods, { maxLength: 2 })),
    who: optional(fc.record({ dimension: fc.constantFrom('user', 'tenant'), entities: fc.array(users) })),
    cidrs: optional(fc.array(cidrs, { maxLength: 3 })),
    services: optional(fc.array(services, { maxLength: 2 })),
  })
  .map(({ who, ...rest }) => given({ ...rest, ...who }) as RequestMatch)

const requests = fc
  .record({
    resource: fc.constantFrom('/a', '/a/1', '/a/1/2', '/b', '/b%2f..%2fa'),
    method: optional(methods),
    user: optional(users),
    tenant: optional(users),
    ip: optional(fc.constantFrom('10.1.1.1', '10.1.2.3', '10.2.0.0', '11.0.0.1', '::1', 'nowhere')),
    service: optional(services),
  })
  .map((request) => given(request) as PolicyRequest)

/** Whether a request meets a match, part by part. */
function meets(request: PolicyRequest, match: RequestMatch, purpose: MatchTableOptions['purpose']): boolean {
  const parts: boolean[] = []
  if (match.entities !== undefined) {
    parts.push(match.entities.includes((match.dimension === 'user' ? request.user : request.tenant) ?? 'absent'))
  }
  if (match.cidrs !== undefined) {
    const table = new CidrTable(match.cidrs.map((text) => ({ cidr: cidrOf(text), value: text })))
    const address = parseIp(request.ip ?? '')
    parts.push(address !== undefined && table.find(address).length > 0)
  }
  if (match.services !== undefined) parts.push(match.services.includes(request.service ?? 'none'))
  if (match.resource !== undefined || match.methods !== undefined) {
    const table = new ResourceTable([{ pattern: match.resource ?? '*', methods: match.methods, value: true }])
    const { resource, method } = request
    const found = purpose === 'lift' ? table.findCertain(resource, method) : table.find(resource, method)
    parts.push(found.length > 0 && match.methods?.length !== 0)
  }
  return parts.length > 0 && parts.every(Boolean)
}

function cidrOf(text: string): Exclude<ReturnType<typeof parseCidr>, { problem: string }> {
  const cidr = parseCidr(text)
  if ('problem' in cidr) throw new Error(cidr.problem)
  return cidr
}

it.each(['deny', 'lift'] as const)('a table to %s finds what comparing one by one finds', (purpose) => {
  const entries = fc.array(fc.record({ match: matches, expiresAt: optional(fc.constantFrom(5, 50)) }), {
    maxLength: 30,
  })
  fc.assert(
    fc.property(entries, fc.array(requests, { minLength: 1, maxLength: 10 }), (list, asked) => {
      const table = new MatchTable(
        list.map(({ match, expiresAt }, value) => ({ match, value, expiresAt })),
        { purpose },
      )
      for (const request of asked) {
        const expected = list.findIndex(
          ({ match, expiresAt = Number.POSITIVE_INFINITY }) => expiresAt > 10 && meets(request, match, purpose),
        )
        expect(find(table, request, 10) ?? -1).toBe(expected)
      }
    }),
    { numRuns: 1000 },
  )
})
