import type { CompileOptions } from './compiled-rule.ts'
import { CompiledRule } from './compiled-rule.ts'
import { DescriptorTree } from './descriptors/descriptor-tree.ts'
import { MatchTable } from './match-table.ts'
import { ResourceTable } from './resource-table.ts'
import { ruleName } from './rule-name.ts'
import type { RuleOrigin } from './rule-origin.ts'
import type { DenyEntry, Exemption, PolicyRule, RuleSet, Tier } from './rule-set.ts'
import { KNOWN_DIMENSIONS } from './rule-set.ts'

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
   * The rules that hold: for each dimension the most specific one, and those that always do. Where a path can be read in
   * several ways, those of every reading, so that none of them leads past a rule.
   */
  find(resource: string, method: string | undefined): readonly CompiledRule[] {
    const found = this.findOneOrMany(resource, method)
    return found instanceof CompiledRule ? found.alone : found
  }

  /** The same; a rule that holds alone is not put into a list, which would be more memory to look at. */
  findOneOrMany(resource: string, method: string | undefined): CompiledRule | readonly CompiledRule[] {
    const found = this.#table.findNoted(resource, method)
    // Kept with what was found, which is the same for the same rules.
    found.note ??= oneOrMany([...new Set(found.matches.byReading.flatMap(mostSpecific))])
    return found.note as CompiledRule | readonly CompiledRule[]
  }

  /** Every rule that matches, the most specific first. */
  matches(resource: string, method: string | undefined): readonly CompiledRule[] {
    return this.#table.find(resource, method)
  }
}

/** A tier, ready to be applied. */
export class CompiledTier {
  readonly name: string
  readonly multiplier: number
  readonly burst: number
  readonly isEntitled: boolean
  readonly rules: RuleTable | undefined
  /** Rules for all with those of the tier in their place, by the list of the former. */
  readonly #merged = new WeakMap<readonly CompiledRule[], WeakMap<readonly CompiledRule[], readonly CompiledRule[]>>()

  constructor(tier: Tier, rules: readonly CompiledRule[]) {
    this.name = tier.name
    this.multiplier = tier.multiplier ?? 1
    this.burst = tier.burst ?? 0
    this.isEntitled = tier.entitled === true
    this.rules = rules.length > 0 ? new RuleTable(rules) : undefined
  }

  /** The rules for a caller of this tier: its own come in the place of those of the same dimension. */
  over(general: readonly CompiledRule[], resource: string, method: string | undefined): readonly CompiledRule[] {
    const own = this.rules?.find(resource, method) ?? []
    if (own.length === 0) return general
    let byOwn = this.#merged.get(general)
    if (byOwn === undefined) {
      byOwn = new WeakMap()
      this.#merged.set(general, byOwn)
    }
    let merged = byOwn.get(own)
    if (merged === undefined) {
      const dimensions = new Set(own.map(({ dimension }) => dimension))
      merged = [...general.filter(({ dimension, rule }) => rule.always === true || !dimensions.has(dimension)), ...own]
      byOwn.set(own, merged)
    }
    return merged
  }
}

/** An exemption, ready to be applied. */
export interface CompiledExemption {
  readonly exemption: Exemption
  /** Undefined when no rule holds for what it matches. */
  readonly rules: RuleTable | undefined
}

/**
 * A rule set, compiled: immutable, so a request that began with one ends with it whatever is put in its place meanwhile. The
 * cost of finding rules does not grow with their number.
 */
export class Snapshot {
  /** Number of the version; 0 when it has none. */
  readonly version: number
  readonly ruleSet: RuleSet
  readonly rules: RuleTable
  readonly tiers: ReadonlyMap<string, CompiledTier>
  readonly exemptions: MatchTable<CompiledExemption>
  readonly denyList: MatchTable<DenyEntry>
  readonly descriptors: DescriptorTree
  /** Every rule, also those of tiers and exemptions. */
  readonly allRules: readonly CompiledRule[]
  /** Dimensions of rules besides those that every request knows. */
  readonly furtherDimensions: readonly string[]

  /** `prefix` stands before the names of all rules, so that their counters are apart from those of another version. */
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
      { purpose: 'refuse', canonicalEntity },
    )
    this.descriptors = new DescriptorTree(ruleSet.domains ?? [])
    this.allRules = all
    const known = new Set<string>(KNOWN_DIMENSIONS)
    this.furtherDimensions = [...new Set(all.map(({ dimension }) => dimension))].filter((name) => !known.has(name))
  }
}

function oneOrMany(rules: readonly CompiledRule[]): CompiledRule | readonly CompiledRule[] {
  return rules.length === 1 ? rules[0]! : rules
}

/** Of matches in order of specificity: the first of each dimension, and all that always hold. */
function mostSpecific(matches: readonly CompiledRule[]): readonly CompiledRule[] {
  const seen = new Set<string>()
  return matches.filter(({ dimension, rule }) => {
    if (rule.always === true) return true
    if (seen.has(dimension)) return false
    seen.add(dimension)
    return true
  })
}
