import type { RuleSet } from '@sluice/contract'

type Match = NonNullable<RuleSet['exemptions']>[number]['match']

/** Which requests are meant, in one line. */
export function matchText(match: Match): string {
  return Object.entries(match)
    .map(([name, value]) => `${name} ${Array.isArray(value) ? value.join(',') : value}`)
    .join(' ')
}
