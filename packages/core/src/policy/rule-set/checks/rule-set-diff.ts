import { ruleName } from '../../matching/rule-name.ts'
import type { RuleSet } from '../rule-set.ts'

/** A difference between two rule sets. */
export interface RuleSetChange {
  readonly change: 'added' | 'removed' | 'changed'
  /** The part of the rule set, such as `rules`, `tiers`, `exemptions`, `denyList`, `domains`, `regions`. */
  readonly part: string
  /**
   * Name of the changed rule, tier, entry or domain, the region, or the field of `errorRate`; empty for a part that is
   * a single value, and for the order of a part.
   */
  readonly name: string
  readonly before: unknown
  readonly after: unknown
}

/** The entries of one part, by name. */
type Entries = ReadonlyMap<string, unknown>

interface Part {
  readonly part: string
  readonly entriesOf: (ruleSet: RuleSet) => Entries
  /** Whether the first matching entry applies, so that the order matters. */
  readonly isOrdered: boolean
}

const PARTS: readonly Part[] = [
  { part: 'rules', entriesOf: allRules, isOrdered: false },
  {
    part: 'dimensions',
    entriesOf: ({ dimensions = [] }) => new Map(dimensions.map((name) => [name, true])),
    isOrdered: false,
  },
  { part: 'tiers', entriesOf: tiersAlone, isOrdered: false },
  { part: 'exemptions', entriesOf: exemptionsAlone, isOrdered: true },
  { part: 'denyList', entriesOf: ({ denyList = [] }) => byName(denyList), isOrdered: true },
  { part: 'regions', entriesOf: ({ regions = {} }) => new Map(Object.entries(regions)), isOrdered: false },
  { part: 'incident', entriesOf: ({ incident }) => new Map([['', incident]]), isOrdered: false },
  { part: 'errorRate', entriesOf: ({ errorRate = {} }) => new Map(Object.entries(errorRate)), isOrdered: false },
  {
    part: 'domains',
    entriesOf: ({ domains = [] }) => new Map(domains.map((domain) => [domain.domain, domain])),
    isOrdered: false,
  },
]

/**
 * The differences between two checked rule sets; empty if they are equivalent. Parts come in a fixed order, their
 * entries by name. Rules of tiers and exemptions are listed by their full names. The order of rules does not matter, so
 * it is ignored; of exemptions and deny entries the first match applies, so their order is compared.
 */
export function diffRuleSets(before: RuleSet, after: RuleSet): readonly RuleSetChange[] {
  return PARTS.flatMap(({ part, entriesOf, isOrdered }) => {
    const [old, now] = [entriesOf(before), entriesOf(after)]
    const changes = entryChanges(part, old, now)
    return isOrdered ? [...changes, ...orderChanges(part, old, now)] : changes
  })
}

function entryChanges(part: string, old: Entries, now: Entries): RuleSetChange[] {
  const changes: RuleSetChange[] = []
  for (const name of [...new Set([...old.keys(), ...now.keys()])].sort()) {
    const [before, after] = [old.get(name), now.get(name)]
    if (isSame(before, after)) continue
    changes.push({ change: kindOf(before, after), part, name, before, after })
  }
  return changes
}

function kindOf(before: unknown, after: unknown): RuleSetChange['change'] {
  if (before === undefined) return 'added'
  return after === undefined ? 'removed' : 'changed'
}

/** The order of the entries that both contain. */
function orderChanges(part: string, old: Entries, now: Entries): RuleSetChange[] {
  const before = [...old.keys()].filter((name) => now.has(name))
  const after = [...now.keys()].filter((name) => old.has(name))
  return isSame(before, after) ? [] : [{ change: 'changed', part, name: '', before, after }]
}

function allRules({ rules, tiers = [], exemptions = [] }: RuleSet): Entries {
  const entries = new Map<string, unknown>()
  for (const rule of rules) entries.set(ruleName(rule), rule)
  for (const { name, rules: own = [] } of tiers) {
    for (const rule of own) entries.set(ruleName(rule, { part: 'tier', name }), rule)
  }
  for (const { name, rules: own = [] } of exemptions) {
    for (const rule of own) entries.set(ruleName(rule, { part: 'exemption', name }), rule)
  }
  return entries
}

function tiersAlone({ tiers = [] }: RuleSet): Entries {
  return byName(tiers.map(({ rules: _rules, ...tier }) => tier))
}

/** An empty list of rules stays: it differs from none. */
function exemptionsAlone({ exemptions = [] }: RuleSet): Entries {
  return byName(
    exemptions.map(({ rules, ...exemption }) => (rules?.length === 0 ? { ...exemption, rules } : exemption)),
  )
}

function byName(entries: readonly { readonly name: string }[]): Entries {
  return new Map(entries.map((entry) => [entry.name, entry]))
}

/**
 * Whether two values of plain data are equal: the order of properties does not matter, and undefined ones are ignored.
 */
function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false
  if (Array.isArray(one) !== Array.isArray(other)) return false
  const [left, right] = [Object.entries(one), Object.entries(other)].map((entries) =>
    entries.filter(([, value]) => value !== undefined),
  )
  if (left!.length !== right!.length) return false
  const values = new Map(right)
  return left!.every(([name, value]) => isSame(value, values.get(name)))
}
