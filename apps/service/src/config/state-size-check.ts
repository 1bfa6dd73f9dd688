import { canonicalDimension, compileRule, PatternSpellings, scaleRule } from '@sluice/core/internal'
import type { Override, PolicyRule, RuleSet, RuleSetProblem, Tier } from '@sluice/core/policy'
import type { Limit } from '@sluice/core/store'
import type { Settings } from '../settings.ts'

type Rule = Parameters<typeof scaleRule>[0]

/** The options of rules whose states grow with their limits. */
const SIZED_OPTIONS = ['algorithm', 'limit', 'window', 'windows', 'burst', 'segments', 'lease'] as const

const SIZED_ALGORITHMS: ReadonlySet<string> = new Set(['concurrency', 'sliding-window-log'])

/** A rule, and where it stands in its rule set. */
interface PlacedRule {
  readonly rule: PolicyRule
  readonly path: string
  /** Whether tiers change its numbers. */
  readonly isTiered: boolean
}

/**
 * Whether states fit into the memory that threads share, where they have a size that is fixed at the start. What does not fit
 * is found out when somebody says it, and not with the first call that it concerns.
 */
export class StateSizeCheck {
  /** Numbers that a state may have; `Infinity` where it may have any. */
  readonly #most: number
  readonly #spellings = new PatternSpellings()

  constructor({ threads, redis, stateSize }: Pick<Settings, 'threads' | 'redis' | 'stateSize'>) {
    this.#most = threads > 1 && redis === undefined ? stateSize : Number.POSITIVE_INFINITY
  }

  /** Whether there is anything to find. */
  get isBounded(): boolean {
    return this.#most !== Number.POSITIVE_INFINITY
  }

  /** The rules that have too large a state, in the largest form that tiers, regions and schedules make of them. */
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

  /** The overrides that make the state of a rule too large, by their places in the list. */
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

  /** Whether an override for this resource holds for a rule, however both are spelled. */
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

/** The most that region and time of day make of a rule. */
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

/** 0 for a rule that cannot be used, which others say better. */
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
