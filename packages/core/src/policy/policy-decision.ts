import type { Decision, DenyReason, LimitReport, Remaining } from '../limiter/decision.ts'
import { limitOfDecision } from '../limiter/decision.ts'
import type { Limit } from '../rule/limit.ts'
import { quotaUnitOf, windowMsOf } from '../rule/limit.ts'
import type { Failure } from '../store/store.ts'
import type { CompiledRule } from './limits/compiled-rule.ts'

/** Why a request was denied. `denied`: it is on the deny list. The others are as for a {@link Decision}. */
export type PolicyDenyReason = DenyReason | 'denied'

/** How one of the limits of a request stands. */
export interface PolicyLimitReport extends LimitReport {
  readonly dimension: string
  /** False: callers are not told of this limit. Else undefined. */
  readonly announce: false | undefined
}

/** The answer to a request, over all rules that apply to it. A denial is an answer, not an error. */
export interface PolicyDecision {
  readonly allowed: boolean
  /** `allowed`, `exempt` (no rule holds for it), `unlimited` (no rule applies to it), or why it was denied. */
  readonly reason: 'allowed' | 'exempt' | 'unlimited' | PolicyDenyReason
  /**
   * The rule that denied or, when allowed, the one with the least remaining; for `denied` and `exempt` the name of the
   * entry. Empty when there is none.
   */
  readonly rule: string
  /** The dimension of that rule; empty when there is none. */
  readonly dimension: string
  /** Units of that rule's limit; `Infinity` when nothing limits the request. */
  readonly limit: number
  /**
   * Whole units left under it now. Null, with `failure` set, when the store did not answer and the failure mode is
   * `open`.
   */
  readonly remaining: Remaining
  /** Units charged to it: 0 when denied and when only asked. */
  readonly cost: number
  /**
   * When its full limit is available again if nothing more is taken; milliseconds since 1970, rounded up; 0 when
   * unlimited or unknown.
   */
  readonly resetAt: number
  /**
   * Milliseconds until the same request would be allowed if nothing else happens; 0 when allowed, `Infinity` for never.
   */
  readonly retryAfterMs: number
  /** How long an admitted request must wait for its turn, in milliseconds. */
  readonly delayMs: number
  /** One report for each limit that was decided, in the order of the rules. */
  readonly limits: readonly PolicyLimitReport[]
  /**
   * False: callers are not told of the rule whose numbers these are, because it says `announce: false` and it denied,
   * or no other holds. Else undefined.
   */
  readonly announce: false | undefined
  /** Number of the rule set that decided; 0 when none was in force. */
  readonly version: number
  /** Set when the store could not be asked and this was decided without it; else undefined. */
  readonly failure: Failure | undefined
}

const NO_REPORTS: readonly PolicyLimitReport[] = Object.freeze([])

/** What every decision is made from that no store was asked for. */
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

/** A decision that remembers, out of sight, what it was made from. */
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

/** What the number of a limit means. */
type Meaning = Pick<LimitReport, 'windowMs' | 'quotaUnit'>

function meaningOf(limit: Limit): Meaning {
  return { windowMs: windowMsOf(limit), quotaUnit: quotaUnitOf(limit) }
}

/** The decision of a store over the limits of these rules. */
export function policyDecision(decision: Decision, rules: readonly CompiledRule[], version: number): PolicyDecision {
  return new RecordedPolicyDecision(decision, rules, version)
}

/** A decision for which no store was asked. */
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

/**
 * What the store decided; undefined when it was not asked, or when the decision was not made by an engine of this
 * package.
 */
export const storeDecisionOf: (decision: PolicyDecision) => Decision | undefined = RecordedPolicyDecision.decisionOf

function ruleOf(rules: readonly CompiledRule[], name: string): CompiledRule | undefined {
  for (const rule of rules) if (rule.name === name) return rule
  return undefined
}

function announceOf(rule: CompiledRule | undefined): false | undefined {
  return rule === undefined || rule.isAnnounced ? undefined : false
}

/**
 * Which items of a batch may speak for it, by the rule of each: those that are announced to callers. Undefined when all
 * are.
 */
export function announcedOnly(rules: readonly CompiledRule[]): ((index: number) => boolean) | undefined {
  for (const rule of rules) if (!rule.isAnnounced) return (index) => rules[index]!.isAnnounced
  return undefined
}
