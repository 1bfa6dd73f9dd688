import type { Settings } from '../settings.ts'
import type { AlertRule, AlertRuleName } from './alert-rule.ts'

/** What nodes can coordinate an alert through. */
export type Coordinator = 'database' | 'redis'

/** The settings that say what nodes share. */
export type SharedParts = Pick<Settings, 'databaseUrl' | 'redis'>

/**
 * What nodes coordinate the alerts of a rule through; undefined when it is about one node. An alert about Redis goes through the
 * database where nodes share one, and an alert about the database through Redis: what it is about may be down.
 */
function coordinatorOf(rule: AlertRuleName, { databaseUrl, redis }: SharedParts): Coordinator | undefined {
  if (rule === 'config-lag') {
    if (databaseUrl === undefined) return undefined
    return redis === undefined ? 'database' : 'redis'
  }
  if (redis === undefined) return undefined
  return databaseUrl === undefined ? 'redis' : 'database'
}

/** Those of `rules` that are coordinated through `coordinator`; undefined for those about one node. */
export function rulesThrough(
  coordinator: Coordinator | undefined,
  rules: readonly AlertRule[],
  shared: SharedParts,
): readonly AlertRule[] {
  return rules.filter(({ name }) => coordinatorOf(name, shared) === coordinator)
}
