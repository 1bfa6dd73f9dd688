import type { Tier } from '@sluice/contract'
import { table } from '../output/table.ts'

/** Tiers, for people. */
export function tierTable(items: readonly Tier[]): string {
  const rows = items.map(({ name, multiplier, burst, entitled, rules }) => [
    name,
    `x ${multiplier ?? 1}`,
    String(burst ?? 0),
    entitled === true ? 'yes' : 'no',
    String(rules?.length ?? 0),
  ])
  return table(['name', 'limits', 'burst', 'entitled', 'rules'], rows)
}
