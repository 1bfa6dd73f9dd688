import { callerShare } from './caller-share.ts'
import { assertRuleSet } from './check-rule-set.ts'
import type { CompileOptions } from './compiled-rule.ts'
import { ErrorRateGuard } from './error-rate.ts'
import type { PolicyRequest } from './policy-request.ts'
import type { ErrorRateCut, RuleSet } from './rule-set.ts'
import { Snapshot } from './snapshot.ts'

/** A rule set and its number. */
export interface NumberedRuleSet {
  readonly number: number
  readonly ruleSet: RuleSet
}

/** What is in force. */
export interface PolicyVersions {
  /** Enforced for all callers that the candidate is not enforced for; everything is allowed when left out. */
  readonly enforced?: NumberedRuleSet
  readonly candidate?: NumberedRuleSet & {
    /** `shadow`: measured and never enforced. `percent`: enforced for that share of the callers, measured for the others. */
    readonly stage: 'shadow' | 'percent'
    /** 0 to 100. */
    readonly percent: number
  }
}

interface Candidate {
  readonly enforced: Snapshot
  /** The same rules with counters of their own, for callers it is only measured for. */
  readonly measured: Snapshot
  readonly percent: number
}

/** Whoever no dimension names is still one caller, and always on the same side. */
const NOBODY = ''

/** Holds what is in force and says which rule set a request goes by. */
export class VersionSelector {
  enforced: Snapshot
  readonly #options: CompileOptions
  #candidate: Candidate | undefined = undefined
  /** Guards by what they guard: counts go on when another rule set is put in force. */
  #guards = new Map<string, ErrorRateGuard>()

  constructor(options: CompileOptions) {
    this.#options = options
    this.enforced = new Snapshot({ rules: [] }, { ...options, version: 0 })
  }

  use({ enforced, candidate }: PolicyVersions): void {
    const next = this.#compile(enforced ?? { number: 0, ruleSet: { rules: [] } })
    const nextCandidate = candidate === undefined ? undefined : this.#compileCandidate(candidate)
    // Nothing below throws: both take effect, or none.
    this.enforced = next
    this.#candidate = nextCandidate
    const guards = new Map<string, ErrorRateGuard>()
    for (const snapshot of [next, nextCandidate?.enforced]) {
      if (snapshot !== undefined) this.#attachGuards(snapshot, guards)
    }
    this.#guards = guards
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

  /** Counts how a request ended, in every guard that it concerns. */
  report({ resource, method }: Pick<PolicyRequest, 'resource' | 'method'>, failed: boolean, nowMs: number): void {
    if (this.#guards.size === 0) return
    this.#guards.get(WHOLE_SET)?.report(failed, nowMs)
    for (const { rule, guard } of this.enforced.rules.matches(resource, method)) {
      if (rule.errorRate !== undefined) guard?.report(failed, nowMs)
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

  #attachGuards(snapshot: Snapshot, guards: Map<string, ErrorRateGuard>): void {
    for (const compiled of snapshot.allRules) {
      if (compiled.errorRate === undefined) continue
      const place = compiled.rule.errorRate === undefined ? WHOLE_SET : compiled.name
      compiled.guard = guards.get(place) ?? this.#guardFor(place, compiled.errorRate)
      guards.set(place, compiled.guard)
    }
  }

  #guardFor(place: string, settings: ErrorRateCut): ErrorRateGuard {
    const before = this.#guards.get(place)
    return before !== undefined && isSame(before.settings, settings) ? before : new ErrorRateGuard(settings)
  }
}

/** The guard for rules without one of their own; no rule has an empty name. */
const WHOLE_SET = ''

function isSame(one: ErrorRateCut, other: ErrorRateCut): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

function isInShare(candidate: Candidate, request: PolicyRequest): boolean {
  if (candidate.percent === 0) return false
  const { user, apiKey, tenant, ip } = request
  const caller = user || apiKey || tenant || ip || NOBODY
  return callerShare(`version ${candidate.enforced.version}`, caller) < candidate.percent
}
