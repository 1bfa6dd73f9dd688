import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PolicyRule, RuleSet } from '../rule-set.ts'
import { checkRuleSet } from './check-rule-set.ts'
import { diffRuleSets, type RuleSetChange } from './rule-set-diff.ts'

const orders: PolicyRule = { resource: '/orders', dimension: 'user', limit: 10, window: '1m' }
const search: PolicyRule = { resource: '/search', dimension: 'ip', limit: 5, window: '1s' }
const match = { services: ['a'] }
const errorRate = {
  cutAbove: 0.2,
  restoreBelow: 0.1,
  window: '30s',
  leastCalls: 5,
  step: 0.5,
  least: 0.1,
  hold: '10s',
} as const

function inverse({ change, part, name, before, after }: RuleSetChange): RuleSetChange {
  const changes = { added: 'removed', removed: 'added', changed: 'changed' } as const
  return { change: changes[change], part, name, before: after, after: before }
}

const maybe = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(arbitrary, { nil: undefined })

const ruleLists: fc.Arbitrary<PolicyRule[]> = fc.uniqueArray(
  fc.record({
    resource: fc.constantFrom('/a', '/b', '/c/:id', '*'),
    dimension: fc.constantFrom('user', 'tenant'),
    limit: fc.integer({ min: 1, max: 3 }),
    window: fc.constantFrom('1s', '1m'),
  }),
  { selector: ({ resource, dimension }) => `${resource} ${dimension}`, maxLength: 4 },
)

/** A list of entries of different names. */
function entriesOf<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<(T & { name: string })[]> {
  return fc.uniqueArray(
    fc.tuple(fc.constantFrom('a', 'b', 'c'), arbitrary).map(([name, entry]) => ({ name, ...entry })),
    { selector: ({ name }) => name, maxLength: 3 },
  )
}

const matches = fc.constantFrom({ services: ['a'] }, { resource: '/x' })

const ruleSets: fc.Arbitrary<RuleSet> = fc
  .record({
    rules: ruleLists,
    tiers: maybe(entriesOf(fc.record({ multiplier: fc.integer({ min: 1, max: 2 }), rules: ruleLists }))),
    exemptions: maybe(
      entriesOf(fc.oneof(fc.record({ match: matches }), fc.record({ match: matches, rules: ruleLists }))),
    ),
    denyList: maybe(entriesOf(fc.record({ match: matches }))),
    regions: maybe(fc.dictionary(fc.constantFrom('US', 'DE'), fc.integer({ min: 1, max: 2 }))),
    incident: maybe(fc.constantFrom(0.5, 1)),
    errorRate: maybe(fc.constantFrom(errorRate, { ...errorRate, step: 0.9 })),
    domains: maybe(
      fc.uniqueArray(
        fc.record({
          domain: fc.constantFrom('x', 'y'),
          descriptors: fc.constantFrom([], [{ key: 'a' }], [{ key: 'a' }, { key: 'b' }], [{ key: 'b' }, { key: 'a' }]),
        }),
        { selector: ({ domain }) => domain },
      ),
    ),
  })
  .map((parts) => JSON.parse(JSON.stringify(parts)) as RuleSet)

describe('the difference between two rule sets', () => {
  it.each<[string, RuleSet, RuleSet, RuleSetChange[]]>([
    [
      'a rule more',
      { rules: [orders] },
      { rules: [search, orders] },
      [{ change: 'added', part: 'rules', name: '/search@ip', before: undefined, after: search }],
    ],
    [
      'a rule less',
      { rules: [orders, search] },
      { rules: [search] },
      [{ change: 'removed', part: 'rules', name: '/orders@user', before: orders, after: undefined }],
    ],
    [
      'a rule with another limit',
      { rules: [orders] },
      { rules: [{ ...orders, limit: 11 }] },
      [{ change: 'changed', part: 'rules', name: '/orders@user', before: orders, after: { ...orders, limit: 11 } }],
    ],
    [
      'a rule with another name',
      { rules: [orders] },
      { rules: [{ ...orders, name: 'a' }] },
      [
        { change: 'removed', part: 'rules', name: '/orders@user', before: orders, after: undefined },
        { change: 'added', part: 'rules', name: 'a', before: undefined, after: { ...orders, name: 'a' } },
      ],
    ],
    [
      'a tier with a rule',
      { rules: [] },
      { rules: [], tiers: [{ name: 't', burst: 1, rules: [orders] }] },
      [
        { change: 'added', part: 'rules', name: 'tier:t:/orders@user', before: undefined, after: orders },
        { change: 'added', part: 'tiers', name: 't', before: undefined, after: { name: 't', burst: 1 } },
      ],
    ],
    [
      'a rule of an exemption',
      { rules: [], exemptions: [{ name: 'e', match }] },
      { rules: [], exemptions: [{ name: 'e', match, rules: [orders] }] },
      [{ change: 'added', part: 'rules', name: 'exemption:e:/orders@user', before: undefined, after: orders }],
    ],
    [
      'an exemption with no rules instead of none',
      { rules: [], exemptions: [{ name: 'e', match }] },
      { rules: [], exemptions: [{ name: 'e', match, rules: [] }] },
      [
        {
          change: 'changed',
          part: 'exemptions',
          name: 'e',
          before: { name: 'e', match },
          after: { name: 'e', match, rules: [] },
        },
      ],
    ],
    [
      'the order of deny entries',
      {
        rules: [],
        denyList: [
          { name: 'a', match },
          { name: 'b', match },
          { name: 'c', match },
        ],
      },
      {
        rules: [],
        denyList: [
          { name: 'b', match },
          { name: 'a', match },
        ],
      },
      [
        { change: 'removed', part: 'denyList', name: 'c', before: { name: 'c', match }, after: undefined },
        { change: 'changed', part: 'denyList', name: '', before: ['a', 'b'], after: ['b', 'a'] },
      ],
    ],
    [
      'a region',
      { rules: [], regions: { US: 1, DE: 2 } },
      { rules: [], regions: { DE: 2, US: 3 } },
      [{ change: 'changed', part: 'regions', name: 'US', before: 1, after: 3 }],
    ],
    [
      'the incident multiplier',
      { rules: [] },
      { rules: [], incident: 0.5 },
      [{ change: 'added', part: 'incident', name: '', before: undefined, after: 0.5 }],
    ],
    [
      'a field of the error rate',
      { rules: [], errorRate },
      { rules: [], errorRate: { ...errorRate, step: 0.9 } },
      [{ change: 'changed', part: 'errorRate', name: 'step', before: 0.5, after: 0.9 }],
    ],
    [
      'the order of descriptors, of which the first that fits counts',
      { rules: [], domains: [{ domain: 'd', descriptors: [{ key: 'a' }, { key: 'b' }] }] },
      { rules: [], domains: [{ domain: 'd', descriptors: [{ key: 'b' }, { key: 'a' }] }] },
      [
        {
          change: 'changed',
          part: 'domains',
          name: 'd',
          before: { domain: 'd', descriptors: [{ key: 'a' }, { key: 'b' }] },
          after: { domain: 'd', descriptors: [{ key: 'b' }, { key: 'a' }] },
        },
      ],
    ],
  ])('is %s', (_, before, after, changes) => {
    expect(diffRuleSets(before, after)).toEqual(changes)
  })

  it.each<[string, RuleSet, RuleSet]>([
    ['the order of rules', { rules: [orders, search] }, { rules: [search, orders] }],
    [
      'the order of rules of a tier',
      { rules: [], tiers: [{ name: 't', rules: [orders, search] }] },
      { rules: [], tiers: [{ name: 't', rules: [search, orders] }] },
    ],
    [
      'the order of tiers',
      { rules: [], tiers: [{ name: 't' }, { name: 'u' }] },
      { rules: [], tiers: [{ name: 'u' }, { name: 't' }] },
    ],
    [
      'the order of properties',
      { rules: [orders] },
      { rules: [{ window: '1m', limit: 10, dimension: 'user', resource: '/orders' }] },
    ],
    ['an empty part', { rules: [] }, { rules: [], tiers: [], regions: {} }],
    [
      'a property that is undefined',
      { rules: [orders] },
      { rules: [{ ...orders, name: undefined } as unknown as PolicyRule] },
    ],
  ])('is not %s', (_, before, after) => {
    expect(diffRuleSets(before, after)).toEqual([])
  })

  it('is nothing for equal ones, and nothing only for those that say the same', () => {
    fc.assert(
      fc.property(ruleSets, (ruleSet) => {
        expect(checkRuleSet(ruleSet)).toEqual([])
        const rules = ruleSet.rules.toReversed()
        expect(diffRuleSets(ruleSet, structuredClone({ ...ruleSet, rules }))).toEqual([])
        expect(diffRuleSets(ruleSet, { ...ruleSet, incident: 2 })).toHaveLength(1)
      }),
    )
  })

  it('is in the other direction the same, the other way round', () => {
    fc.assert(
      fc.property(ruleSets, ruleSets, (one, other) => {
        expect(diffRuleSets(other, one)).toEqual(diffRuleSets(one, other).map(inverse))
      }),
    )
  })

  it('has each part and name once', () => {
    fc.assert(
      fc.property(ruleSets, ruleSets, (one, other) => {
        const subjects = diffRuleSets(one, other).map(({ part, name }) => `${part} ${name}`)
        expect(new Set(subjects).size).toBe(subjects.length)
      }),
    )
  })
})
