import { expect, it } from 'vitest'
import type { Coordinator, SharedParts } from './alert-rule.ts'
import { alertRules, rulesThrough } from './alert-rule.ts'

const REDIS = {} as SharedParts['redis']
const STORE = ['store-latency', 'denial-rate', 'store-errors']
const CONFIG = ['config-lag']

it.each<[string, SharedParts, Partial<Record<Coordinator | 'none', readonly string[]>>]>([
  ['nothing', { databaseUrl: undefined, redis: undefined }, { none: [...STORE, ...CONFIG] }],
  ['Redis', { databaseUrl: undefined, redis: REDIS }, { redis: STORE, none: CONFIG }],
  ['a database', { databaseUrl: 'postgres://h/d', redis: undefined }, { database: CONFIG, none: STORE }],
  ['both', { databaseUrl: 'postgres://h/d', redis: REDIS }, { database: STORE, redis: CONFIG }],
])('nodes that share %s coordinate what is about that, through what it is not about', (_, shared, expected) => {
  const through = (coordinator?: Coordinator): readonly string[] =>
    rulesThrough(coordinator, alertRules(), shared).map(({ name }) => name)
  expect({ database: through('database'), redis: through('redis'), none: through() }).toEqual({
    database: [],
    redis: [],
    none: [],
    ...expected,
  })
})
