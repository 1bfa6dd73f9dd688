import { expect, it } from 'vitest'
import type { RuleSet } from './rule-set.ts'
import { undeclaredDimensions } from './undeclared-dimensions.ts'

const LIMIT = { resource: '*', limit: 1, window: '1m' } as const

it('is empty where all dimensions are built in, declared or switched off', () => {
  const ruleSet: RuleSet = {
    dimensions: ['plan'],
    rules: [
      ...['ip', 'user', 'apiKey', 'tenant', 'service', 'global', 'plan', 'tenant+plan'].map((dimension) => ({
        ...LIMIT,
        dimension,
      })),
      { ...LIMIT, dimension: 'usr', enabled: false },
    ],
  }
  expect(undeclaredDimensions(ruleSet)).toEqual([])
})

it.each([
  ['usr', 'user'],
  ['User', 'user'],
  ['apikey', 'apiKey'],
  ['tennant', 'tenant'],
  ['servcie', 'service'],
  ['plam', 'plan'],
  ['seats-of-license', undefined],
])('knows what may have been meant by %s', (dimension, nearest) => {
  const ruleSet: RuleSet = { dimensions: ['plan'], rules: [{ ...LIMIT, dimension }] }
  expect(undeclaredDimensions(ruleSet)).toEqual([{ dimension, nearest, paths: ['/rules/0/dimension'] }])
})

it('finds every use: in rules, tiers, exemptions, the deny list and joint dimensions', () => {
  const ruleSet: RuleSet = {
    rules: [
      { ...LIMIT, dimension: 'user' },
      { ...LIMIT, dimension: 'plan' },
      { ...LIMIT, dimension: 'tenant+usr' },
    ],
    tiers: [{ name: 't', rules: [{ ...LIMIT, dimension: 'plan' }] }],
    exemptions: [{ name: 'e', match: { dimension: 'usr', entities: ['a'] }, rules: [{ ...LIMIT, dimension: 'plan' }] }],
    denyList: [{ name: 'd', match: { dimension: 'usr+ip', entities: ['a'] } }],
  }
  expect(undeclaredDimensions(ruleSet)).toEqual([
    {
      dimension: 'plan',
      nearest: undefined,
      paths: ['/rules/1/dimension', '/tiers/0/rules/0/dimension', '/exemptions/0/rules/0/dimension'],
    },
    {
      dimension: 'usr',
      nearest: 'user',
      paths: ['/rules/2/dimension', '/exemptions/0/match/dimension', '/denyList/0/match/dimension'],
    },
  ])
})
