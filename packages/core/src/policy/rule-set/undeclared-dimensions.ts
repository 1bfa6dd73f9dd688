import { nearestName } from '../../options/option-advice.ts'
import type { Dimension, PolicyRule, RuleSet } from './rule-set.ts'
import { KNOWN_DIMENSIONS } from './rule-set.ts'

/** A dimension of a rule set that is neither built in nor declared in its `dimensions`: probably a typo. */
export interface UndeclaredDimension {
  readonly dimension: string
  /** The known dimension that was probably meant; undefined if none is similar. */
  readonly nearest: string | undefined
  /** Where it is used, as JSON pointers such as `/rules/3/dimension`. */
  readonly paths: readonly string[]
}

/**
 * Dimensions that no request may have: rules that count by them, and matches that use them, match nothing. Each once,
 * in the order of first use. Disabled rules are ignored. The rule set must have been checked.
 */
export function undeclaredDimensions(ruleSet: RuleSet): readonly UndeclaredDimension[] {
  const known = new Set<string>([...KNOWN_DIMENSIONS, ...(ruleSet.dimensions ?? [])])
  const uses = new Map<string, string[]>()
  for (const [dimension, path] of usesIn(ruleSet)) {
    for (const name of dimension.split('+')) {
      if (known.has(name)) continue
      const paths = uses.get(name)
      if (paths === undefined) uses.set(name, [path])
      else paths.push(path)
    }
  }
  return Array.from(uses, ([dimension, paths]) => ({ dimension, nearest: nearestName(dimension, known), paths }))
}

type Use = readonly [dimension: Dimension, path: string]

function usesIn({ rules, tiers = [], exemptions = [], denyList = [] }: RuleSet): readonly Use[] {
  return [
    ...inRules(rules, '/rules'),
    ...tiers.flatMap((tier, index) => inRules(tier.rules, `/tiers/${index}/rules`)),
    ...exemptions.flatMap(({ match, rules: own }, index) => [
      ...inMatch(match, `/exemptions/${index}`),
      ...inRules(own, `/exemptions/${index}/rules`),
    ]),
    ...denyList.flatMap(({ match }, index) => inMatch(match, `/denyList/${index}`)),
  ]
}

function inRules(rules: readonly PolicyRule[] | undefined, path: string): readonly Use[] {
  return (rules ?? []).flatMap(({ dimension, enabled }, index): readonly Use[] =>
    enabled === false ? [] : [[dimension, `${path}/${index}/dimension`]],
  )
}

function inMatch({ dimension }: { readonly dimension?: Dimension }, path: string): readonly Use[] {
  return dimension === undefined ? [] : [[dimension, `${path}/match/dimension`]]
}
