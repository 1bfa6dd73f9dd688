import type { Alert } from '@sluice/contract'
import { instantText, table } from '../output/table.ts'

/** Alerts, for people. */
export function alertTable(items: readonly Alert[]): string {
  const rows = items.map((alert) => [
    alert.id,
    alert.state,
    alert.rule,
    alert.scope === 'cluster' ? 'cluster' : alert.node,
    instantText(alert.firedAt),
    alert.acknowledgedBy ?? '-',
    instantText(alert.silencedUntil),
    alert.summary,
  ])
  return table(['id', 'state', 'rule', 'where', 'since', 'acknowledged', 'silenced until', 'summary'], rows)
}
