import type { AlertOptions, MeasuredRuleOptions } from '../settings/alert-settings.ts'

/** Name of an alert rule. */
export type AlertRuleName = 'store-latency' | 'denial-rate' | 'store-errors' | 'config-lag'

/** An alert rule: it fires when its value is above `threshold` for long enough. */
export interface AlertRule {
  readonly name: AlertRuleName
  /** Exclusive: a value that is equal does not fire. */
  readonly threshold: number
  /** Unit of value and threshold. A ratio is 0 to 1. */
  readonly unit: 'ms' | 'ratio' | 's'
  /** How long the value must be above the threshold before the alert fires; 0: at once. */
  readonly forMs: number
  /** How long the value must be back before the alert is resolved; 0: at once. */
  readonly resolveAfterMs: number
  /** Window of the value, in whole seconds; 0 for an instantaneous value. */
  readonly windowMs: number
  /** Minimum number of calls in the window. With fewer there is no value, and the alert does not fire. */
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

/** The enabled rules: the defaults, changed by `options`. */
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

/** Shared storage through which nodes coordinate an alert. */
export type Coordinator = 'database' | 'redis'

/** The storage that nodes share. */
export interface SharedParts {
  readonly databaseUrl: string | undefined
  readonly redis: { readonly prefix: string } | undefined
}

/**
 * The coordinator of a rule; undefined for a rule about one node. Alerts about Redis use the shared database if there
 * is one, and alerts about the database use Redis, because the subject of an alert may be down.
 */
function coordinatorOf(rule: AlertRuleName, { databaseUrl, redis }: SharedParts): Coordinator | undefined {
  if (rule === 'config-lag') {
    if (databaseUrl === undefined) return undefined
    return redis === undefined ? 'database' : 'redis'
  }
  if (redis === undefined) return undefined
  return databaseUrl === undefined ? 'redis' : 'database'
}

/** The rules with this coordinator; undefined: those about one node. */
export function rulesThrough(
  coordinator: Coordinator | undefined,
  rules: readonly AlertRule[],
  shared: SharedParts,
): readonly AlertRule[] {
  return rules.filter(({ name }) => coordinatorOf(name, shared) === coordinator)
}
