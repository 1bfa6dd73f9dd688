import type { Version, VersionContent } from '@sluice/contract'
import { ruleName } from '@sluice/core/internal'
import type { RuleSet } from '@sluice/core/policy'
import { call } from '../../../api/client.ts'
import type { Query, QueryOptions } from '../../../api/query.ts'
import { useQuery } from '../../../api/query.ts'

/** The rule set that is enforced, and the versions around it. */
export interface EnforcedRules {
  /** Newest first, at most 100. */
  readonly versions: readonly Version[]
  /** 0 when no version is enforced. */
  readonly number: number
  readonly ruleSet: RuleSet
  /** The version in stage shadow or percent. */
  readonly candidate: Version | undefined
}

/** Loads the rule set that is enforced. */
export async function loadEnforced(signal?: AbortSignal): Promise<EnforcedRules> {
  const { items } = await call('listVersions', { parameters: { limit: 100 }, signal })
  const enforced = items.find(({ stage }) => stage === 'enforce')
  const candidate = items.find(({ stage }) => stage === 'shadow' || stage === 'percent')
  if (enforced === undefined) return { versions: items, number: 0, ruleSet: { rules: [] }, candidate }
  const content = await loadVersion(enforced.number, signal)
  return { versions: items, number: enforced.number, ruleSet: ruleSetOf(content), candidate }
}

/** Loads one version with its rule set. */
export function loadVersion(number: number, signal?: AbortSignal): Promise<VersionContent> {
  return call('getVersion', { parameters: { number }, signal })
}

/** The rule set of a version. The engine has checked it, which the type of the contract does not say. */
export function ruleSetOf({ ruleSet }: VersionContent): RuleSet {
  return ruleSet as unknown as RuleSet
}

/**
 * The resource of the rule with this name, as the rule writes it: an override names it so. `*`, which means every rule
 * of the dimension, when the rule set has no such rule any more.
 */
export function resourceOfRule({ rules, tiers = [], exemptions = [] }: RuleSet, name: string): string {
  const all = [
    ...rules.map((rule) => ({ rule, name: ruleName(rule) })),
    ...tiers.flatMap((tier) =>
      (tier.rules ?? []).map((rule) => ({ rule, name: ruleName(rule, { part: 'tier', name: tier.name }) })),
    ),
    ...exemptions.flatMap((exemption) =>
      (exemption.rules ?? []).map((rule) => ({
        rule,
        name: ruleName(rule, { part: 'exemption', name: exemption.name }),
      })),
    ),
  ]
  return all.find((each) => each.name === name)?.rule.resource ?? '*'
}

/** The rule set that is enforced, for a page. */
export function useEnforced(options: QueryOptions = {}): Query<EnforcedRules> {
  return useQuery('enforced', loadEnforced, options)
}
