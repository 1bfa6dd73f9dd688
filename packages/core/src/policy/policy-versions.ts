import type { CallEnd } from './error-rate-guards.ts'
import { ErrorRateGuards } from './error-rate-guards.ts'
import type { CompileOptions } from './limits/compiled-rule.ts'
import { callerShare } from './limits/compiled-rule.ts'
import type { BlockingRule } from './penalty-tracker.ts'
import { assertRuleSet } from './rule-set/checks/check-rule-set.ts'
import type { PolicyRequest } from './rule-set/policy-request.ts'
import type { RuleSet } from './rule-set/rule-set.ts'
import type { UndeclaredDimension } from './rule-set/undeclared-dimensions.ts'
import type { UnusableBurst } from './snapshot.ts'
import { Snapshot } from './snapshot.ts'

/** A rule set and its number. */
export interface NumberedRuleSet {
  readonly number: number
  readonly ruleSet: RuleSet
}

/** The active versions. */
export interface PolicyVersions {
  /** Enforced for all callers that the candidate is not enforced for. Default: everything is allowed. */
  readonly enforced?: NumberedRuleSet
  readonly candidate?: NumberedRuleSet & {
    /**
     * `shadow`: measured and never enforced. `percent`: enforced for that share of the callers, measured for the
     * others.
     */
    readonly stage: 'shadow' | 'percent'
    /** 0 to 100. */
    readonly percent: number
  }
}

interface Candidate {
  readonly enforced: Snapshot
  /** The same rules with separate counters, for callers that the candidate is only measured for. */
  readonly measured: Snapshot
  readonly percent: number
}

/** Requests without any identity count as one caller, so all of them get the same version. */
const ANONYMOUS = ''

/** Maximum number of removed rules with a penalty that are remembered; the oldest are dropped. */
const MOST_PAST_RULES = 10_000

/** A rule with a penalty that is no longer active. */
interface PastRule {
  readonly dimension: string
  readonly rule: BlockingRule
}

/** Holds the active versions, and selects the rule set for a request. */
export class VersionSelector {
  enforced: Snapshot
  readonly #options: CompileOptions
  #candidate: Candidate | undefined = undefined
  #guards = new ErrorRateGuards([])
  /** By dimension and name: blocks outlive the rule sets whose rules caused them. */
  readonly #past = new Map<string, PastRule>()

  constructor(options: CompileOptions) {
    this.#options = options
    this.enforced = new Snapshot({ rules: [] }, { ...options, version: 0 })
  }

  use({ enforced, candidate }: PolicyVersions): void {
    const next = this.#compile(enforced ?? { number: 0, ruleSet: { rules: [] } })
    const nextCandidate = candidate === undefined ? undefined : this.#compileCandidate(candidate)
    const all = nextCandidate === undefined ? [next] : [next, nextCandidate.enforced, nextCandidate.measured]
    this.#guards = new ErrorRateGuards(all, this.#guards)
    // Nothing below throws: both take effect, or none.
    for (const snapshot of this.#inForce()) this.#rememberPenalties(snapshot)
    this.enforced = next
    this.#candidate = nextCandidate
  }

  /** The rule set that is enforced for a request. */
  snapshotFor(request: PolicyRequest): Snapshot {
    const candidate = this.#candidate
    if (candidate === undefined || candidate.percent === 0) return this.enforced
    return isInShare(candidate, request) ? candidate.enforced : this.enforced
  }

  /** The rule set that is only measured for a request. */
  measuredFor(request: PolicyRequest): Snapshot | undefined {
    const candidate = this.#candidate
    if (candidate === undefined || isInShare(candidate, request)) return undefined
    return candidate.measured
  }

  /** The active rules that apply without the burst of tiers. */
  get unusableBursts(): readonly (UnusableBurst & { readonly version: number })[] {
    return this.#inForce().flatMap(({ unusableBursts, version }) => unusableBursts.map((one) => ({ ...one, version })))
  }

  /** Dimensions of the active rule sets that requests may not have. */
  get undeclaredDimensions(): readonly (UndeclaredDimension & { readonly version: number })[] {
    return this.#inForce().flatMap((snapshot) =>
      snapshot.undeclaredDimensions.map((one) => ({ ...one, version: snapshot.version })),
    )
  }

  /** Counts the outcome of a request in every guard that it matches. */
  report(request: Pick<PolicyRequest, 'resource' | 'method'>, end: CallEnd): void {
    this.#guards.report(request, end)
  }

  /**
   * The rules that may have blocked a caller of a dimension, given in its canonical spelling; each name once. All
   * active ones, with or without a penalty, because the penalty may have been removed; and those of earlier rule sets
   * that had one.
   */
  blockingRules(dimension: string): readonly BlockingRule[] {
    const found = new Map<string, BlockingRule>()
    for (const { rule, ...past } of this.#past.values()) {
      if (past.dimension === dimension) found.set(rule.name, rule)
    }
    for (const { name, penaltyLimits, reader } of this.#inForce().flatMap(({ allRules }) => allRules)) {
      if (reader.dimension !== dimension) continue
      // Denials are counted under the name alone, whatever the penalty is.
      found.set(name, { name, penaltyLimits: penaltyLimits ?? found.get(name)?.penaltyLimits })
    }
    return [...found.values()]
  }

  /** The rule sets that can deny a request. */
  #inForce(): readonly Snapshot[] {
    return this.#candidate === undefined ? [this.enforced] : [this.enforced, this.#candidate.enforced]
  }

  #rememberPenalties({ allRules }: Snapshot): void {
    for (const { name, reader, penaltyLimits } of allRules) {
      if (penaltyLimits === undefined) continue
      const { dimension } = reader
      const place = `${dimension} ${name}`
      this.#past.delete(place)
      this.#past.set(place, { dimension, rule: { name, penaltyLimits } })
    }
    for (const place of this.#past.keys()) {
      if (this.#past.size <= MOST_PAST_RULES) break
      this.#past.delete(place)
    }
  }

  #compile({ number, ruleSet }: NumberedRuleSet, prefix = ''): Snapshot {
    assertRuleSet(ruleSet, { costFunctions: Object.keys(this.#options.costFunctions) })
    return new Snapshot(ruleSet, { ...this.#options, version: number, prefix })
  }

  #compileCandidate(candidate: NonNullable<PolicyVersions['candidate']>): Candidate {
    return {
      enforced: this.#compile(candidate),
      measured: this.#compile(candidate, `shadow:${candidate.number}:`),
      percent: candidate.stage === 'percent' ? candidate.percent : 0,
    }
  }
}

function isInShare(candidate: Candidate, request: PolicyRequest): boolean {
  if (candidate.percent === 0) return false
  const { user, apiKey, tenant, ip, service } = request
  const caller = user || apiKey || tenant || ip || service || ANONYMOUS
  return callerShare(`version ${candidate.enforced.version}`, caller) < candidate.percent
}
