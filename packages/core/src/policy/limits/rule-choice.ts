import type { PolicyRequest } from '../rule-set/policy-request.ts'
import { CompiledRule } from './compiled-rule.ts'

/**
 * Rules that match one reading of a path, in the order in which they come before one another: those of the caller's
 * tier before those for all, the more specific ones before the others.
 */
export type RuleLine = readonly CompiledRule[]

/** Rules that hold: one, several, or a choice of which the caller decides. */
export type HoldingRules = CompiledRule | readonly CompiledRule[] | RuleChoice

/**
 * Rules of which some give way to others, for the callers that those are enforced for. What does not depend on the
 * caller was decided when it was made.
 */
export class RuleChoice {
  /** All that hold for some callers. */
  readonly rules: readonly CompiledRule[]
  /** For each rule, those it gives way to, of each line that it stands in; undefined when it holds for all callers. */
  readonly #ahead: readonly (readonly RuleLine[] | undefined)[]

  constructor(rules: readonly CompiledRule[], ahead: readonly (readonly RuleLine[] | undefined)[]) {
    this.rules = rules
    this.#ahead = ahead
  }

  /** Whether one of the rules, given by its index, holds for the caller of a request. */
  holds(index: number, request: PolicyRequest): boolean {
    const ahead = this.#ahead[index]
    if (ahead === undefined) return true
    // They are of one dimension, so who is counted by one is counted by all.
    const entity = this.rules[index]!.reader.read(request)
    return entity === undefined || ahead.some((line) => !line.some((rule) => rule.isEnforcedFor(entity)))
  }
}

/**
 * The rules that hold for requests with these lines, one for each reading. In a line and of one dimension, these are
 * the first rule that is enforced for the caller, and all before it, which are measured: a rule takes the place of
 * those behind it for the callers that it is enforced for, and for no others. Rules that always hold take no place and
 * lose none. What holds in one line holds, so that no reading leads past a rule.
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

/** Those of the rules that hold for the caller of a request, enforced or measured. */
export function rulesFor(holding: HoldingRules, request: PolicyRequest): readonly CompiledRule[] {
  if (holding instanceof CompiledRule) return holding.alone
  if (!(holding instanceof RuleChoice)) return holding
  return holding.rules.filter((_rule, index) => holding.holds(index, request))
}

/** Whether one of the rules that hold is enforced for the caller of a request, whatever its limit is. */
export function isMatched(holding: Iterable<CompiledRule>, request: PolicyRequest): boolean {
  return Array.from(holding).some((rule) => {
    const entity = rule.reader.read(request)
    return entity !== undefined && rule.isEnforcedFor(entity)
  })
}

/** The rule in whose favour a rule of these lines does not hold for the caller of a request. */
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
 * The rules of a line that hold for some callers, each with those before it that take its place for a share of the
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
