import { ruleName } from '@sluice/core/internal'
import type { RuleSet } from '@sluice/core/policy'

/** Something that two editors changed, each in their own way. */
export interface MergeConflict {
  /** The part of the rule set, such as `rules` or `tiers`. */
  readonly part: string
  /** Which of them; empty for a part that is one value. */
  readonly name: string
  /** What each made of it; undefined where it was removed. */
  readonly base: unknown
  readonly mine: unknown
  readonly theirs: unknown
}

/** Who is right about a conflict. */
export type Side = 'mine' | 'theirs'

/** Two edits of one rule set, put together. */
export interface MergedRuleSet {
  /** `theirs` with all changes of `mine`; of each conflict the side that was chosen. */
  readonly ruleSet: RuleSet
  readonly conflicts: readonly MergeConflict[]
}

/** The lists of a rule set, and what its entries are known by. */
const LISTS: readonly (readonly [part: keyof RuleSet, nameOf: (entry: never) => string])[] = [
  ['rules', ruleName as (entry: never) => string],
  ['tiers', ({ name }: { name: string }) => name],
  ['exemptions', ({ name }: { name: string }) => name],
  ['denyList', ({ name }: { name: string }) => name],
  ['domains', ({ domain }: { domain: string }) => domain],
]

const VALUES: readonly (keyof RuleSet)[] = ['dimensions', 'regions', 'incident', 'errorRate']

/** Names a conflict, for {@link mergeRuleSets}. */
export function conflictKey({ part, name }: Pick<MergeConflict, 'part' | 'name'>): string {
  return `${part}/${name}`
}

/**
 * Puts the changes that two editors made of one rule set together. What only one of them changed is taken from them.
 * What both changed differently is a conflict, decided by `choices`. Default: mine. All three must have been checked.
 */
export function mergeRuleSets(
  versions: { readonly base: RuleSet; readonly mine: RuleSet; readonly theirs: RuleSet },
  choices: ReadonlyMap<string, Side> = new Map(),
): MergedRuleSet {
  const conflicts: MergeConflict[] = []
  const decide: Decide = (place, base, { mine, theirs }) => {
    if (isSame(mine, theirs) || isSame(mine, base)) return theirs
    if (isSame(theirs, base)) return mine
    conflicts.push({ ...place, base, mine, theirs })
    return choices.get(conflictKey(place)) === 'theirs' ? theirs : mine
  }
  const merged: Partial<Record<keyof RuleSet, unknown>> = { rules: [] }
  for (const [part, nameOf] of LISTS) {
    const entries = mergeList(part, { versions, nameOf, decide })
    if (entries.length > 0) merged[part] = entries
  }
  for (const part of VALUES) {
    const { base, mine, theirs } = versions
    const value = decide({ part, name: '' }, base[part], { mine: mine[part], theirs: theirs[part] })
    if (value !== undefined) merged[part] = value
  }
  return { ruleSet: merged as unknown as RuleSet, conflicts }
}

type Decide = (
  place: { readonly part: string; readonly name: string },
  base: unknown,
  sides: { readonly mine: unknown; readonly theirs: unknown },
) => unknown

interface ListMerge {
  readonly versions: Readonly<Record<'base' | 'mine' | 'theirs', RuleSet>>
  readonly nameOf: (entry: never) => string
  readonly decide: Decide
}

/** In their order; what is only mine comes last. */
function mergeList(part: keyof RuleSet, { versions, nameOf, decide }: ListMerge): readonly unknown[] {
  const byName = (ruleSet: RuleSet): ReadonlyMap<string, unknown> =>
    new Map(((ruleSet[part] ?? []) as readonly never[]).map((entry) => [nameOf(entry), entry]))
  const [base, mine, theirs] = [byName(versions.base), byName(versions.mine), byName(versions.theirs)]
  const names = new Set([...theirs.keys(), ...mine.keys()])
  return [...names, ...[...base.keys()].filter((name) => !names.has(name))]
    .map((name) => decide({ part, name }, base.get(name), { mine: mine.get(name), theirs: theirs.get(name) }))
    .filter((entry) => entry !== undefined)
}

/** Whether two values of plain data say the same, whatever the order of properties. */
function isSame(one: unknown, other: unknown): boolean {
  return canonicalText(one) === canonicalText(other)
}

/** A text that is equal for values that say the same, in whatever order. */
export function canonicalText(value: unknown): string | undefined {
  return JSON.stringify(value, (_name, part: unknown) => {
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return part
    return Object.fromEntries(Object.entries(part).sort(([one], [other]) => (one < other ? -1 : 1)))
  })
}
