import type { RuleSet } from '@sluice/core/policy'
import { expect, it } from 'vitest'
import { conflictKey, mergeRuleSets } from './merge-rule-sets.ts'

const ORDERS = { resource: '/orders', dimension: 'user', limit: 100, window: '1m' } as const
const EXPORT = { resource: '/export', dimension: 'user', limit: 10, window: '1h' } as const
const LOGIN = { resource: '/login', dimension: 'ip', limit: 5, window: '1m' } as const

const base: RuleSet = { rules: [ORDERS, EXPORT], tiers: [{ name: 'premium', multiplier: 10 }] }

it('takes the changes of both', () => {
  const mine: RuleSet = { ...base, rules: [{ ...ORDERS, limit: 200 }, EXPORT, LOGIN], incident: 0.5 }
  const theirs: RuleSet = { rules: [{ window: '1m', limit: 100, dimension: 'user', resource: '/orders' }], tiers: [] }
  expect(mergeRuleSets({ base, mine, theirs })).toEqual({
    ruleSet: { rules: [{ ...ORDERS, limit: 200 }, LOGIN], incident: 0.5 },
    conflicts: [],
  })
})

it('takes what both did alike as no conflict', () => {
  const both: RuleSet = { rules: [ORDERS], tiers: base.tiers! }
  expect(mergeRuleSets({ base, mine: both, theirs: both })).toEqual({ ruleSet: both, conflicts: [] })
})

it('lists what both changed differently, and takes the side that was chosen', () => {
  const mine: RuleSet = { ...base, rules: [{ ...ORDERS, limit: 200 }, EXPORT] }
  const theirs: RuleSet = { ...base, rules: [{ ...ORDERS, limit: 50 }, EXPORT] }
  const merged = mergeRuleSets({ base, mine, theirs })
  expect(merged.conflicts).toEqual([
    {
      part: 'rules',
      name: '/orders@user',
      base: ORDERS,
      mine: { ...ORDERS, limit: 200 },
      theirs: { ...ORDERS, limit: 50 },
    },
  ])
  expect(merged.ruleSet).toEqual(mine)
  const choices = new Map([[conflictKey(merged.conflicts[0]!), 'theirs' as const]])
  expect(mergeRuleSets({ base, mine, theirs }, choices).ruleSet).toEqual(theirs)
})

it('is a conflict when one removes what the other changes', () => {
  const mine: RuleSet = { ...base, rules: [ORDERS] }
  const theirs: RuleSet = { ...base, rules: [ORDERS, { ...EXPORT, limit: 20 }] }
  const { ruleSet, conflicts } = mergeRuleSets({ base, mine, theirs })
  expect(conflicts).toMatchObject([{ part: 'rules', name: '/export@user', theirs: { limit: 20 } }])
  expect(conflicts[0]!.mine).toBeUndefined()
  expect(ruleSet.rules).toEqual([ORDERS])
})

it('is a conflict when both set a value that neither had', () => {
  const { ruleSet, conflicts } = mergeRuleSets({
    base,
    mine: { ...base, regions: { US: 2 } },
    theirs: { ...base, regions: { US: 3 } },
  })
  expect(conflicts).toMatchObject([{ part: 'regions', name: '' }])
  expect(ruleSet.regions).toEqual({ US: 2 })
})
