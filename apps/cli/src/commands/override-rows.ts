import type { Override, OverrideTerms, Stored } from '@sluice/contract'
import { instantText, table } from '../output/table.ts'

/** Overrides, for people. */
export function overrideTable(items: readonly Stored<Override>[]): string {
  const rows = items.map(({ entry, revision, changedBy }) => [
    entry.dimension,
    entry.entity,
    entry.resource,
    termsText(entry.terms),
    instantText(entry.expiresAt),
    String(revision),
    changedBy,
  ])
  return table(['dimension', 'entity', 'resource', 'terms', 'expires', 'revision', 'by'], rows)
}

/** The numbers of an override, in a few words. */
export function termsText({ limit, window, burst, windows, multiplier }: OverrideTerms): string {
  const parts = [
    limit === undefined ? undefined : `limit ${limit}`,
    window === undefined ? undefined : `per ${typeof window === 'number' ? `${window} ms` : window}`,
    burst === undefined ? undefined : `burst ${burst}`,
    windows === undefined ? undefined : `${windows.length} windows`,
    multiplier === undefined ? undefined : `x ${multiplier}`,
  ]
  return parts.filter((part) => part !== undefined).join(' ')
}
