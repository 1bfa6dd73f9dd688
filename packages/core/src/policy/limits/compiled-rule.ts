import { SluiceError } from '../../errors.ts'
import { Fingerprint } from '../../fingerprint.ts'
import type { Limit } from '../../rule/limit.ts'
import type { Rule } from '../../rule/rule.ts'
import { checkCost } from '../../store/batch.ts'
import type { OverrideTerms } from '../entries/live-entry.ts'
import { OverrideScope } from '../entries/override-table.ts'
import type { PenaltyLimits } from '../entries/penalty.ts'
import { penaltyLimits } from '../entries/penalty.ts'
import type { RuleOrigin } from '../matching/rule-name.ts'
import { canonicalDimension } from '../matching/rule-name.ts'
import type { PolicyRequest } from '../rule-set/policy-request.ts'
import type { ErrorRateCut, Penalty, PolicyRule } from '../rule-set/rule-set.ts'
import type { DimensionReader, DimensionReaders } from './dimension-reader.ts'
import { EffectiveLimits } from './effective-rule.ts'
import type { ErrorRateGuard } from './error-rate.ts'
import { Schedule } from './schedule.ts'

/** Returns the cost of a request in whole units, 0 or more. */
export type CostFunction = (request: PolicyRequest) => number

/** Dependencies of compiled rules. */
export interface CompileOptions {
  /** One reader per dimension, shared by all rules. */
  readonly readers: DimensionReaders
  readonly costFunctions: Readonly<Record<string, CostFunction>>
  /** For requests that no enforced rule matches. Default: none. */
  readonly defaultRule?: Rule | undefined
}

/** The location of a rule in a rule set, and the defaults of that set. */
export interface RulePlace {
  readonly name: string
  readonly label: string
  readonly origin: RuleOrigin
  readonly regions: Readonly<Record<string, number>> | undefined
  readonly incident: number
  readonly errorRate: ErrorRateCut | undefined
}

/** A compiled rule of a rule set. Immutable except for the guard, which counts failures across rule sets. */
export class CompiledRule {
  // Fields that every decision reads come first: with thousands of rules, each cache line matters.
  readonly reader: DimensionReader
  /** The only limit of a caller without modifications; undefined if there are several or none. */
  readonly only: Limit | undefined
  /** Whether only overrides, tiers and incidents change its numbers, and it is enforced for all at a constant cost. */
  readonly isPlain: boolean
  readonly #unitCost: number
  /** Which overrides can apply to it. */
  readonly overrides: OverrideScope
  /** The only limit under the last used terms: most rules have few, and one of them is used most. */
  #lastTerms: OverrideTerms | undefined = undefined
  #lastOnly: Limit | undefined = undefined
  /** The name of its counters. */
  readonly name: string
  readonly dimension: string
  /** The limits of a caller without modifications. */
  readonly own: readonly Limit[]
  /** Whether only overrides, tiers and incidents change its numbers. */
  readonly isSteady: boolean
  readonly #costFunction: CostFunction | undefined
  readonly #percent: number
  readonly #regions: ReadonlyMap<string, number> | undefined
  /** The name for people: the same, unless the rule is part of a version that is only measured. */
  readonly label: string
  readonly rule: PolicyRule
  readonly origin: RuleOrigin
  readonly effective: EffectiveLimits
  readonly schedule: Schedule | undefined
  readonly incidentFactor: number
  readonly errorRate: ErrorRateCut | undefined
  readonly penalty: Penalty | undefined
  /** Counts denials, if there is a penalty. */
  readonly penaltyLimits: PenaltyLimits | undefined
  /** Whether a tier changes its numbers. */
  readonly isTiered: boolean
  /** Which callers it is enforced for; for all others it is only measured. */
  readonly reach: 'all' | 'share' | 'none'
  /** Whether it applies in addition to other rules of its dimension: it replaces none and is replaced by none. */
  readonly isBeside: boolean
  /** Whether responses announce it to callers. */
  readonly isAnnounced: boolean
  /** A list with only this rule. */
  readonly alone: readonly CompiledRule[] = Object.freeze([this])
  /** Cache of the last caller and the result: it is needed once for each rule that this one may replace. */
  #lastEntity: string | undefined = undefined
  #lastEnforced = false
  /** Set by the engine if failures are to be counted. */
  guard: ErrorRateGuard | undefined = undefined

  constructor(rule: PolicyRule, place: RulePlace, options: CompileOptions) {
    const effective = new EffectiveLimits(place.name, rule)
    const own = effective.limitsFor({ terms: undefined, factor: 1, burst: 0, entitled: false })
    const regions = rule.regions ?? place.regions
    const errorRate = rule.errorRate ?? place.errorRate
    const percent = rule.shadow === true ? 0 : (rule.percent ?? 100)
    const costFunction = costFunctionOf(rule, options.costFunctions)
    const isSteady = regions === undefined && rule.schedule === undefined && errorRate === undefined
    this.reader = options.readers.of(rule.dimension)
    this.only = own.length === 1 ? own[0] : undefined
    this.isPlain = isSteady && percent >= 100 && costFunction === undefined
    this.#unitCost = typeof rule.cost === 'number' ? rule.cost : 1
    this.name = place.name
    this.dimension = rule.dimension
    this.own = own
    this.isSteady = isSteady
    this.#costFunction = costFunction
    this.#percent = percent
    this.#regions = regions === undefined ? undefined : new Map(Object.entries(regions))
    this.label = place.label
    this.rule = rule
    this.overrides = new OverrideScope(canonicalDimension(rule.dimension), rule.resource)
    this.origin = place.origin
    this.effective = effective
    this.schedule = rule.schedule === undefined ? undefined : new Schedule(rule.schedule)
    this.incidentFactor = rule.incident ?? place.incident
    this.errorRate = errorRate
    this.penalty = rule.penalty
    this.penaltyLimits = rule.penalty === undefined ? undefined : penaltyLimits(place.name, rule.penalty)
    this.reach = reachOf(percent)
    this.isBeside = rule.always === true
    this.isAnnounced = rule.announce !== false
    this.isTiered = place.origin.part === 'rules' && rule.dimension !== 'ip' && rule.dimension !== 'global'
  }

  /**
   * The only limit of a plain rule for a caller with an override as the only modification; undefined if there are
   * several or none, or the terms cannot be applied.
   */
  onlyUnder(terms: OverrideTerms): Limit | undefined {
    if (terms !== this.#lastTerms) {
      const { limits, problem } = this.effective.variantFor({ terms, factor: 1, burst: 0, entitled: false })
      this.#lastTerms = terms
      this.#lastOnly = limits.length === 1 && problem === undefined ? limits[0] : undefined
    }
    return this.#lastOnly
  }

  /** The cost of a request under a plain rule, which is constant. */
  plainCost(units: number): number {
    return bounded(this.#unitCost * units)
  }

  /** The cost of the request under this rule, times `units`. */
  costOf(request: PolicyRequest, units: number): number {
    if (this.#costFunction === undefined) return bounded(this.#unitCost * units)
    const cost = this.#costFunction(request)
    checkCost(cost)
    return bounded(cost * units)
  }

  regionFactor(region: string | undefined): number {
    if (this.#regions === undefined || region === undefined) return 1
    return this.#regions.get(region) ?? 1
  }

  /** Whether the rule is enforced for this caller, rather than only measured. */
  isEnforcedFor(entity: string): boolean {
    if (this.reach !== 'share') return this.reach === 'all'
    if (entity !== this.#lastEntity) {
      this.#lastEntity = entity
      // By the label, so that a version that is only measured selects the same callers as when it is enforced.
      this.#lastEnforced = callerShare(this.label, entity) < this.#percent
    }
    return this.#lastEnforced
  }
}

function reachOf(percent: number): CompiledRule['reach'] {
  if (percent >= 100) return 'all'
  return percent > 0 ? 'share' : 'none'
}

/** A cost above every possible limit is cut to the largest number: it never fits. */
function bounded(cost: number): number {
  return Math.min(cost, Number.MAX_SAFE_INTEGER)
}

function costFunctionOf(
  { cost }: PolicyRule,
  functions: Readonly<Record<string, CostFunction>>,
): CostFunction | undefined {
  if (cost === undefined || typeof cost === 'number') return undefined
  if ('function' in cost) {
    const found = Object.hasOwn(functions, cost.function) ? functions[cost.function] : undefined
    if (found !== undefined) return found
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: 'a rule names a cost function that the engine was not given',
      received: cost.function,
      expected:
        Object.keys(functions).length > 0 ? `one of ${Object.keys(functions).join(', ')}` : 'none: there are none',
      action: 'Pass it in "costFunctions".',
    })
  }
  const { descriptor, per = 1 } = cost
  return (request) => {
    const value = Number(request.descriptors?.[descriptor] ?? 0)
    // An invalid number costs the same as a missing one: one unit, not none, so that omitting it is not free.
    return Number.isFinite(value) && value > 0 ? bounded(Math.ceil(value / per)) : 1
  }
}

// The same in every process: all nodes must select the same callers.
const fingerprint = new Fingerprint({ low: 0x73_68_61_72, high: 0x65_00_00_01 })

/**
 * Position of a caller between 0 and 100, evenly distributed: the same for the same salt and caller on every node. A
 * share of n percent contains those below n, so a larger share contains every smaller one.
 */
export function callerShare(salt: string, caller: string): number {
  fingerprint.of(salt.length, 0, `${salt}\n${caller}`)
  return ((fingerprint.word0 >>> 0) / 0x1_00_00_00_00) * 100
}
