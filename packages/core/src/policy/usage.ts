import type { Limit } from '../limit.ts'
import type { Batch } from '../store/store.ts'
import type { CompiledRule } from './compiled-rule.ts'
import type { CounterReport } from './counter.ts'
import { counterReports } from './counter.ts'
import type { PolicyRequest } from './policy-request.ts'
import type { Resolver } from './resolver.ts'
import type { Snapshot } from './snapshot.ts'

/** Who is meant: the identities of a request, and one resource or all. */
export type Caller = Omit<PolicyRequest, 'resource'> & { readonly resource?: string }

/** What one rule has counted for one caller. */
export interface UsageReport {
  readonly rule: string
  readonly resource: string
  readonly dimension: string
  readonly entity: string
  /** One for each window of the rule. */
  readonly counters: readonly CounterReport[]
}

/** The counters of one rule and caller. */
export interface RuleCounters {
  readonly rule: CompiledRule
  readonly entity: string
  readonly key: string
  readonly limits: readonly Limit[]
}

/** The counters that a caller has under a rule set, whether or not anything was counted yet. */
export function countersOf(resolver: Resolver, snapshot: Snapshot, { who, nowMs }: UsageQuestion): RuleCounters[] {
  const { resource, method } = who
  const request: PolicyRequest = { ...who, resource: resource ?? '*' }
  const found = resolver.tierOf(snapshot, request, nowMs)?.tier
  const general = resource === undefined ? snapshot.rules.rules : snapshot.rules.find(resource, method)
  const rules =
    resource === undefined
      ? [...general, ...(found?.rules?.rules ?? [])]
      : (found?.over(general, resource, method) ?? general)
  const context = resolver.contextOf(request, found, nowMs)
  return rules.flatMap((rule) => {
    const entity = rule.rule.enabled === false ? undefined : rule.reader.read(request)
    // What everybody shares is not the caller's, unless it is asked for by its resource.
    if (entity === undefined || (rule.dimension === 'global' && resource === undefined)) return []
    const limits = resolver.limitsOf(rule, entity, context)
    return limits.length === 0 ? [] : [{ rule, entity, key: rule.reader.keyOf(entity), limits }]
  })
}

/** Whose counters, and when. */
export interface UsageQuestion {
  readonly who: Caller
  readonly nowMs: number
}

/** The answers, in the order of the counters. */
export function usageReports(counters: readonly RuleCounters[], looks: readonly Batch[]): readonly UsageReport[] {
  return counters.map(({ rule, entity }, index) => ({
    rule: rule.label,
    resource: rule.rule.resource,
    dimension: rule.dimension,
    entity,
    counters: counterReports(looks[index]!),
  }))
}
