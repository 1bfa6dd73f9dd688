import { describe, expect, it } from 'vitest'
import { fileContent } from './rule-set-file.ts'

describe('what is in a file', () => {
  it('is a rule set with what stands beside it, and instants in milliseconds', () => {
    const rules = [{ resource: '*', dimension: 'ip', limit: 1, window: '1s' }] as const
    const match = { services: ['x'] }
    expect(
      fileContent({
        $schema: './sluice.schema.json',
        version: 1,
        service: { port: 8081 },
        rules,
        incident: 0.5,
        denyList: [
          { name: 'a', match, expiresAt: '2026-12-31' },
          { name: 'b', match, expiresAt: 17 },
          { name: 'c', match },
        ],
        overrides: [{ dimension: 'user', entity: 'u', resource: '*', terms: { limit: 5 }, expiresAt: '1970-01-02' }],
        members: [{ dimension: 'user', entity: 'u', tier: 't', expiresAt: '1970-01-01T00:00:01Z' }],
      }),
    ).toEqual({
      service: { port: 8081 },
      ruleSet: {
        rules,
        incident: 0.5,
        denyList: [
          { name: 'a', match, expiresAt: Date.UTC(2026, 11, 31) },
          { name: 'b', match, expiresAt: 17 },
          { name: 'c', match },
        ],
      },
      overrides: [{ dimension: 'user', entity: 'u', resource: '*', terms: { limit: 5 }, expiresAt: 86_400_000 }],
      members: [{ dimension: 'user', entity: 'u', tier: 't', expiresAt: 1000 }],
    })
  })

  it('keeps the parts for a gateway apart, as they stand', () => {
    const routes = [{ name: 'a' }]
    expect(fileContent({ rules: [], gateway: { accessLog: 'json' }, routes, upstreams: {} })).toEqual({
      gateway: { gateway: { accessLog: 'json' }, routes, upstreams: {} },
      ruleSet: { rules: [] },
      overrides: [],
      members: [],
    })
    expect(fileContent({ rules: [], routes }).gateway).toEqual({ routes })
  })

  it('may be rules alone', () => {
    expect(fileContent({ rules: [] })).toEqual({ ruleSet: { rules: [] }, overrides: [], members: [] })
  })
})
