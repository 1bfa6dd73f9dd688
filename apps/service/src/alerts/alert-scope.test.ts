import { expect, it } from 'vitest'
import type { Coordinator, SharedParts } from './alert-rule.ts'
import { alertRules, conditionsThrough, sharesNothing } from './alert-rule.ts'

const REDIS = { prefix: 'sluice' }
const STORE = [
  'store-latency over all',
  'store-latency@n1 unless store-latency',
  'denial-rate over all',
  'store-errors over all',
  'store-errors@n1 unless store-errors',
]

it.each<[string, SharedParts, Partial<Record<Coordinator, readonly string[]>>]>([
  ['nothing', { databaseUrl: undefined, redis: undefined }, {}],
  ['Redis', { databaseUrl: undefined, redis: REDIS }, { redis: [...STORE, 'config-lag@n1'] }],
  [
    'a database',
    { databaseUrl: 'postgres://h/d', redis: undefined },
    { database: ['store-latency@n1', 'denial-rate over all', 'store-errors@n1', 'config-lag'] },
  ],
  ['both', { databaseUrl: 'postgres://h/d', redis: REDIS }, { database: STORE, redis: ['config-lag'] }],
])('nodes that share %s coordinate what is about that, through what it is not about', (_, shared, expected) => {
  const through = (coordinator: Coordinator): readonly string[] =>
    conditionsThrough(coordinator, alertRules(), { ...shared, nodeId: 'n1' }).map(
      ({ key, isOverAllNodes, coveredBy }) =>
        `${key}${isOverAllNodes ? ' over all' : ''}${coveredBy === undefined ? '' : ` unless ${coveredBy}`}`,
    )
  expect({ database: through('database'), redis: through('redis') }).toEqual({ database: [], redis: [], ...expected })
  expect(sharesNothing(shared)).toBe(Object.keys(expected).length === 0)
})

it('waits at least 30 seconds before the store of one node is reported', () => {
  const conditions = conditionsThrough('redis', alertRules(), { databaseUrl: undefined, redis: REDIS, nodeId: 'n1' })
  const patience = Object.fromEntries(conditions.map(({ key, rule }) => [key, rule.forMs]))
  expect(patience).toMatchObject({
    'store-errors': 0,
    'store-errors@n1': 30_000,
    'store-latency@n1': 300_000,
    'config-lag@n1': 0,
  })
})
