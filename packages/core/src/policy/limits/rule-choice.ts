import type { PolicyRequest } from '../rule-set/policy-request.ts'
import { CompiledRule } from './compiled-rule.ts'

/**
 * Rules that match one reading of a path, in order of precedence: those of the caller's tier before those for all, more
 * specific ones first.
 */
export type RuleLine = readonly CompiledRule[]

/** Rules that apply: one, several, or a choice that depends on the caller. */
export type HoldingRules = CompiledRule | readonly CompiledRule[] | RuleChoice

/**
 * Rules of which some replace others, for the callers that they are enforced for. Everything that does not depend on
 * the caller was computed when it was created.
 */
export class RuleChoice {
  /** All rules that apply to some callers. */
  readonly rules: readonly CompiledRule[]
  /**
   * For each rule, the rules that may replace it, in each line that contains it; undefined if it applies to all
   * callers.
   */
  readonly #ahead: readonly (readonly RuleLine[] | undefined)[]

  constructor(rules: readonly CompiledRule[], ahead: readonly (readonly RuleLine[] | undefined)[]) {
    this.rules = rules
    this.#ahead = ahead
  }

  /** Whether one of the rules, given by index, applies to the caller of a request. */
  holds(index: number, request: PolicyRequest): boolean {
    const ahead = this.#ahead[index]
    if (ahead === undefined) return true
    // They have the same dimension, so a caller that one counts is counted by all.
    const entity = this.rules[index]!.reader.read(request)
    return entity === undefined || ahead.some((line) => !line.some((rule) => rule.isEnforcedFor(entity)))
  }
}

/**
 * The rules that apply to requests with these lines, one per reading. In a line and for one dimension, these are the
 * first rule that is enforced for the caller, and all before it, which are measured: a rule replaces later ones only
 * for the callers that it is enforced for. Rules that always apply replace none and are replaced by none. What applies
 * in one line applies, so that no reading bypasses a rule.
 */
export function holdingRules(lines: readonly RuleLine[]): HoldingRules {
  const ahead = new Map<CompiledRule, RuleLine[]>()
  for (const line of lines) {
    for (const [rule, others] of standingIn(line)) {
      const known = ahead.get(rule)
      if (known === undefined) ahead.set(rule, [others])
      else known.push(others)
    }
  }
  const rules = Object.freeze([...ahead.keys()])
  const conditions = [...ahead.values()].map((each) => (each.some(({ length }) => length === 0) ? undefined : each))
  if (conditions.some((condition) => condition !== undefined)) return new RuleChoice(rules, conditions)
  return rules.length === 1 ? rules[0]! : rules
}

/** The rules that apply to the caller of a request, enforced or measured. */
export function rulesFor(holding: HoldingRules, request: PolicyRequest): readonly CompiledRule[] {
  if (holding instanceof CompiledRule) return holding.alone
  if (!(holding instanceof RuleChoice)) return holding
  return holding.rules.filter((_rule, index) => holding.holds(index, request))
}

/** Whether one of the applicable rules is enforced for the caller of a request, whatever its limit is. */
export function isMatched(holding: Iterable<CompiledRule>, request: PolicyRequest): boolean {
  return Array.from(holding).some((rule) => {
    const entity = rule.reader.read(request)
    return entity !== undefined && rule.isEnforcedFor(entity)
  })
}

/** The rule that replaces a rule of these lines for the caller of a request. */
export function replacementOf(
  rule: CompiledRule,
  lines: readonly RuleLine[],
  request: PolicyRequest,
): CompiledRule | undefined {
  const entity = rule.reader.read(request)
  const isEnforced = (other: CompiledRule): boolean =>
    entity === undefined ? other.reach === 'all' : other.isEnforcedFor(entity)
  const line = lines.find((each) => each.includes(rule)) ?? []
  return line
    .slice(0, line.indexOf(rule))
    .find((other) => !other.isBeside && other.reader.dimension === rule.reader.dimension && isEnforced(other))
}

/**
 * The rules of a line that apply to some callers, each with the earlier ones that replace it for a share of the
 * callers.
 */
function standingIn(line: RuleLine): ReadonlyMap<CompiledRule, RuleLine> {
  const standing = new Map<CompiledRule, RuleLine>()
  const taken = new Set<string>()
  const shared = new Map<string, RuleLine>()
  for (const rule of line) {
    if (rule.isBeside) {
      standing.set(rule, [])
      continue
    }
    const { dimension } = rule.reader
    if (taken.has(dimension)) continue
    const others = shared.get(dimension) ?? []
    standing.set(rule, others)
    if (rule.reach === 'all') taken.add(dimension)
    else if (rule.reach === 'share') shared.set(dimension, [...others, rule])
  }
  return standing
}
