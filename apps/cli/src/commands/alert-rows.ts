import type { Alert } from '@sluice/contract'
import { instantText, table } from '../output/table.ts'

/** Alerts, for people. */
export function alertTable(items: readonly Alert[]): string {
  const rows = items.map((alert) => [
    alert.id,
    alert.state,
    alert.rule,
    instantText(alert.firedAt),
    alert.acknowledgedBy ?? '-',
    instantText(alert.silencedUntil),
    alert.summary,
  ])
  return table(['id', 'state', 'rule', 'since', 'acknowledged', 'silenced until', 'summary'], rows)
}
