import type { Batch } from '../store/store.ts'
import type { CounterReport } from './counter-report.ts'
import { counterReports, lookAt } from './counter-report.ts'
import type { Block } from './entries/live-entry.ts'
import type { CompiledRule } from './limits/compiled-rule.ts'
import type { RuleLine } from './limits/rule-choice.ts'
import { isMatched, replacementOf, rulesFor } from './limits/rule-choice.ts'
import { readPath } from './matching/path.ts'
import { explainPattern } from './matching/resource-pattern.ts'
import { DEFAULT_PREFIX } from './matching/rule-name.ts'
import type { PolicyDecision } from './policy-decision.ts'
import type { ResolveContext, Resolver } from './resolver.ts'
import type { PolicyRequest } from './rule-set/policy-request.ts'
import type { CompiledTier, Snapshot } from './snapshot.ts'

/**
 * Why a rule applies or not. `applies`: it takes part in the decision. `shadow`: it is only measured. `replaced`: a
 * more specific rule, or a rule of the caller's tier, is enforced for the same dimension. `no-match`: resource or
 * method differ. `no-identity`: the request has no value for the dimension. `off`: it does not limit this caller.
 * `disabled`: it is switched off.
 */
export type RuleFate = 'applies' | 'shadow' | 'replaced' | 'no-match' | 'no-identity' | 'off' | 'disabled'

/** One step from the numbers of the rule to the applied limit. */
export interface LimitStep {
  readonly source: 'rule' | 'override' | 'region' | 'schedule' | 'tier' | 'incident' | 'error-rate'
  /** The change, in words. */
  readonly change: string
  /** The limit after this step, of the first window; `off` if nothing limits. */
  readonly limit: number | 'off'
}

/** Effect of a rule on a request. */
export interface RuleExplanation {
  readonly rule: string
  readonly resource: string
  readonly methods: readonly string[] | undefined
  readonly dimension: string
  /** The part of the rule set that contains it: `rules`, or the name of a tier or exemption. */
  readonly origin: string
  readonly fate: RuleFate
  readonly why: string
  /** The counted entity; undefined if the rule does not apply. */
  readonly entity: string | undefined
  readonly steps: readonly LimitStep[]
  /** State of its counters, one per window; empty if the rule does not apply. */
  readonly counters: readonly CounterReport[]
}

/** Everything that affects the decision of a request. */
export interface Explanation {
  readonly version: number
  /** How the resource was interpreted; more than one where servers differ. */
  readonly readings: readonly string[]
  /** Name of the matching entry of the deny list. */
  readonly denied: string | undefined
  readonly block: Block | undefined
  /** Name of the matching exemption. */
  readonly exemption: string | undefined
  readonly tier: { readonly name: string; readonly from: string } | undefined
  /** Every rule considered, those that apply first. */
  readonly rules: readonly RuleExplanation[]
  /** What a check would return now. */
  readonly decision: PolicyDecision
}

/** The explanation of a rule, before its counters are read. */
export interface ExplainedRule {
  readonly explanation: Omit<RuleExplanation, 'counters'>
  /** Reads its counters. Undefined if the rule does not apply. */
  readonly look: Batch | undefined
}

/** A request, what it is resolved with, and its rules. */
interface Case {
  readonly resolver: Resolver
  readonly context: ResolveContext
  readonly readings: readonly string[]
  /** The matching rules of each reading, in order. */
  readonly lines: readonly RuleLine[]
  readonly holding: ReadonlySet<CompiledRule>
}

/** The effect of every rule of a rule set on a request. */
export function explainRules(
  resolver: Resolver,
  snapshot: Snapshot,
  { request, nowMs }: { readonly request: PolicyRequest; readonly nowMs: number },
): readonly ExplainedRule[] {
  const { resource, method } = request
  const exemption = resolver.exemptionOf(snapshot, request, nowMs)
  const tier = resolver.tierOf(snapshot, request, nowMs)?.tier
  // The rules of an exemption replace all others, including those of the tier.
  const ownTier = exemption === undefined ? tier : undefined
  const table = exemption === undefined ? snapshot.rules : exemption.rules
  if (table === undefined) return []
  const about: Case = {
    resolver,
    context: resolver.contextOf(request, tier, nowMs),
    readings: readPath(resource),
    lines: ownTier?.linesOf(table, resource, method) ?? table.linesOf(resource, method),
    holding: new Set(rulesFor(ownTier?.find(table, resource, method) ?? table.find(resource, method), request)),
  }
  const present = [...table.rules, ...(ownTier?.rules?.rules ?? [])]
  const explained = present.map((rule) => explainRule(rule, about))
  const usual = isMatched(about.holding, request) ? undefined : snapshot.defaultRuleFor(request)
  if (usual !== undefined) {
    explained.push(explainRule(usual, { ...about, lines: [[usual]], holding: new Set([usual]) }))
  }
  return explained.toSorted((one, other) => Number(other.look !== undefined) - Number(one.look !== undefined))
}

/** The explanation with its counters. */
export function withCounters({ explanation, look }: ExplainedRule): RuleExplanation {
  return { ...explanation, counters: look === undefined ? [] : counterReports(look) }
}

function explainRule(rule: CompiledRule, about: Case): ExplainedRule {
  const { fate, why, entity } = fateOf(rule, about)
  const holds = (fate === 'applies' || fate === 'shadow') && entity !== undefined
  const limits = holds ? about.resolver.limitsOf(rule, entity, about.context) : []
  const explanation = {
    rule: rule.label,
    resource: rule.rule.resource,
    methods: rule.rule.methods,
    dimension: rule.dimension,
    origin: rule.origin.part === 'rules' ? 'rules' : `${rule.origin.part} ${rule.origin.name}`,
    fate,
    why,
    entity,
    steps: entity === undefined ? [] : stepsOf(rule, entity, about),
  }
  return { explanation, look: holds ? lookAt(limits, rule.reader.keyOf(entity)) : undefined }
}

interface Fate {
  readonly fate: RuleFate
  readonly why: string
  readonly entity: string | undefined
}

function fateOf(rule: CompiledRule, about: Case): Fate {
  const { request } = about.context
  const gone = (fate: RuleFate, reason: string): Fate => ({ fate, why: reason, entity: undefined })
  if (rule.rule.enabled === false) return gone('disabled', 'the rule is switched off')
  if (!about.lines.some((line) => line.includes(rule))) return gone('no-match', mismatchOf(rule, about))
  if (!about.holding.has(rule)) return gone('replaced', replacedBy(replacementOf(rule, about.lines, request), rule))
  const entity = rule.reader.read(request)
  if (entity === undefined) return gone('no-identity', `the request has no "${rule.dimension}"`)
  const limits = about.resolver.limitsOf(rule, entity, about.context)
  if (limits.length === 0) return { fate: 'off', why: 'nothing limits this caller here', entity }
  if (rule.isEnforcedFor(entity)) return { fate: 'applies', why: matchOf(rule), entity }
  const why = rule.rule.shadow === true ? 'the rule is in shadow' : `the caller is not in the ${rule.rule.percent} %`
  return { fate: 'shadow', why, entity }
}

function replacedBy(other: CompiledRule | undefined, { origin }: CompiledRule): string {
  const name = `"${other?.label ?? 'another rule'}"`
  const share = other?.reach === 'share' ? `, and the caller is in its ${other.rule.percent} %` : ''
  if (other?.origin.part === 'tier' && origin.part !== 'tier') {
    return `${name} is a rule of the tier for the same dimension, and comes before those for all${share}`
  }
  return `${name} is more specific for the same dimension${share}`
}

function matchOf({ rule, label }: CompiledRule): string {
  if (label.startsWith(DEFAULT_PREFIX)) return 'no rule matches, so the default holds'
  const methods = rule.methods === undefined ? 'any method' : rule.methods.join(', ')
  return `${rule.resource} matches, ${methods}`
}

function mismatchOf({ rule }: CompiledRule, { context, readings }: Case): string {
  const reasons = readings.map((reading) => explainPattern(rule.resource, reading))
  const mismatch = reasons.find((reason) => reason !== undefined)
  if (mismatch !== undefined && reasons.every((reason) => reason !== undefined)) return mismatch
  const { method } = context.request
  if (rule.methods !== undefined && !isAmong(rule.methods, method)) {
    return `the method is ${method}, the rule is for ${rule.methods.join(', ')}`
  }
  return 'another rule is written for the path with the slash at its end'
}

/** Whether a rule for these methods matches. As for rules, HEAD also counts as GET, and a missing method as any. */
function isAmong(methods: readonly string[], method = ''): boolean {
  const asked = method.toUpperCase()
  const names = methods.map((name) => name.toUpperCase())
  return asked === '' || names.includes(asked) || (asked === 'HEAD' && names.includes('GET'))
}

/** The limit of a rule for a caller, step by step. */
function stepsOf(rule: CompiledRule, entity: string, { resolver, context }: Case): readonly LimitStep[] {
  const { request, nowMs } = context
  const { terms, entitled = false } = { ...resolver.modificationOf(rule, entity, context) }
  const tier = terms === undefined && rule.isTiered ? context.tier : undefined
  const steps: LimitStep[] = []
  let factor = 1
  let cuts = 1
  let burst = 0
  const add = (source: LimitStep['source'], change: string): void => {
    const limit = rule.effective.limitsFor({
      terms: steps.length === 0 ? undefined : terms,
      factor,
      // Factors also apply to the burst.
      burst: Math.floor(burst * cuts),
      entitled,
    })[0]
    steps.push({ source, change, limit: limit?.limit ?? 'off' })
  }
  const times = (source: LimitStep['source'], by: number, change: string): void => {
    if (by === 1) return
    factor *= by
    add(source, change)
  }
  add('rule', `"${rule.label}" says so`)
  if (terms === undefined) {
    const region = rule.regionFactor(request.region)
    times('region', region, `${region} times in ${request.region}`)
    const schedule = rule.schedule?.multiplierAt(nowMs) ?? 1
    times('schedule', schedule, `${schedule} times at this time`)
  } else {
    const problem = rule.effective.problemOf(terms)
    add(
      'override',
      problem === undefined ? `an override for ${entity}` : `an override that cannot be applied: ${problem}`,
    )
  }
  if (tier !== undefined && (tier.multiplier !== 1 || tier.burst > 0)) {
    factor *= tier.multiplier
    burst = tier.burst
    add('tier', tierChange(tier, rule))
  }
  const guard = rule.guard?.factorAt(nowMs) ?? 1
  cuts = guard
  times('error-rate', guard, `${guard} times while calls fail`)
  const incident = context.isIncident ? rule.incidentFactor : 1
  cuts *= incident
  times('incident', incident, `${incident} times during an incident`)
  return steps
}

function tierChange({ name, multiplier, burst }: CompiledTier, { effective }: CompiledRule): string {
  const times = `${multiplier} times`
  if (burst === 0) return `${times} for ${name}`
  const problem = effective.burstProblem
  if (problem === undefined) return `${times} and ${burst} more at once for ${name}`
  return `${times} for ${name}, without the ${burst} more at once: ${problem}`
}
