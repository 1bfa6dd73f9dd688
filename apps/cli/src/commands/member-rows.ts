import type { Membership, Stored } from '@sluice/contract'
import { instantText, table } from '../output/table.ts'

/** Members of tiers, for people. */
export function memberTable(items: readonly Stored<Membership>[]): string {
  const rows = items.map(({ entry, revision, changedBy }) => [
    entry.dimension,
    entry.entity,
    entry.tier,
    instantText(entry.expiresAt),
    String(revision),
    changedBy,
  ])
  return table(['dimension', 'entity', 'tier', 'expires', 'revision', 'by'], rows)
}
