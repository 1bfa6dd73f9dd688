import { isSluiceError } from '../../errors.ts'
import type { Limit } from '../../rule/limit.ts'
import type { Rule } from '../../rule/rule.ts'
import { compileRule } from '../../rule-kinds.ts'
import type { OverrideTerms } from '../entries/live-entry.ts'
import type { PolicyRule } from '../rule-set/rule-set.ts'
import type { NotApplicable } from './scale-rule.ts'
import { addBurst, algorithmRuleOf, applyTerms, scaleRule, withoutHybridBurst } from './scale-rule.ts'

/** What changes the numbers of a rule for one request. */
export interface LimitModification {
  /** The terms of the caller's override, or undefined without one. Equal terms are the same object. */
  readonly terms: OverrideTerms | undefined
  /**
   * Multiplies all numbers, 0 or more. Without an override: tier x region x schedule x incident x error rate. With one:
   * incident x error rate, because the numbers of an override are final.
   */
  readonly factor: number
  /** Units of the tier that may pass at once on top of the limit: whole, 0 or more. Ignored with an override. */
  readonly burst: number
  /** False disables the burst of a `hybrid` rule, unless an override sets one. Default: true. Others ignore it. */
  readonly entitled?: boolean
}

/** Maximum number of cached variants of a rule, in two generations. */
const MOST_VARIANTS = 4096

/**
 * The limits of one rule with all modifications. Order: an override for the caller replaces its numbers; otherwise the
 * tier multiplies them and adds its burst, and region and schedule multiply them; then incident and error rate multiply
 * the result.
 *
 * Variants of a rule have the same ids if their states have the same format, so they share a counter: a raised limit
 * helps at once, a lowered one counts what was used. Counters are separate if a tier's burst is on top of a window, and
 * if an override replaces one window by several.
 */
export class EffectiveLimits {
  readonly #variants: VariantTable
  /** For callers without the burst of a hybrid; undefined if there is no burst. */
  readonly #plain: VariantTable | undefined

  /** Throws `SLUICE_INVALID_RULE` for an invalid rule. */
  constructor(name: string, rule: PolicyRule) {
    const own = algorithmRuleOf(rule)
    this.#variants = new VariantTable(name, own)
    this.#plain = own.algorithm === 'hybrid' ? new VariantTable(name, withoutHybridBurst(own)) : undefined
  }

  /** The limits of the rule without modifications. */
  get own(): readonly Limit[] {
    return this.#variants.own
  }

  /**
   * Why the burst of a tier cannot be added to this rule, in a sentence; undefined if it can. The rule then applies
   * without it.
   */
  get burstProblem(): string | undefined {
    return this.#variants.burstProblem
  }

  /**
   * The applied limits: frozen, empty if nothing limits. The same modification returns identical objects, unless
   * thousands of others were used in between; then equal ones. Terms that cannot be applied leave the numbers of the
   * rule, see {@link problemOf}.
   */
  limitsFor(modification: LimitModification): readonly Limit[] {
    const { terms, factor, burst } = modification
    const table = modification.entitled === false && this.#plain !== undefined ? this.#plain : this.#variants
    if (terms !== undefined) return table.find(terms, factor).limits
    return factor === 1 && burst === 0 ? table.own : table.find(burst, factor).limits
  }

  /** The limits under the terms of an override, and why the terms cannot be applied, if they cannot. */
  variantFor(modification: LimitModification & { readonly terms: OverrideTerms }): Variant {
    const table = modification.entitled === false && this.#plain !== undefined ? this.#plain : this.#variants
    return table.find(modification.terms, modification.factor)
  }

  /** Why these terms cannot be applied to this rule, in a sentence; undefined if they can. Cached. */
  problemOf(terms: OverrideTerms): string | undefined {
    return this.#variants.find(terms, 1).problem
  }
}

/** Limits of a modification. */
export class Variant {
  readonly limits: readonly Limit[]
  readonly problem: string | undefined

  constructor(limits: readonly Limit[], problem: string | undefined) {
    this.limits = Object.freeze(limits)
    this.problem = problem
  }
}

/** Variants by their source (the terms of an override, or the burst of a tier), then by factor. */
class Generation {
  size = 0
  readonly #bySource = new Map<OverrideTerms | number, Map<number, Variant>>()

  find(source: OverrideTerms | number, factor: number): Variant | undefined {
    return this.#bySource.get(source)?.get(factor)
  }

  add(source: OverrideTerms | number, factor: number, variant: Variant): void {
    let byFactor = this.#bySource.get(source)
    if (byFactor === undefined) {
      byFactor = new Map()
      this.#bySource.set(source, byFactor)
    }
    byFactor.set(factor, variant)
    this.size++
  }
}

/** The variants of one rule in use: if there are too many, the least recently used are evicted. */
class VariantTable {
  readonly own: readonly Limit[]
  readonly #name: string
  readonly #rule: Rule
  #young = new Generation()
  #old = this.#young
  // The last variant is often the next one too.
  #last: Variant | undefined = undefined
  #lastSource: OverrideTerms | number = 0
  #lastFactor = 1

  constructor(name: string, rule: Rule) {
    this.#name = name
    this.#rule = rule
    this.own = Object.freeze(compileRule(name, rule))
  }

  get burstProblem(): string | undefined {
    const raised = addBurst(this.#rule, 1)
    return 'problem' in raised ? raised.problem : undefined
  }

  find(source: OverrideTerms | number, factor: number): Variant {
    if (this.#last !== undefined && source === this.#lastSource && factor === this.#lastFactor) return this.#last
    const variant = this.#young.find(source, factor) ?? this.#fetch(source, factor)
    this.#last = variant
    this.#lastSource = source
    this.#lastFactor = factor
    return variant
  }

  #fetch(source: OverrideTerms | number, factor: number): Variant {
    const variant = this.#old.find(source, factor) ?? this.#create(source, factor)
    if (this.#young.size >= MOST_VARIANTS / 2) {
      this.#old = this.#young
      this.#young = new Generation()
    }
    this.#young.add(source, factor, variant)
    return variant
  }

  #create(source: OverrideTerms | number, factor: number): Variant {
    if (typeof source === 'number') {
      const scaled = scaleRule(this.#rule, factor)
      const raised = addBurst(scaled, source)
      return new Variant(compileRule(this.#name, 'problem' in raised ? scaled : raised), undefined)
    }
    const applied = this.#withTerms(source)
    if (!('problem' in applied)) return new Variant(compileRule(this.#name, scaleRule(applied, factor)), undefined)
    return new Variant(compileRule(this.#name, scaleRule(this.#rule, factor)), applied.problem)
  }

  /** The rule with external numbers, if they are valid. */
  #withTerms(terms: OverrideTerms): Rule | NotApplicable {
    const applied = applyTerms(this.#rule, terms)
    if ('problem' in applied) return applied
    try {
      compileRule(this.#name, applied)
      return applied
    } catch (error) {
      if (isSluiceError(error)) return { problem: error.message }
      throw error
    }
  }
}
