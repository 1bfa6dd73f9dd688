import type { RateLimits, ResourceRule } from '@sluice/contract'

/** The titles of {@link ruleRows}. */
export const RULE_TITLES: readonly string[] = ['resource', 'dimension', 'limit', 'window', 'algorithm', 'name', 'notes']

/** The rules of a resource, in rows of a table. */
export function ruleRows({ resource, rules }: RateLimits): readonly (readonly string[])[] {
  return rules.map((rule) => [
    resource,
    rule.dimension,
    limitText(rule),
    windowText(rule.window),
    rule.algorithm ?? 'gcra',
    rule.name ?? '-',
    notesOf(rule),
  ])
}

function limitText(rule: ResourceRule): string {
  // Some algorithms call theirs a capacity, or have several.
  const { limit, capacity, windows } = rule as ResourceRule & {
    readonly capacity?: unknown
    readonly windows?: unknown
  }
  const single = limit ?? capacity
  if (single !== undefined) return String(single)
  return Array.isArray(windows) ? `${windows.length} windows` : '-'
}

function windowText(window: unknown): string {
  if (window === undefined) return '-'
  return typeof window === 'string' ? window : JSON.stringify(window)
}

function notesOf({ methods, shadow, percent, enabled }: ResourceRule): string {
  const notes = [
    methods?.join(','),
    shadow === true ? 'shadow' : undefined,
    percent === undefined ? undefined : `${percent} %`,
    enabled === false ? 'disabled' : undefined,
  ]
  return notes.filter((note) => note !== undefined).join(' ') || '-'
}
