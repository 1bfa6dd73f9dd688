import { useSignal } from '@preact/signals'
import type { Alert } from '@sluice/contract'
import type { JSX } from 'preact'
import { call } from '../../api/client.ts'
import { currentRole, mayCall } from '../../api/session.ts'
import { nowMs } from '../../clock-and-timers.ts'
import { Badge } from '../../ui/controls/badge.tsx'
import { Button } from '../../ui/controls/button.tsx'
import { Empty, LoadedView, ReadOnlyNotice } from '../../ui/feedback/states.tsx'
import { Card, Page } from '../../ui/shell/page.tsx'
import type { Column } from '../../ui/table/table.tsx'
import { Table } from '../../ui/table/table.tsx'
import { agoText, durationText, instantText, percentText } from '../../ui/theme/format.ts'
import { MoreButton, usePages } from '../lists/paged-list.tsx'
import type { AlertAction } from './alert-dialog.tsx'
import { AlertDialog } from './alert-dialog.tsx'
import classes from './alerts.module.css'
import { DeadLetters } from './dead-letters.tsx'

const REFRESH_MS = 3000

/** What somebody should look at: alerts that hold, those that held, and messages that did not arrive. */
export function AlertsPage(): JSX.Element {
  const list = usePages('alerts', (page, signal) => call('listAlerts', { parameters: page, signal }), {
    periodMs: REFRESH_MS,
  })
  const reload = (): void => void list.query.reload()
  const action = useSignal<AlertAction | undefined>(undefined)
  return (
    <Page
      title="Alerts"
      description="Evaluated by the service over all nodes, and sent to webhooks where some are set."
    >
      {mayCall('acknowledgeAlert') ? null : <ReadOnlyNotice needed="admin" role={currentRole()} />}
      <LoadedView state={list.query.state} onRetry={reload}>
        {(page) => {
          const firing = page.items.filter(({ state }) => state === 'firing')
          const resolved = page.items.filter(({ state }) => state === 'resolved')
          return (
            <>
              {firing.length === 0 ? (
                <Card>
                  <Empty title="Nothing is firing" icon="check">
                    Store latency, denial rate, store errors and the age of the configuration are within their bounds.
                  </Empty>
                </Card>
              ) : (
                <ul class={classes.firing}>
                  {firing.map((alert) => (
                    <FiringAlert
                      key={alert.id}
                      alert={alert}
                      onAction={(kind) => {
                        action.value = { kind, alert }
                      }}
                    />
                  ))}
                </ul>
              )}
              <Card title="Resolved" isFlush>
                <Table
                  caption="Alerts that are resolved, newest first"
                  columns={RESOLVED_COLUMNS}
                  rows={resolved}
                  rowKey={({ id }) => id}
                  empty="No alert was resolved since the service started."
                />
                <MoreButton page={page} onMore={list.more} />
              </Card>
            </>
          )
        }}
      </LoadedView>
      <DeadLetters />
      <AlertDialog
        action={action.value}
        onClose={() => {
          action.value = undefined
        }}
        onDone={reload}
      />
    </Page>
  )
}

function FiringAlert({
  alert,
  onAction,
}: {
  alert: Alert
  onAction: (kind: AlertAction['kind']) => void
}): JSX.Element {
  const { rule, summary, scope, node, firedAt, acknowledgedAt, silencedUntil } = alert
  const isSilenced = silencedUntil !== undefined && silencedUntil > nowMs()
  return (
    <li class={classes.alert} data-acknowledged={acknowledgedAt !== undefined}>
      <div class={classes.alertHead}>
        <Badge tone="danger">firing</Badge>
        <strong>{rule}</strong>
        <span class={classes.muted}>{scope === 'cluster' ? 'all nodes' : node}</span>
        <span class={classes.muted}>fired {agoText(firedAt, nowMs())}</span>
        <span class={classes.value}>
          {valueText(alert.value, alert.unit)} <small>bound {valueText(alert.threshold, alert.unit)}</small>
        </span>
      </div>
      <p>{summary}</p>
      {acknowledgedAt === undefined ? null : (
        <p class={classes.muted}>
          Acknowledged by {alert.acknowledgedBy}, {instantText(acknowledgedAt)}
          {alert.acknowledgedNote === undefined ? '.' : `: ${alert.acknowledgedNote}`}
        </p>
      )}
      {isSilenced ? (
        <p class={classes.muted}>
          Silenced by {alert.silencedBy} until {instantText(silencedUntil)}
          {alert.silencedNote === undefined ? '.' : `: ${alert.silencedNote}`}
        </p>
      ) : null}
      {mayCall('acknowledgeAlert') ? (
        <div class={classes.actions}>
          {acknowledgedAt === undefined ? (
            <Button kind="primary" onClick={() => onAction('acknowledge')}>
              Acknowledge
            </Button>
          ) : null}
          <Button onClick={() => onAction('silence')}>Silence</Button>
        </div>
      ) : null}
    </li>
  )
}

const RESOLVED_COLUMNS: readonly Column<Alert>[] = [
  { id: 'rule', header: 'Alert', cell: ({ rule }) => rule, sortValue: ({ rule }) => rule },
  { id: 'scope', header: 'About', cell: ({ scope, node }) => (scope === 'cluster' ? 'all nodes' : node) },
  { id: 'summary', header: 'Summary', wraps: true, cell: ({ summary }) => summary },
  {
    id: 'fired',
    header: 'Fired',
    cell: ({ firedAt }) => instantText(firedAt),
    sortValue: ({ firedAt }) => firedAt,
  },
  {
    id: 'lasted',
    header: 'Lasted',
    align: 'end',
    cell: ({ firedAt, resolvedAt }) => durationText((resolvedAt ?? firedAt) - firedAt),
  },
  { id: 'by', header: 'Acknowledged by', cell: ({ acknowledgedBy }) => acknowledgedBy ?? '' },
]

/** A measured value in its unit. */
export function valueText(value: number, unit: string): string {
  if (unit === 'ratio') return percentText(value)
  if (unit === 'ms') return durationText(value)
  return unit === 's' ? durationText(value * 1000) : `${value} ${unit}`
}
