import { nameSpace } from '../../fingerprint.ts'
import type { PolicyRuleSettings } from '../rule-set/rule-set.ts'
import { canonicalPattern } from './resource-pattern.ts'

/**
 * Maximum length of the name of a rule in a rule set: with the prefixes `shadow:<version>:` and `penalty:` it is still
 * a valid name for limits.
 */
export const LONGEST_RULE_NAME = 96

/** Reserved prefixes: generated names start with them. */
export const RESERVED_NAME: RegExp = /^(?:tier|exemption|shadow|penalty|descriptors|default):/

/** Prefix of the names of default rules. */
export const DEFAULT_PREFIX = 'default:'

/** The properties of a rule that determine its name. */
type NamedRule = Pick<PolicyRuleSettings, 'name' | 'resource' | 'methods' | 'dimension'>

/** Characters that are invalid in names, and `@`, which separates the parts of generated names. */
const FOREIGN = /[^A-Za-z0-9_.:/*-]/g

const HASH_LENGTH = 12

/**
 * The name of a rule, which its counters belong to: its own, or one generated from methods, resource and dimension,
 * such as `GET:/orders@user`. Rules that differ in one of these get different names, however they are spelled: if a
 * part is invalid in a name, or the name is too long, the name ends in `@@` and a hash. Rules of tiers and exemptions
 * have the prefix `tier:<name>:` or `exemption:<name>:`. The resource must be a valid pattern.
 */
export function ruleName(rule: NamedRule, origin?: RuleOrigin): string {
  const place = origin === undefined || origin.part === 'rules' ? '' : `${origin.part}:${origin.name}:`
  if (rule.name === undefined) return madeName(place, rule)
  const name = place + rule.name
  return name.length <= LONGEST_RULE_NAME ? name : withHash(name, name)
}

/** The methods of a rule, normalized and sorted, or undefined for all. */
export function canonicalMethods(methods: readonly string[] | undefined): readonly string[] | undefined {
  return methods === undefined ? undefined : [...new Set(methods.map((method) => method.toUpperCase()))].sort()
}

/** The names of a dimension, sorted: `user+tenant` counts the same as `tenant+user`. */
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
  // Paths and methods start with a valid character; other resources may start with any.
  const isWhole = shownResource === resource && /^[A-Za-z0-9/*]/.test(own) && !RESERVED_NAME.test(own)
  if (isWhole && name.length <= LONGEST_RULE_NAME) return name
  const shown = isWhole
    ? own
    : own.replace(/^[^A-Za-z0-9/*]+/, '/').replace(RESERVED_NAME, (word) => `${word.slice(0, -1)}-`)
  return withHash(place + shown, JSON.stringify([place, methods, resource, dimension]))
}

/** The start of a name, and a hash of everything it was generated from. No other generated name contains `@@`. */
function withHash(name: string, whole: string): string {
  const { space0, space1 } = nameSpace(whole)
  const hash = (hex(space0) + hex(space1)).slice(0, HASH_LENGTH)
  return `${name.slice(0, LONGEST_RULE_NAME - HASH_LENGTH - 2)}@@${hash}`
}

function hex(word: number): string {
  return (word >>> 0).toString(16).padStart(8, '0')
}

/** The part of the rule set that contains a rule. */
export interface RuleOrigin {
  readonly part: 'rules' | 'tier' | 'exemption'
  /** The name of the tier or exemption; empty for `rules`. */
  readonly name: string
}
