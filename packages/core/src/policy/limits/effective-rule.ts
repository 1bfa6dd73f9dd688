import { isSluiceError } from '../../errors.ts'
import type { Limit } from '../../rule/limit.ts'
import type { Rule } from '../../rule/rule.ts'
import { compileRule } from '../../rule-kinds.ts'
import type { OverrideTerms } from '../entries/live-entry.ts'
import type { PolicyRule } from '../rule-set/rule-set.ts'
import type { NotApplicable } from './scale-rule.ts'
import { addBurst, algorithmRuleOf, applyTerms, scaleRule, withoutHybridBurst } from './scale-rule.ts'

/** What holds for one request besides the rule itself. */
export interface LimitModification {
  /** Of the override for the caller, or undefined when there is none. The same object for the same terms. */
  readonly terms: OverrideTerms | undefined
  /**
   * Multiplies all numbers, 0 or more. Without an override: tier x region x schedule x incident x cut by failures. With
   * one: incident x cut by failures, because the numbers of an override are taken as they are.
   */
  readonly factor: number
  /**
   * Units of the tier that may pass at once on top of the limit: whole, 0 or more. An override leaves it out of
   * account.
   */
  readonly burst: number
  /** False closes the burst of a `hybrid` rule, unless an override names one. Default: true. Others ignore it. */
  readonly entitled?: boolean
}

/** Maximum number of variants of a rule that are kept, in two generations. */
const MOST_VARIANTS = 4096

/**
 * The limits of one rule under everything that changes them. In the order of resolution: the rule is the most specific
 * one that was found (the default for all resources, or that of the resource); an override for the caller takes its
 * place, or else the tier multiplies it and adds its burst, region and schedule multiply it; then an incident and a cut
 * by failures multiply whatever came out.
 *
 * Variants of a rule have the same ids wherever their states have the same form, so that they go on with one counter: a
 * raised limit helps at once, a lowered one counts what was used. Counters are apart where a tier's burst comes on top
 * of a window, and where an override puts several windows in the place of one.
 */
export class EffectiveLimits {
  readonly #variants: VariantTable
  /** For callers without the burst of a hybrid; undefined where there is none to close. */
  readonly #plain: VariantTable | undefined

  /** Throws `SLUICE_INVALID_RULE` when the rule cannot be used. */
  constructor(name: string, rule: PolicyRule) {
    const own = algorithmRuleOf(rule)
    this.#variants = new VariantTable(name, own)
    this.#plain = own.algorithm === 'hybrid' ? new VariantTable(name, withoutHybridBurst(own)) : undefined
  }

  /** The limits as the rule states them. */
  get own(): readonly Limit[] {
    return this.#variants.own
  }

  /**
   * Why the burst of a tier cannot be added to this rule, which then goes without, in a sentence; undefined when it
   * can.
   */
  get burstProblem(): string | undefined {
    return this.#variants.burstProblem
  }

  /**
   * The limits that hold: frozen, none when nothing limits. The same modification gives the identical objects again,
   * for as long as not thousands of others were asked for in between; later ones are equal. Terms that cannot be
   * applied leave the rule's own numbers, see {@link problemOf}.
   */
  limitsFor(modification: LimitModification): readonly Limit[] {
    const { terms, factor, burst } = modification
    const table = modification.entitled === false && this.#plain !== undefined ? this.#plain : this.#variants
    if (terms !== undefined) return table.find(terms, factor).limits
    return factor === 1 && burst === 0 ? table.own : table.find(burst, factor).limits
  }

  /** The limits under terms of an override, and why the terms cannot be applied, if they cannot. */
  variantFor(modification: LimitModification & { readonly terms: OverrideTerms }): Variant {
    const table = modification.entitled === false && this.#plain !== undefined ? this.#plain : this.#variants
    return table.find(modification.terms, modification.factor)
  }

  /** Why these terms cannot be applied to this rule, in a sentence; undefined when they can. Cheap to ask again. */
  problemOf(terms: OverrideTerms): string | undefined {
    return this.#variants.find(terms, 1).problem
  }
}

/** Limits that follow from a modification. */
export class Variant {
  readonly limits: readonly Limit[]
  readonly problem: string | undefined

  constructor(limits: readonly Limit[], problem: string | undefined) {
    this.limits = Object.freeze(limits)
    this.problem = problem
  }
}

/** Variants by what they come from (the terms of an override, or the burst of a tier), then by factor. */
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

/** The variants of one rule in use: when there are too many, those not asked for lately go. */
class VariantTable {
  readonly own: readonly Limit[]
  readonly #name: string
  readonly #rule: Rule
  #young = new Generation()
  #old = this.#young
  // What was asked for last is often asked for again.
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

  /** The rule with numbers that came from outside, if they can be used. */
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
