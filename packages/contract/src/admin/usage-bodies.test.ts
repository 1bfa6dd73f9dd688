import { describe, expect, it } from 'vitest'
import { parseResetRequest, parseUsageQuery } from './usage-bodies.ts'

describe('a question for usage', () => {
  it('says who, and under which rules', () => {
    const query = { user: 'u', apiKey: 'k', ip: '::1', tenant: 't', service: 's', resource: '/a' }
    expect(parseUsageQuery(query)).toEqual({ ok: true, who: query })
  })

  it('may name identities as userId, clientIp and tenantId', () => {
    const query = { userId: 'u', clientIp: '::1', tenantId: 't' }
    expect(parseUsageQuery(query)).toEqual({ ok: true, who: { user: 'u', ip: '::1', tenant: 't' } })
  })

  it('may name descriptors, as JSON', () => {
    const query = { user: 'u', descriptors: '{"model":"large","level":3}' }
    expect(parseUsageQuery(query)).toEqual({ ok: true, who: { user: 'u', descriptors: { model: 'large', level: 3 } } })
  })

  it('may be about what everybody shares', () => {
    expect(parseUsageQuery({ resource: '/a' })).toEqual({ ok: true, who: { resource: '/a' } })
  })

  it.each([
    [{}, '?', 'none', 'at least one of user, apiKey, ip, tenant, service, resource, descriptors'],
    [{ clientIp: '1.2.3' }, '?clientIp', 'a string of 5 characters', 'an IPv4 or IPv6 address'],
    [{ usr: 'u' }, '?usr', 'an unknown field', 'only user, apiKey, ip, tenant, service, userId, clientIp, tenantId'],
    [{ user: 'u', tokens: '1' }, '?tokens', 'an unknown field', 'only user'],
    [{ user: 'u', userId: 'v' }, '?userId', 'a value that "user" does not have', 'the value of "user"'],
    [{ descriptors: 'model=large' }, '?descriptors', 'invalid JSON', 'such as {"model":"large"}'],
    [{ descriptors: '["large"]' }, '?descriptors', 'an array', 'an object of at most 32 descriptors'],
    [{ descriptors: 'null' }, '?descriptors', 'null', 'an object of at most 32 descriptors'],
    [{ descriptors: '{"model":""}' }, '?descriptors/model', 'an empty string', 'a number, or a string'],
    [{ user: 'u', descriptors: '{"user":"v"}' }, '?descriptors/user', 'a value that "user"', 'the value of "user"'],
  ])('is refused as %j', (query, path, received, expected) => {
    expect(parseUsageQuery(query as unknown as Record<string, string>)).toMatchObject({
      ok: false,
      problems: [{ path, received: expect.stringContaining(received), expected: expect.stringContaining(expected) }],
    })
  })
})

describe('a reset', () => {
  it('says who, under which rules, and why', () => {
    const body = { user: 'u', service: 's', descriptors: { model: 'large' }, resource: '/a', note: 'import' }
    const { note, ...who } = body
    expect(parseResetRequest(body)).toEqual({ ok: true, who, note })
    expect(parseResetRequest({ ...body, units: 3 })).toEqual({ ok: true, who, units: 3, note })
  })

  it.each([
    [{}, '', 'at least one of user, apiKey, ip, tenant, service, resource, descriptors'],
    [{ note: 'x' }, '', 'at least one of user'],
    [{ userId: 'u', note: '' }, '/note', 'a string of 1 to 1000 characters'],
    [{ userId: 'u', method: 'GET' }, '/method', 'only user, '],
    [{ userId: 'u', units: 0 }, '/units', 'a whole number from 1 to 1000000000'],
    [{ units: 3 }, '', 'at least one of user'],
    [[], '', 'a JSON object that says who is meant'],
  ])('is refused as %j', (body, path, expected) => {
    expect(parseResetRequest(body)).toMatchObject({
      ok: false,
      problems: [{ path, expected: expect.stringContaining(expected) }],
    })
  })
})
