import { checkOptionNames } from '../../../options/known-options.ts'
import type { RuleSet } from '../rule-set.ts'
import type { RuleSetProblem } from '../rule-set-error.ts'
import { RuleSetError } from '../rule-set-error.ts'
import { RULE_SET_FILE_SCHEMA, RULE_SET_SCHEMA } from '../schema/rule-set-schema.ts'
import { describeValue } from '../schema/schema-node.ts'
import { checkDomains } from './descriptor-check.ts'
import { checkBlockMeaning, checkMembers, checkOverrideMeaning, checkOverrides } from './live-entry-check.ts'
import type { Properties } from './problem-list.ts'
import { objectsIn, ProblemList } from './problem-list.ts'
import { checkExpiry, checkMatch } from './resource-and-dimension-check.ts'
import { RuleCheck } from './rule-check.ts'
import { checkErrorRate } from './rule-options-check.ts'
import { SchemaCheck } from './schema-check.ts'

/** Options of the check. */
export interface RuleSetCheckOptions {
  /** Names of the cost functions that rules may use. Default: any name. */
  readonly costFunctions?: readonly string[]
}

const RULE_SET_CHECK = new SchemaCheck(RULE_SET_SCHEMA)
const FILE_CHECK = new SchemaCheck(RULE_SET_FILE_SCHEMA)

/**
 * All problems of a rule set, in its order; empty if it is valid. Checks the form first and, where that is valid, the
 * meaning: patterns, names, numbers, time zones, addresses. Never throws, whatever `value` is.
 */
export function checkRuleSet(value: unknown, options: RuleSetCheckOptions = {}): readonly RuleSetProblem[] {
  checkOptionsOf('checkRuleSet', options)
  return problemsOf(RULE_SET_CHECK, value, options)
}

/** The same for the content of a file: it may also contain overrides and members, and instants may be strings. */
export function checkRuleSetFile(value: unknown, options: RuleSetCheckOptions = {}): readonly RuleSetProblem[] {
  checkOptionsOf('checkRuleSetFile', options)
  return problemsOf(FILE_CHECK, value, options)
}

/** `value` as a rule set; throws a {@link RuleSetError} with all its problems. `source`: its origin. */
export function assertRuleSet(
  value: unknown,
  options: RuleSetCheckOptions & { readonly source?: string } = {},
): RuleSet {
  const { source, ...against } = options
  const problems = checkRuleSet(value, against)
  if (problems.length > 0) throw new RuleSetError(problems, source)
  return value as RuleSet
}

function checkOptionsOf(name: string, options: RuleSetCheckOptions): void {
  checkOptionNames(options, { name, options: ['costFunctions'], example: '{ costFunctions: ["size"] }' })
}

/** All problems of an override. */
export function checkOverride(value: unknown): readonly RuleSetProblem[] {
  return entryProblems(value, 'override', checkOverrideMeaning)
}

/** All problems of a membership. Does not check whether its tier exists, which depends on the rule set. */
export function checkMembership(value: unknown): readonly RuleSetProblem[] {
  return entryProblems(value, 'membership')
}

/** All problems of a block. */
export function checkBlock(value: unknown): readonly RuleSetProblem[] {
  return entryProblems(value, 'block', checkBlockMeaning)
}

/** All problems of an incident. */
export function checkIncident(value: unknown): readonly RuleSetProblem[] {
  return entryProblems(value, 'incident')
}

function entryProblems(
  value: unknown,
  definition: 'override' | 'membership' | 'block' | 'incident',
  checkMeaning?: (problems: ProblemList, entry: Properties, path: string) => void,
): readonly RuleSetProblem[] {
  const form = RULE_SET_CHECK.problemsOf(value, `#/$defs/${definition}`)
  if (checkMeaning === undefined || typeof value !== 'object' || value === null) return form
  const problems = new ProblemList(form)
  checkMeaning(problems, value as Properties, '')
  return problems.all
}

function problemsOf(
  check: SchemaCheck,
  value: unknown,
  { costFunctions }: RuleSetCheckOptions,
): readonly RuleSetProblem[] {
  const form = check.problemsOf(value)
  if (typeof value !== 'object' || value === null) return form
  const problems = new ProblemList(form)
  const parts = value as Properties
  checkRuleParts(problems, parts, costFunctions)
  for (const [entry, path] of objectsIn(parts['denyList'], '/denyList')) {
    checkMatch(problems, entry['match'], `${path}/match`)
    checkExpiry(problems, entry, path)
  }
  checkNames(problems, parts['denyList'], '/denyList')
  checkErrorRate(problems, parts['errorRate'], '/errorRate')
  checkDomains(problems, parts['domains'], '/domains')
  if (!problems.isWrong('/overrides')) checkOverrides(problems, parts['overrides'], '/overrides')
  if (!problems.isWrong('/members')) {
    const tiers = [...objectsIn(parts['tiers'], '/tiers')].map(([{ name }]) => String(name))
    checkMembers(problems, { members: parts['members'], tiers }, '/members')
  }
  return problems.inOrder(Object.keys(parts))
}

/** All parts that contain rules. */
function checkRuleParts(problems: ProblemList, parts: Properties, costFunctions: readonly string[] | undefined): void {
  const rules = new RuleCheck(problems, costFunctions)
  rules.check(parts['rules'], '/rules', { part: 'rules', name: '' })
  const tierNames = checkNames(problems, parts['tiers'], '/tiers')
  for (const [tier, path] of objectsIn(parts['tiers'], '/tiers')) {
    rules.check(tier['rules'], `${path}/rules`, { part: 'tier', name: tierNames.get(path) ?? path })
  }
  const exemptionNames = checkNames(problems, parts['exemptions'], '/exemptions')
  for (const [exemption, path] of objectsIn(parts['exemptions'], '/exemptions')) {
    checkMatch(problems, exemption['match'], `${path}/match`)
    rules.check(exemption['rules'], `${path}/rules`, { part: 'exemption', name: exemptionNames.get(path) ?? path })
  }
}

/** Checks that names are unique. Returns the unique names by location. */
function checkNames(problems: ProblemList, entries: unknown, path: string): ReadonlyMap<string, string> {
  const first = new Map<string, string>()
  const names = new Map<string, string>()
  for (const [{ name }, place] of objectsIn(entries, path)) {
    if (typeof name !== 'string' || !problems.isSound(`${place}/name`)) continue
    const other = first.get(name)
    if (other === undefined) {
      first.set(name, place)
      names.set(place, name)
    } else problems.add(`${place}/name`, describeValue(name), `a name of its own: ${other} has it already`)
  }
  return names
}
