import type { AlertBounds } from '@sluice/contract'
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

/** The values above which the enabled rules fire. */
export function alertBounds(rules: readonly AlertRule[]): AlertBounds {
  const bounds: { -readonly [Name in keyof AlertBounds]: AlertBounds[Name] } = {}
  for (const { name, threshold } of rules) {
    if (name === 'denial-rate') bounds.denialRate = threshold
    if (name === 'store-latency') bounds.storeLatencyMs = threshold
    if (name === 'config-lag') bounds.configLagMs = threshold * MS_PER_SECOND
  }
  return bounds
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

/** What is evaluated: a rule over all nodes, or a rule on one node. */
export interface AlertCondition {
  /** Unique in the deployment: the name of the rule, and the id of the node for a condition of one node. */
  readonly key: string
  readonly rule: AlertRule
  readonly scope: 'cluster' | 'node'
  /** Whether the signals of all nodes are added up. Otherwise it is evaluated over those of this node. */
  readonly isOverAllNodes: boolean
  /** Key of the condition that reports this one as well: while that is true, this one is not. */
  readonly coveredBy?: string
}

/** A condition of one node must be true for at least so long: the signals of other nodes may be 5 seconds old. */
const LEAST_FOR_MS = 30_000

/**
 * The conditions that this node evaluates and coordinates with others through `coordinator`. Empty if nodes share
 * nothing. Those about Redis use the shared database if there is one, and those about the database use Redis, because
 * what an alert is about may be unreachable.
 */
export function conditionsThrough(
  coordinator: Coordinator,
  rules: readonly AlertRule[],
  { databaseUrl, redis, nodeId }: SharedParts & { readonly nodeId: string },
): readonly AlertCondition[] {
  const hasDatabase = databaseUrl !== undefined
  const hasRedis = redis !== undefined
  const there = (hasDatabase ? ['database'] : []).concat(hasRedis ? ['redis'] : [])
  return rules.flatMap((rule): readonly AlertCondition[] => {
    const isAboutRules = rule.name === 'config-lag'
    if (coordinator !== (isAboutRules ? there.at(-1) : there[0])) return []
    const ofNode = { key: `${rule.name}@${nodeId}`, rule, scope: 'node', isOverAllNodes: false } as const
    const ofAll = { key: rule.name, rule, scope: 'cluster', isOverAllNodes: true } as const
    if (isAboutRules) return hasDatabase ? [{ ...ofAll, isOverAllNodes: false }] : [ofNode]
    if (rule.name === 'denial-rate') return [ofAll]
    if (!hasRedis) return [ofNode]
    const patient = { ...rule, forMs: Math.max(rule.forMs, LEAST_FOR_MS) }
    return [ofAll, { ...ofNode, rule: patient, coveredBy: ofAll.key }]
  })
}

/** Whether this node shares nothing with others: then all rules are about it. */
export function sharesNothing({ databaseUrl, redis }: SharedParts): boolean {
  return databaseUrl === undefined && redis === undefined
}
