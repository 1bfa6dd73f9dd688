import type { DenyEntry } from '@sluice/contract'
import { instantText, table } from '../output/table.ts'
import { matchText } from './match-text.ts'

/** Entries of the deny list, for people. */
export function denyTable(items: readonly DenyEntry[]): string {
  const rows = items.map(({ name, match, expiresAt }) => [name, instantText(expiresAt), matchText(match)])
  return table(['name', 'expires', 'matches'], rows)
}
