import { nameSpace } from '../../fingerprint.ts'
import type { PolicyRuleSettings } from '../rule-set/rule-set.ts'
import { canonicalPattern } from './resource-pattern.ts'

/**
 * Longest name of a rule of a rule set: with `shadow:<version>:` and `penalty:` before it, it still is a name that
 * limits can have.
 */
export const LONGEST_RULE_NAME = 96

/** What names may not begin with, because the names that are made begin so. */
export const RESERVED_NAME: RegExp = /^(?:tier|exemption|shadow|penalty|descriptors|default):/

/** The names of default rules begin so. */
export const DEFAULT_PREFIX = 'default:'

/** Which rule is meant, as far as its name goes. */
type NamedRule = Pick<PolicyRuleSettings, 'name' | 'resource' | 'methods' | 'dimension'>

/** Everything that names may not hold, and `@`, which separates the parts of those made here. */
const FOREIGN = /[^A-Za-z0-9_.:/*-]/g

const HASH_LENGTH = 12

/**
 * The name of a rule, which its counters belong to: its own, or one made of methods, resource and dimension, such as
 * `GET:/orders@user`. Rules that differ in one of these get different names, however these are spelled: where a part
 * cannot stand in a name as it is, or the name gets too long, the name ends in `@@` and a hash. Rules of tiers and
 * exemptions have `tier:<name>:` or `exemption:<name>:` before it. The resource must be a pattern that can be used.
 */
export function ruleName(rule: NamedRule, origin?: RuleOrigin): string {
  const place = origin === undefined || origin.part === 'rules' ? '' : `${origin.part}:${origin.name}:`
  if (rule.name === undefined) return madeName(place, rule)
  const name = place + rule.name
  return name.length <= LONGEST_RULE_NAME ? name : withHash(name, name)
}

/** The methods of a rule in one spelling and order, or undefined when it is for all. */
export function canonicalMethods(methods: readonly string[] | undefined): readonly string[] | undefined {
  return methods === undefined ? undefined : [...new Set(methods.map((method) => method.toUpperCase()))].sort()
}

/** The names of a dimension in one order: `user+tenant` counts the same as `tenant+user`. */
export function canonicalDimension(dimension: string): string {
  return dimension.includes('+') ? dimension.split('+').sort().join('+') : dimension
}

function madeName(place: string, rule: NamedRule): string {
  const resource = canonicalPattern(rule.resource)
  const methods = canonicalMethods(rule.methods)?.map((method) => `${method}:`) ?? []
  const dimension = canonicalDimension(rule.dimension)
  const shownResource = resource.replace(FOREIGN, '-')
  const own = `${methods.join('')}${shownResource}@${dimension.replaceAll('+', '@')}`
  const name = place + own
  // Paths and methods begin with what a name may begin with; other resources may begin with anything.
  const isWhole = shownResource === resource && /^[A-Za-z0-9/*]/.test(own) && !RESERVED_NAME.test(own)
  if (isWhole && name.length <= LONGEST_RULE_NAME) return name
  const shown = isWhole
    ? own
    : own.replace(/^[^A-Za-z0-9/*]+/, '/').replace(RESERVED_NAME, (word) => `${word.slice(0, -1)}-`)
  return withHash(place + shown, JSON.stringify([place, methods, resource, dimension]))
}

/** The beginning of a name, and a hash of all of what it stands for. No other name made here holds `@@`. */
function withHash(name: string, whole: string): string {
  const { space0, space1 } = nameSpace(whole)
  const hash = (hex(space0) + hex(space1)).slice(0, HASH_LENGTH)
  return `${name.slice(0, LONGEST_RULE_NAME - HASH_LENGTH - 2)}@@${hash}`
}

function hex(word: number): string {
  return (word >>> 0).toString(16).padStart(8, '0')
}

/** Which part of the rule set a rule stands in. */
export interface RuleOrigin {
  readonly part: 'rules' | 'tier' | 'exemption'
  /** The name of the tier or exemption; empty for `rules`. */
  readonly name: string
}
