import { isTimeZone } from '../../../rule/calendar.ts'
import type { RuleOrigin } from '../../matching/rule-name.ts'
import { canonicalDimension, canonicalMethods, ruleName } from '../../matching/rule-name.ts'
import type { PolicyRuleSettings } from '../rule-set.ts'
import { describeValue } from '../schema/schema-node.ts'
import type { ProblemList, Properties } from './problem-list.ts'
import { objectsIn } from './problem-list.ts'
import { checkDimension, checkResource } from './resource-and-dimension-check.ts'
import { checkErrorRate, checkOptions, checkPenalty } from './rule-options-check.ts'

/** What tells rules apart. */
type NamedRule = Pick<PolicyRuleSettings, 'name' | 'resource' | 'methods' | 'dimension' | 'always' | 'enabled'>

const NAMING: readonly (keyof NamedRule)[] = ['name', 'methods', 'always', 'enabled']

/** Stands for all methods; no method is called so. */
const ALL_METHODS = '*'

/** Checks what rules mean, where their form is right. Names are unique among all rules that one of these checks. */
export class RuleCheck {
  readonly #problems: ProblemList
  readonly #costFunctions: readonly string[] | undefined
  /** Where each name was found. */
  readonly #names = new Map<string, string>()

  /** `costFunctions`: the names of those that there are; undefined when that is not known. */
  constructor(problems: ProblemList, costFunctions: readonly string[] | undefined) {
    this.#problems = problems
    this.#costFunctions = costFunctions
  }

  /** Checks the rules of one part of a rule set, which hold together. */
  check(rules: unknown, path: string, origin: RuleOrigin): void {
    const claims = new Map<string, string>()
    for (const [rule, place] of objectsIn(rules, path)) {
      const resource = checkResource(this.#problems, rule, place)
      const hasDimension = this.#checkDimension(rule, place, origin)
      checkOptions(this.#problems, rule, place)
      this.#checkSettings(rule, place)
      if (resource === undefined || !hasDimension || NAMING.some((name) => !this.#problems.isSound(`${place}/${name}`)))
        continue
      const named = rule as unknown as NamedRule
      if (this.#isAlone(named, { resource, path: place }, claims)) this.#checkName(named, place, origin)
    }
  }

  #checkDimension(rule: Properties, path: string, origin: RuleOrigin): boolean {
    if (!checkDimension(this.#problems, rule, path)) return false
    const { dimension } = rule
    if (origin.part !== 'tier' || (dimension !== 'ip' && dimension !== 'global')) return true
    const expected =
      'a dimension of callers: the rules of a tier are for its members, not for addresses or all together'
    this.#problems.add(`${path}/dimension`, describeValue(dimension), expected)
    return false
  }

  #checkSettings(rule: Properties, path: string): void {
    const { cost, schedule, errorRate, penalty } = rule
    this.#checkCost(cost, `${path}/cost`)
    for (const [{ timeZone }, place] of objectsIn(schedule, `${path}/schedule`)) {
      if (typeof timeZone !== 'string' || isTimeZone(timeZone)) continue
      this.#problems.add(`${place}/timeZone`, describeValue(timeZone), 'an IANA name such as "Europe/Berlin"')
    }
    checkErrorRate(this.#problems, errorRate, `${path}/errorRate`)
    checkPenalty(this.#problems, penalty, `${path}/penalty`)
  }

  #checkCost(cost: unknown, path: string): void {
    const known = this.#costFunctions
    if (known === undefined || typeof cost !== 'object' || cost === null || !this.#problems.isSound(path)) return
    if (!('function' in cost) || known.includes(String(cost.function))) return
    const expected = known.length === 0 ? 'no function: none was given in code' : `one of ${known.join(', ')}`
    this.#problems.add(`${path}/function`, describeValue(cost.function), expected)
  }

  /**
   * False when another rule is for the same resource, dimension and a method: which of both holds is not said.
   * `resource` is in canonical spelling.
   */
  #isAlone(
    rule: NamedRule,
    { resource, path }: { readonly resource: string; readonly path: string },
    claims: Map<string, string>,
  ): boolean {
    if (rule.always === true || rule.enabled === false) return true
    const subject = `${canonicalDimension(rule.dimension)} ${resource}`
    let first: string | undefined
    for (const method of methodsOf(rule)) {
      const claim = `${method} ${subject}`
      const claimant = claims.get(claim)
      if (claimant === undefined) claims.set(claim, path)
      else first ??= claimant
    }
    if (first === undefined) return true
    const received = `for the same resource, dimension and method as ${first}`
    this.#problems.add(path, received, 'one rule for each of them, or "always: true" for one to hold beside the other')
    return false
  }

  #checkName(rule: NamedRule, path: string, origin: RuleOrigin): void {
    const name = ruleName(rule, origin)
    const first = this.#names.get(name)
    if (first === undefined) this.#names.set(name, path)
    else
      this.#problems.add(
        `${path}/name`,
        describeValue(rule.name),
        `a name of its own: ${first} is ${JSON.stringify(name)}`,
      )
  }
}

/**
 * The methods whose requests a rule is for. What is answered to GET is answered to HEAD, so a rule for one is for both.
 */
function methodsOf({ methods }: NamedRule): readonly string[] {
  const names = canonicalMethods(methods)
  if (names === undefined) return [ALL_METHODS]
  return names.includes('GET') && !names.includes('HEAD') ? [...names, 'HEAD'] : names
}
