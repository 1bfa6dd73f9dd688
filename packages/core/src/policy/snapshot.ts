import { DescriptorTree } from './descriptors/descriptor-tree.ts'
import type { CompileOptions } from './limits/compiled-rule.ts'
import { CompiledRule } from './limits/compiled-rule.ts'
import type { HoldingRules, RuleLine } from './limits/rule-choice.ts'
import { holdingRules } from './limits/rule-choice.ts'
import { MatchTable } from './matching/match-table.ts'
import { ResourceTable } from './matching/resource-table.ts'
import type { RuleOrigin } from './matching/rule-name.ts'
import { DEFAULT_PREFIX, ruleName } from './matching/rule-name.ts'
import type { PolicyRequest } from './rule-set/policy-request.ts'
import type { DenyEntry, Exemption, PolicyRule, RuleSet, Tier } from './rule-set/rule-set.ts'
import { KNOWN_DIMENSIONS } from './rule-set/rule-set.ts'
import type { UndeclaredDimension } from './rule-set/undeclared-dimensions.ts'
import { undeclaredDimensions } from './rule-set/undeclared-dimensions.ts'

/** Rules of one part of a rule set, found by resource and method. */
export class RuleTable {
  readonly rules: readonly CompiledRule[]
  readonly #table: ResourceTable<CompiledRule>

  constructor(rules: readonly CompiledRule[]) {
    this.rules = rules
    const active = rules.filter(({ rule }) => rule.enabled !== false)
    this.#table = new ResourceTable(
      active.map((value) => ({ pattern: value.rule.resource, methods: value.rule.methods, value })),
    )
  }

  /**
   * The rules that apply: for each dimension the most specific enforced one, the more specific ones before it, which
   * are measured, and those that always apply. If a path has several readings, those of every reading, so that no
   * spelling bypasses a rule.
   */
  find(resource: string, method: string | undefined): HoldingRules {
    const found = this.#table.findNoted(resource, method)
    // Cached with the lookup result, which is the same for the same rules.
    found.note ??= holdingRules(found.matches.byReading)
    return found.note as HoldingRules
  }

  /** The matching rules, one list ("line") per reading. Equal lines are the same list. */
  linesOf(resource: string, method: string | undefined): readonly RuleLine[] {
    return this.#table.findByReading(resource, method)
  }

  /** Every matching rule, most specific first. */
  matches(resource: string, method: string | undefined): readonly CompiledRule[] {
    return this.#table.find(resource, method)
  }
}

/** A compiled tier. */
export class CompiledTier {
  readonly name: string
  readonly multiplier: number
  readonly burst: number
  readonly isEntitled: boolean
  readonly rules: RuleTable | undefined
  /** Cache of results, by the lines of the tier's rules and of the rules for all. */
  readonly #found = new WeakMap<readonly RuleLine[], WeakMap<readonly RuleLine[], HoldingRules>>()

  constructor(tier: Tier, rules: readonly CompiledRule[]) {
    this.name = tier.name
    this.multiplier = tier.multiplier ?? 1
    this.burst = tier.burst ?? 0
    this.isEntitled = tier.entitled === true
    this.rules = rules.length > 0 ? new RuleTable(rules) : undefined
  }

  /** The rules that apply to a member of this tier: its own come before those for all. */
  find(general: RuleTable, resource: string, method: string | undefined): HoldingRules {
    const own = this.rules?.linesOf(resource, method)
    // Readings without matches share one empty line.
    if (own === undefined || (own.length === 1 && own[0]!.length === 0)) return general.find(resource, method)
    const others = general.linesOf(resource, method)
    let byOthers = this.#found.get(own)
    if (byOthers === undefined) {
      byOthers = new WeakMap()
      this.#found.set(own, byOthers)
    }
    let found = byOthers.get(others)
    if (found === undefined) {
      found = holdingRules(joined(own, others))
      byOthers.set(others, found)
    }
    return found
  }

  /** The rules that match for a member of this tier, one line per reading. */
  linesOf(general: RuleTable, resource: string, method: string | undefined): readonly RuleLine[] {
    const others = general.linesOf(resource, method)
    return this.rules === undefined ? others : joined(this.rules.linesOf(resource, method), others)
  }
}

/** A compiled exemption. */
export interface CompiledExemption {
  readonly exemption: Exemption
  /** Undefined if no rule applies to what it matches. */
  readonly rules: RuleTable | undefined
}

/** A rule for all that cannot take the burst of tiers. */
export interface UnusableBurst {
  readonly rule: string
  /** Names of the tiers. */
  readonly tiers: readonly string[]
  readonly problem: string
}

/**
 * A compiled rule set. Immutable, so a request keeps the one it started with, even if it is replaced meanwhile. The
 * cost of finding rules does not grow with their number.
 */
export class Snapshot {
  /** Number of the version; 0 if it has none. */
  readonly version: number
  readonly ruleSet: RuleSet
  readonly rules: RuleTable
  readonly tiers: ReadonlyMap<string, CompiledTier>
  readonly exemptions: MatchTable<CompiledExemption>
  readonly denyList: MatchTable<DenyEntry>
  readonly descriptors: DescriptorTree
  /** Every rule, including those of tiers and exemptions. */
  readonly allRules: readonly CompiledRule[]
  /** Dimensions of rules besides the built-in ones. */
  readonly furtherDimensions: readonly string[]
  readonly unusableBursts: readonly UnusableBurst[]
  readonly undeclaredDimensions: readonly UndeclaredDimension[]
  /** The default rule for each kind of caller, in order of preference; empty if there is none. */
  readonly #defaults: readonly CompiledRule[]

  /** `prefix` of the names of all rules, which separates their counters from those of another version. */
  constructor(ruleSet: RuleSet, options: CompileOptions & { readonly version: number; readonly prefix?: string }) {
    const all: CompiledRule[] = []
    const compile = (rules: readonly PolicyRule[], origin: RuleOrigin): readonly CompiledRule[] =>
      rules.map((rule) => {
        const label = ruleName(rule, origin)
        const name = (options.prefix ?? '') + label
        const { regions, incident = 1, errorRate } = ruleSet
        const compiled = new CompiledRule(rule, { name, label, origin, regions, incident, errorRate }, options)
        all.push(compiled)
        return compiled
      })
    this.version = options.version
    this.ruleSet = ruleSet
    this.rules = new RuleTable(compile(ruleSet.rules, { part: 'rules', name: '' }))
    this.tiers = new Map(
      (ruleSet.tiers ?? []).map((tier) => [
        tier.name,
        new CompiledTier(tier, compile(tier.rules ?? [], { part: 'tier', name: tier.name })),
      ]),
    )
    const canonicalEntity = (dimension: string, entity: string): string =>
      options.readers.of(dimension).canonical(entity)
    this.exemptions = new MatchTable(
      (ruleSet.exemptions ?? []).map((exemption) => {
        const rules = compile(exemption.rules ?? [], { part: 'exemption', name: exemption.name })
        const value = { exemption, rules: exemption.rules === undefined ? undefined : new RuleTable(rules) }
        return { match: exemption.match, value }
      }),
      { purpose: 'lift', canonicalEntity },
    )
    this.denyList = new MatchTable(
      (ruleSet.denyList ?? []).map((entry) => ({ match: entry.match, value: entry, expiresAt: entry.expiresAt })),
      { purpose: 'deny', canonicalEntity },
    )
    this.descriptors = new DescriptorTree(ruleSet.domains ?? [])
    this.allRules = all
    const known = new Set<string>(KNOWN_DIMENSIONS)
    this.furtherDimensions = [...new Set(all.map(({ dimension }) => dimension))].filter((name) => !known.has(name))
    this.unusableBursts = this.#findUnusableBursts()
    this.undeclaredDimensions = undeclaredDimensions(ruleSet)
    this.#defaults = defaultRules(ruleSet, options)
  }

  /** The rule for a request that no enforced rule matches; undefined if there is none. */
  defaultRuleFor(request: PolicyRequest): CompiledRule | undefined {
    return this.#defaults.find(({ reader }) => reader.read(request) !== undefined)
  }

  #findUnusableBursts(): readonly UnusableBurst[] {
    const tiers = [...this.tiers.values()].filter(({ burst }) => burst > 0).map(({ name }) => name)
    if (tiers.length === 0) return []
    return this.rules.rules.flatMap(({ rule, label, isTiered, effective }) => {
      const problem = isTiered && rule.enabled !== false ? effective.burstProblem : undefined
      return problem === undefined ? [] : [{ rule: label, tiers, problem }]
    })
  }
}

/**
 * Each line combined with each of the others: which of them belong to one reading is unknown, and no reading may bypass
 * a rule.
 */
function joined(first: readonly RuleLine[], others: readonly RuleLine[]): readonly RuleLine[] {
  return first.flatMap((line) => others.map((other) => [...line, ...other]))
}

/** What a default rule counts: the first of these that a request has. */
const DEFAULT_DIMENSIONS = ['user', 'apiKey', 'tenant', 'service', 'ip', 'global'] as const

function defaultRules(
  { regions, incident = 1 }: RuleSet,
  options: CompileOptions & { readonly prefix?: string },
): readonly CompiledRule[] {
  const { defaultRule, prefix = '' } = options
  if (defaultRule === undefined) return []
  return DEFAULT_DIMENSIONS.map((dimension) => {
    const label = DEFAULT_PREFIX + dimension
    const rule = { ...defaultRule, resource: '*', dimension } as PolicyRule
    const origin: RuleOrigin = { part: 'rules', name: '' }
    return new CompiledRule(
      rule,
      { name: prefix + label, label, origin, regions, incident, errorRate: undefined },
      options,
    )
  })
}
