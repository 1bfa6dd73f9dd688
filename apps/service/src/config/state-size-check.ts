import { canonicalDimension, compileRule, PatternSpellings, scaleRule } from '@sluice/core/internal'
import type { Override, PolicyRule, RuleSet, RuleSetProblem, Tier } from '@sluice/core/policy'
import type { Limit } from '@sluice/core/store'
import type { Settings } from '../settings/settings.ts'

type Rule = Parameters<typeof scaleRule>[0]

/** Options of rules whose state grows with the limit. */
const SIZED_OPTIONS = ['algorithm', 'limit', 'window', 'windows', 'burst', 'segments', 'lease'] as const

const SIZED_ALGORITHMS: ReadonlySet<string> = new Set(['concurrency', 'sliding-window-log'])

/** A rule and its path in the rule set. */
interface PlacedRule {
  readonly rule: PolicyRule
  readonly path: string
  /** Whether tiers change its numbers. */
  readonly isTiered: boolean
}

/**
 * Checks that states fit into the memory that threads share, where their size is fixed at the start. Rules that do not
 * fit are rejected when they are written, not when the first check fails.
 */
export class StateSizeCheck {
  /** Maximum number of values in a state; `Infinity`: no bound. */
  readonly #most: number
  readonly #spellings = new PatternSpellings()

  constructor({ threads, redis, stateSize }: Pick<Settings, 'threads' | 'redis' | 'stateSize'>) {
    this.#most = threads > 1 && redis === undefined ? stateSize : Number.POSITIVE_INFINITY
  }

  /** Whether there is a bound. */
  get isBounded(): boolean {
    return this.#most !== Number.POSITIVE_INFINITY
  }

  /** Rules whose state is too large with the highest limit of tiers, regions and schedules. */
  problemsOf(ruleSet: RuleSet): readonly RuleSetProblem[] {
    if (!this.isBounded) return []
    const sized = rulesOf(ruleSet).filter(isSized)
    return sized.flatMap(({ rule, path, isTiered }) => {
      const tiers = isTiered ? (ruleSet.tiers ?? []) : []
      const factor = largestOf([1, ...tiers.map(({ multiplier = 1 }) => multiplier)]) * factorOf(rule, ruleSet)
      const burst = largestOf([0, ...tiers.map((tier: Tier) => tier.burst ?? 0)])
      return this.#problemOf(enlarged(scaleRule(algorithmRuleOf(rule), factor), burst), { rule, path })
    })
  }

  /** Indexes of the overrides that make the state of a rule too large. */
  problemsOfOverrides(overrides: readonly Override[], ruleSet: RuleSet): readonly RuleSetProblem[] {
    const sized = rulesOf(ruleSet).filter(isSized)
    if (sized.length === 0) return []
    return overrides.flatMap((override, index) => this.#problemsOfOverride(override, `/${index}/terms`, sized))
  }

  #problemsOfOverride(
    { dimension, resource, terms }: Override,
    path: string,
    sized: readonly PlacedRule[],
  ): readonly RuleSetProblem[] {
    const named = canonicalDimension(dimension)
    const { multiplier, window: _window, ...numbers } = terms
    const problems = sized.flatMap(({ rule }) => {
      if (canonicalDimension(rule.dimension) !== named || !this.#isFor(resource, rule)) return []
      const own = algorithmRuleOf(rule)
      const meant = multiplier === undefined ? ({ ...own, ...numbers } as Rule) : scaleRule(own, multiplier)
      return this.#problemOf(meant, { rule, path })
    })
    return problems.slice(0, 1)
  }

  /** Whether an override for this resource applies to a rule, however both are written. */
  #isFor(resource: string, rule: PolicyRule): boolean {
    return resource === '*' || this.#spellings.canonical(resource) === this.#spellings.canonical(rule.resource)
  }

  #problemOf(meant: Rule, { rule, path }: Pick<PlacedRule, 'rule' | 'path'>): readonly RuleSetProblem[] {
    const size = stateSizeOf(meant)
    if (size <= this.#most) return []
    return [
      {
        path,
        received: `a ${rule.algorithm} rule for "${rule.resource}" with ${size} numbers for each caller`,
        expected: `at most ${this.#most}: a lower limit, another algorithm, or a start with --state-size ${size}`,
      },
    ]
  }
}

function isSized({ rule }: PlacedRule): boolean {
  return SIZED_ALGORITHMS.has(String(rule.algorithm))
}

function rulesOf({ rules, tiers = [], exemptions = [] }: RuleSet): readonly PlacedRule[] {
  const placed = (list: readonly PolicyRule[] | undefined, path: string, isTiered: boolean): readonly PlacedRule[] =>
    (list ?? []).map((rule, index) => ({ rule, path: `${path}/${index}`, isTiered }))
  return [
    ...placed(rules, '/rules', true),
    ...tiers.flatMap((tier, index) => placed(tier.rules, `/tiers/${index}/rules`, false)),
    ...exemptions.flatMap((exemption, index) => placed(exemption.rules, `/exemptions/${index}/rules`, false)),
  ]
}

/** The highest limit of a rule over all regions and schedules. */
function factorOf({ regions, schedule = [] }: PolicyRule, ruleSet: RuleSet): number {
  const region = largestOf([1, ...Object.values(regions ?? ruleSet.regions ?? {})])
  return region * largestOf([1, ...schedule.map(({ multiplier }) => multiplier)])
}

function algorithmRuleOf(rule: PolicyRule): Rule {
  const given = rule as unknown as Readonly<Record<string, unknown>>
  const kept = SIZED_OPTIONS.filter((option) => given[option] !== undefined).map((option) => [option, given[option]])
  return Object.fromEntries(kept) as unknown as Rule
}

function enlarged(rule: Rule, burst: number): Rule {
  return 'limit' in rule && typeof rule.limit === 'number' ? { ...rule, limit: rule.limit + burst } : rule
}

/** 0 for an invalid rule, which is reported elsewhere. */
function stateSizeOf(rule: Rule): number {
  try {
    return largestOf([0, ...compileRule('fit', rule).map(({ stateSize }: Limit) => stateSize)])
  } catch {
    return 0
  }
}

function largestOf(numbers: readonly number[]): number {
  return Math.max(...numbers)
}
