import type { Decision, DenyReason, LimitReport, Remaining } from '../limiter/decision.ts'
import { limitOfDecision } from '../limiter/decision.ts'
import type { Limit } from '../rule/limit.ts'
import { quotaUnitOf, windowMsOf } from '../rule/limit.ts'
import type { Failure } from '../store/store.ts'
import type { CompiledRule } from './limits/compiled-rule.ts'

/** Why a request was denied. `denied`: it is on the deny list. For the others see {@link Decision}. */
export type PolicyDenyReason = DenyReason | 'denied'

/** State of one of the limits of a request. */
export interface PolicyLimitReport extends LimitReport {
  readonly dimension: string
  /** False: callers are not told about this limit. Else undefined. */
  readonly announce: false | undefined
}

/** The decision on a request, over all rules that apply to it. A denial is a value, not an error. */
export interface PolicyDecision {
  readonly allowed: boolean
  /** `allowed`, `exempt`, `unlimited` (no rule applies), or why it was denied. */
  readonly reason: 'allowed' | 'exempt' | 'unlimited' | PolicyDenyReason
  /**
   * The rule that denied or, if allowed, the one with the least remaining; for `denied` and `exempt` the name of the
   * entry. Empty if there is none.
   */
  readonly rule: string
  /** The dimension of that rule; empty if there is none. */
  readonly dimension: string
  /** Units of that rule's limit; `Infinity` if nothing limits the request. */
  readonly limit: number
  /**
   * Whole units left under it. Null, with `failure` set, if the store did not answer and the failure mode is `open`.
   */
  readonly remaining: Remaining
  /** Units charged to it: 0 if denied or peeked. */
  readonly cost: number
  /**
   * When its full limit is available again if nothing more is charged; milliseconds since 1970, rounded up; 0 if
   * unlimited or unknown.
   */
  readonly resetAt: number
  /**
   * Milliseconds until the same request would be allowed if nothing else is charged; 0 if allowed, `Infinity` for
   * never.
   */
  readonly retryAfterMs: number
  /** How long an admitted request must wait before it runs, in milliseconds. */
  readonly delayMs: number
  /** One report per decided limit, in the order of the rules. */
  readonly limits: readonly PolicyLimitReport[]
  /**
   * False: callers are not told about this rule and its numbers, because it has `announce: false` and either it denied
   * or no other rule applies. Else undefined.
   */
  readonly announce: false | undefined
  /** Number of the rule set that decided; 0 if none was active. */
  readonly version: number
  /** Set if the decision was made without the store; else undefined. */
  readonly failure: Failure | undefined
}

const NO_REPORTS: readonly PolicyLimitReport[] = Object.freeze([])

/** What decisions without a store have in common. */
export interface Ruling {
  readonly allowed: boolean
  readonly reason: PolicyDecision['reason']
  readonly rule: string
  readonly dimension: string
  readonly retryAfterMs: number
  /** Milliseconds since 1970. */
  readonly resetAt: number
  readonly version: number
}

/** A decision with a private reference to what it was made from. */
class RecordedPolicyDecision implements PolicyDecision {
  readonly allowed: boolean
  readonly reason: PolicyDecision['reason']
  readonly rule: string
  readonly dimension: string
  readonly limit: number
  readonly remaining: Remaining
  readonly cost: number
  readonly resetAt: number
  readonly retryAfterMs: number
  readonly delayMs: number
  readonly limits: readonly PolicyLimitReport[]
  readonly announce: false | undefined
  readonly version: number
  readonly failure: Failure | undefined
  readonly #decision: Decision

  constructor(decision: Decision, rules: readonly CompiledRule[], version: number) {
    this.allowed = decision.allowed
    this.reason = decision.reason
    this.rule = decision.rule
    const deciding = ruleOf(rules, decision.rule)
    this.dimension = deciding?.dimension ?? ''
    this.limit = decision.limit
    this.remaining = decision.remaining
    this.cost = decision.cost
    this.resetAt = decision.resetAt
    this.retryAfterMs = decision.retryAfterMs
    this.delayMs = decision.delayMs
    this.limits =
      decision.limits.length > 0
        ? decision.limits.map((report) => new DimensionReport(report, ruleOf(rules, report.rule), report))
        : [new DimensionReport(decision, deciding, meaningOf(limitOfDecision(decision)!))]
    this.announce = announceOf(deciding)
    this.version = version
    this.failure = decision.failure
    this.#decision = decision
  }

  static decisionOf(decision: PolicyDecision): Decision | undefined {
    return #decision in decision ? decision.#decision : undefined
  }
}

class DimensionReport implements PolicyLimitReport {
  readonly rule: string
  readonly dimension: string
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: Remaining
  readonly resetAt: number
  readonly retryAfterMs: number
  readonly windowMs: number
  readonly quotaUnit: LimitReport['quotaUnit']
  readonly announce: false | undefined

  constructor(
    report: Omit<LimitReport, keyof Meaning>,
    rule: CompiledRule | undefined,
    { windowMs, quotaUnit }: Meaning,
  ) {
    this.rule = report.rule
    this.dimension = rule?.dimension ?? ''
    this.allowed = report.allowed
    this.limit = report.limit
    this.remaining = report.remaining
    this.resetAt = report.resetAt
    this.retryAfterMs = report.retryAfterMs
    this.windowMs = windowMs
    this.quotaUnit = quotaUnit
    this.announce = announceOf(rule)
  }
}

/** How the numbers of a limit are reported. */
type Meaning = Pick<LimitReport, 'windowMs' | 'quotaUnit'>

function meaningOf(limit: Limit): Meaning {
  return { windowMs: windowMsOf(limit), quotaUnit: quotaUnitOf(limit) }
}

/** The decision of a store on the limits of these rules. */
export function policyDecision(decision: Decision, rules: readonly CompiledRule[], version: number): PolicyDecision {
  return new RecordedPolicyDecision(decision, rules, version)
}

/** A decision without a store. */
export function ruled(ruling: Ruling): PolicyDecision {
  return {
    ...ruling,
    limit: ruling.allowed ? Number.POSITIVE_INFINITY : 0,
    remaining: ruling.allowed ? Number.POSITIVE_INFINITY : 0,
    cost: 0,
    delayMs: 0,
    limits: NO_REPORTS,
    announce: undefined,
    failure: undefined,
  }
}

/** What the store decided; undefined if it was not asked, or if an engine of another package copy made the decision. */
export const storeDecisionOf: (decision: PolicyDecision) => Decision | undefined = RecordedPolicyDecision.decisionOf

function ruleOf(rules: readonly CompiledRule[], name: string): CompiledRule | undefined {
  for (const rule of rules) if (rule.name === name) return rule
  return undefined
}

function announceOf(rule: CompiledRule | undefined): false | undefined {
  return rule === undefined || rule.isAnnounced ? undefined : false
}

/** Which items of a batch may be announced to callers, by the rule of each. Undefined for all. */
export function announcedOnly(rules: readonly CompiledRule[]): ((index: number) => boolean) | undefined {
  for (const rule of rules) if (!rule.isAnnounced) return (index) => rules[index]!.isAnnounced
  return undefined
}
