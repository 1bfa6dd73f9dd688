import type { AlertOptions, MeasuredRuleOptions } from '../alert-settings.ts'

/** What is watched. */
export type AlertRuleName = 'store-latency' | 'denial-rate' | 'store-errors' | 'config-lag'

/** When somebody should look at something, as data: the measured value is above `threshold` for long enough. */
export interface AlertRule {
  readonly name: AlertRuleName
  /** The condition holds while the value is above it, and not when it is equal. */
  readonly threshold: number
  /** Of value and threshold. A ratio is 0 to 1. */
  readonly unit: 'ms' | 'ratio' | 's'
  /** The condition must have held for so long before the alert fires; 0: it fires when it is first seen. */
  readonly forMs: number
  /** The condition must have been gone for so long before the alert is resolved; 0: it is when that is first seen. */
  readonly resolveAfterMs: number
  /** The value is that of so much time, in whole seconds; 0 for a value of the moment. */
  readonly windowMs: number
  /** With less than so many calls in the window there is no value, and so no condition that holds. */
  readonly leastSamples: number
}

const MS_PER_SECOND = 1000

const MEASURED = { windowMs: 60_000, leastSamples: 10, resolveAfterMs: 60_000 }

const DEFAULTS: readonly AlertRule[] = [
  { name: 'store-latency', threshold: 10, unit: 'ms', forMs: 300_000, ...MEASURED },
  { name: 'denial-rate', threshold: 0.2, unit: 'ratio', forMs: 120_000, ...MEASURED },
  { name: 'store-errors', threshold: 0.01, unit: 'ratio', forMs: 0, ...MEASURED },
  { name: 'config-lag', threshold: 600, unit: 's', forMs: 0, resolveAfterMs: 60_000, windowMs: 0, leastSamples: 0 },
]

/** The rules that are watched: the defaults with what `options` say otherwise, without those that are not enabled. */
export function alertRules(options: AlertOptions = {}): readonly AlertRule[] {
  return DEFAULTS.flatMap((rule) => {
    const given: MeasuredRuleOptions = options[rule.name] ?? {}
    return given.enabled === false ? [] : [withOptions(rule, given)]
  })
}

function withOptions(rule: AlertRule, given: MeasuredRuleOptions): AlertRule {
  const { threshold, forSeconds, resolveAfterSeconds, windowSeconds, leastSamples } = given
  return {
    ...rule,
    threshold: threshold ?? rule.threshold,
    forMs: millis(forSeconds) ?? rule.forMs,
    resolveAfterMs: millis(resolveAfterSeconds) ?? rule.resolveAfterMs,
    windowMs: millis(windowSeconds) ?? rule.windowMs,
    leastSamples: leastSamples ?? rule.leastSamples,
  }
}

function millis(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : Math.round(seconds * MS_PER_SECOND)
}

/** What nodes can coordinate an alert through. */
export type Coordinator = 'database' | 'redis'

/** The settings that say what nodes share. */
export interface SharedParts {
  readonly databaseUrl: string | undefined
  readonly redis: { readonly prefix: string } | undefined
}

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
