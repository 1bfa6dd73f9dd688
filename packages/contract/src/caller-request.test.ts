import { describe, expect, it } from 'vitest'
import { parseResetRequest, parseUsageQuery } from './caller-request.ts'

describe('a question for usage', () => {
  it('says who, and under which rules', () => {
    const query = { userId: 'u', apiKey: 'k', clientIp: '::1', tenantId: 't', service: 's', resource: '/a' }
    expect(parseUsageQuery(query)).toEqual({ ok: true, who: query })
  })

  it('may be about what everybody shares', () => {
    expect(parseUsageQuery({ resource: '/a' })).toEqual({ ok: true, who: { resource: '/a' } })
  })

  it.each([
    [{}, '?', 'nobody', 'at least one of userId, apiKey, clientIp, tenantId, resource, service'],
    [{ clientIp: '1.2.3' }, '?clientIp', 'a text of 5 characters', 'an IPv4 or IPv6 address'],
    [{ user: 'u' }, '?user', 'an unknown field', 'only userId, apiKey, clientIp, tenantId, resource, service'],
    [{ userId: 'u', tokens: '1' }, '?tokens', 'an unknown field', 'only userId'],
  ])('is refused as %j', (query, path, received, expected) => {
    expect(parseUsageQuery(query as unknown as Record<string, string>)).toMatchObject({
      ok: false,
      problems: [{ path, received, expected: expect.stringContaining(expected) }],
    })
  })
})

describe('a reset', () => {
  it('says who, under which rules, and why', () => {
    const body = { userId: 'u', service: 's', descriptors: { model: 'large' }, resource: '/a', note: 'import' }
    const { note, ...who } = body
    expect(parseResetRequest(body)).toEqual({ ok: true, who, note })
  })

  it.each([
    [{}, '', 'at least one of userId, apiKey, clientIp, tenantId, resource, descriptors, service'],
    [{ note: 'x' }, '', 'at least one of userId'],
    [{ userId: 'u', note: '' }, '/note', 'a text of 1 to 1000 characters'],
    [{ userId: 'u', method: 'GET' }, '/method', 'only userId'],
    [[], '', 'a JSON object that says who is meant'],
  ])('is refused as %j', (body, path, expected) => {
    expect(parseResetRequest(body)).toMatchObject({
      ok: false,
      problems: [{ path, expected: expect.stringContaining(expected) }],
    })
  })
})
