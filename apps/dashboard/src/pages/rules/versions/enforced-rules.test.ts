import type { RuleSet } from '@sluice/core/policy'
import { expect, it } from 'vitest'
import { resourceOfRule } from './enforced-rules.ts'

const MINUTE = { limit: 1, window: '1m' } as const

const RULES: RuleSet = {
  rules: [{ resource: '/orders/:id', dimension: 'user', ...MINUTE }],
  tiers: [{ name: 'premium', rules: [{ resource: '/files/*', dimension: 'user', ...MINUTE }] }],
  exemptions: [
    {
      name: 'office',
      match: { cidrs: ['10.0.0.0/8'] },
      rules: [{ resource: '/x', dimension: 'ip', name: 'own', ...MINUTE }],
    },
  ],
}

it('finds the resource of a rule as the rule writes it', () => {
  expect(resourceOfRule(RULES, '/orders/:any@user')).toBe('/orders/:id')
  expect(resourceOfRule(RULES, 'tier:premium:/files/*@user')).toBe('/files/*')
  expect(resourceOfRule(RULES, 'exemption:office:own')).toBe('/x')
  expect(resourceOfRule(RULES, 'gone')).toBe('*')
})
