import { describe, expect, it } from 'vitest'
import { componentsOf } from './openapi.ts'

describe('componentsOf', () => {
  it('names the whole and its definitions, and lets them refer to each other by these names', () => {
    const schema = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: { rules: { type: 'array', items: { $ref: '#/$defs/rule' } } },
      $defs: {
        rule: {
          anyOf: [{ $ref: '#/$defs/denyEntry' }, { $ref: '#/$defs/denyEntry/properties/name', description: 'x' }],
        },
        denyEntry: { properties: { name: { type: 'string' }, off: false } },
      },
    }
    expect(componentsOf(schema, { root: 'RuleSet', definitions: { rule: 'PolicyRule' } })).toEqual({
      RuleSet: {
        type: 'object',
        properties: { rules: { type: 'array', items: { $ref: '#/components/schemas/PolicyRule' } } },
      },
      PolicyRule: {
        anyOf: [
          { $ref: '#/components/schemas/DenyEntry' },
          { $ref: '#/components/schemas/DenyEntry/properties/name', description: 'x' },
        ],
      },
      DenyEntry: { properties: { name: { type: 'string' }, off: false } },
    })
  })
})
