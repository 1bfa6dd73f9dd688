import type { Limit } from '../rule/limit.ts'
import type { Batch } from '../store/store.ts'
import type { CounterReport } from './counter-report.ts'
import { counterReports } from './counter-report.ts'
import type { CompiledRule } from './limits/compiled-rule.ts'
import { isMatched, rulesFor } from './limits/rule-choice.ts'
import { MatchTable } from './matching/match-table.ts'
import type { Resolver } from './resolver.ts'
import type { PolicyRequest } from './rule-set/policy-request.ts'
import type { RequestMatch } from './rule-set/rule-set.ts'
import type { CompiledTier, Snapshot } from './snapshot.ts'

/** Whose usage: the identities of a request, and one resource or all. */
export type Caller = Omit<PolicyRequest, 'resource'> & { readonly resource?: string }

/** The usage of one caller under one rule. */
export interface UsageReport {
  readonly rule: string
  readonly resource: string
  readonly dimension: string
  readonly entity: string
  /** One per window of the rule. */
  readonly counters: readonly CounterReport[]
}

/** The counters of one rule and caller. */
export interface RuleCounters {
  readonly rule: CompiledRule
  readonly entity: string
  readonly key: string
  readonly limits: readonly Limit[]
}

/**
 * The counters of a caller under a rule set, whether or not anything was counted yet. With a resource, those that
 * decide a request of the caller for it; without, those of every rule that may count the caller.
 */
export function countersOf(resolver: Resolver, snapshot: Snapshot, { who, nowMs }: UsageQuestion): RuleCounters[] {
  const { resource } = who
  const request: PolicyRequest = { ...who, resource: resource ?? '*' }
  const tier = resolver.tierOf(snapshot, request, nowMs)?.tier
  const asked: Asked = { resolver, snapshot, request, tier, nowMs }
  const rules = resource === undefined ? rulesOfCaller(asked) : rulesOfRequest(asked)
  const context = resolver.contextOf(request, tier, nowMs)
  return rules.flatMap((rule) => {
    const entity = rule.rule.enabled === false ? undefined : rule.reader.read(request)
    if (entity === undefined) return []
    const limits = resolver.limitsOf(rule, entity, context)
    return limits.length === 0 ? [] : [{ rule, entity, key: rule.reader.keyOf(entity), limits }]
  })
}

/** Whose rules to find, and in which rule set. */
interface Asked {
  readonly resolver: Resolver
  readonly snapshot: Snapshot
  readonly request: PolicyRequest
  readonly tier: CompiledTier | undefined
  readonly nowMs: number
}

/** The rules that decide a request: those of its exemption replace all others. */
function rulesOfRequest({ resolver, snapshot, request, tier, nowMs }: Asked): readonly CompiledRule[] {
  const { resource, method } = request
  const exemption = resolver.exemptionOf(snapshot, request, nowMs)
  if (exemption === undefined) {
    const found = tier?.find(snapshot.rules, resource, method) ?? snapshot.rules.find(resource, method)
    return orDefault(rulesFor(found, request), snapshot, request)
  }
  if (exemption.rules === undefined) return []
  return orDefault(rulesFor(exemption.rules.find(resource, method), request), snapshot, request)
}

/** With the default rule, if no enforced rule matches. */
function orDefault(
  rules: readonly CompiledRule[],
  snapshot: Snapshot,
  request: PolicyRequest,
): readonly CompiledRule[] {
  const usual = isMatched(rules, request) ? undefined : snapshot.defaultRuleFor(request)
  return usual === undefined ? rules : [...rules, usual]
}

/** The rules that may count a caller for any resource. */
function rulesOfCaller({ resolver, snapshot, request, tier, nowMs }: Asked): readonly CompiledRule[] {
  const entityOf = (dimension: string): string | undefined => resolver.entityOf(request, dimension)
  const exemptions = callerExemptions(snapshot, resolver).filter(
    ({ callers }) => callers === undefined || callers.find(request, entityOf, nowMs) !== undefined,
  )
  const ofExemptions = exemptions.flatMap(({ rules, isOfServices }) =>
    isOfServices ? rules : rules.filter(isNotShared),
  )
  const usual = snapshot.defaultRuleFor(request)
  const ofAll = [...snapshot.rules.rules, ...(tier?.rules?.rules ?? []), ...(usual === undefined ? [] : [usual])]
  return [...ofAll.filter(isNotShared), ...ofExemptions]
}

/** A counter that all callers share belongs to none of them, unless its resource or service is named. */
function isNotShared({ dimension }: CompiledRule): boolean {
  return dimension !== 'global'
}

/** An exemption with rules of its own, and whom it applies to for every resource. */
interface CallerExemption {
  /** Undefined if it applies to every caller of its resource. */
  readonly callers: MatchTable<true> | undefined
  readonly isOfServices: boolean
  readonly rules: readonly CompiledRule[]
}

/** Created on first use: requests do not need it. */
const exemptionsBySnapshot = new WeakMap<Snapshot, readonly CallerExemption[]>()

function callerExemptions(snapshot: Snapshot, resolver: Resolver): readonly CallerExemption[] {
  let exemptions = exemptionsBySnapshot.get(snapshot)
  if (exemptions === undefined) {
    exemptions = (snapshot.ruleSet.exemptions ?? []).flatMap(({ name, match }) => {
      const rules = snapshot.allRules.filter(({ origin }) => origin.part === 'exemption' && origin.name === name)
      const isOfServices = match.services !== undefined
      return rules.length === 0 ? [] : [{ callers: callersOf(match, resolver), isOfServices, rules }]
    })
    exemptionsBySnapshot.set(snapshot, exemptions)
  }
  return exemptions
}

/** Finds the callers that a match applies to for every resource. */
function callersOf(match: RequestMatch, resolver: Resolver): CallerExemption['callers'] {
  const { resource: _resource, methods: _methods, ...callers } = match
  if (callers.entities === undefined && callers.cidrs === undefined && callers.services === undefined) return undefined
  const canonicalEntity = (dimension: string, entity: string): string => resolver.readerOf(dimension).canonical(entity)
  return new MatchTable([{ match: callers, value: true }], { purpose: 'lift', canonicalEntity })
}

/** Whose counters, and when. */
export interface UsageQuestion {
  readonly who: Caller
  readonly nowMs: number
}

/** The results, in the order of the counters. */
export function usageReports(counters: readonly RuleCounters[], looks: readonly Batch[]): readonly UsageReport[] {
  return counters.map((each, index) => ({ ...ownerOf(each), counters: counterReports(looks[index]!) }))
}

/** Whose counters, under which rule. */
export function ownerOf({ rule, entity }: RuleCounters): Omit<UsageReport, 'counters'> {
  return { rule: rule.label, resource: rule.rule.resource, dimension: rule.dimension, entity }
}
