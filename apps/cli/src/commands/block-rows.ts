import type { Block, Stored } from '@sluice/contract'
import { instantText, table } from '../output/table.ts'

/** Blocks, for people. */
export function blockTable(items: readonly Stored<Block>[]): string {
  const rows = items.map(({ entry, changedBy }) => [
    entry.dimension,
    entry.entity,
    instantText(entry.until),
    String(entry.strikes),
    entry.rule ?? '-',
    changedBy,
    entry.reason ?? '-',
  ])
  return table(['dimension', 'entity', 'until', 'strikes', 'rule', 'by', 'reason'], rows)
}
