import type { Exemption } from '@sluice/contract'
import { table } from '../output/table.ts'
import { matchText } from './match-text.ts'

/** Exemptions, for people. */
export function exemptionTable(items: readonly Exemption[]): string {
  const rows = items.map(({ name, match, rules }) => [name, String(rules?.length ?? 0), matchText(match)])
  return table(['name', 'rules', 'matches'], rows)
}
