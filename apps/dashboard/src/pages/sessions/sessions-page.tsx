import type { Session } from '@sluice/contract'
import type { JSX } from 'preact'
import { call } from '../../api/client.ts'
import { currentRole } from '../../api/session.ts'
import { nowMs } from '../../clock-and-timers.ts'
import { Badge } from '../../ui/controls/badge.tsx'
import { Button } from '../../ui/controls/button.tsx'
import { Segments } from '../../ui/controls/field.tsx'
import { LoadedView } from '../../ui/feedback/states.tsx'
import { queryParameter, setQuery } from '../../ui/navigation/router.ts'
import { Card, Page } from '../../ui/shell/page.tsx'
import type { Column } from '../../ui/table/table.tsx'
import { Table } from '../../ui/table/table.tsx'
import { agoText } from '../../ui/theme/format.ts'
import { attempt, MoreButton, usePages } from '../lists/paged-list.tsx'
import { browserName } from './browser-name.ts'

const REFRESH_MS = 10_000

/** Browsers that are signed in, and how to end their sessions. */
export function SessionsPage(): JSX.Element {
  const isAdmin = currentRole() === 'admin'
  const of = isAdmin && queryParameter('of') !== 'own' ? 'all' : 'own'
  const list = usePages(of, (page, signal) => call('listSessions', { parameters: { ...page, of }, signal }), {
    periodMs: REFRESH_MS,
  })
  const reload = (): void => void list.query.reload()
  const end = async ({ id, name }: Session): Promise<void> => {
    if (await attempt(() => call('endSession', { parameters: { id } }), `The session of ${name} has ended.`)) reload()
  }
  return (
    <Page
      title="Sessions"
      description="Browsers that are signed in. A session ends when it is idle, when its key is revoked, or here."
      actions={
        isAdmin ? (
          <Segments
            label="Whose sessions"
            value={of}
            choices={[
              { value: 'all', label: 'All keys' },
              { value: 'own', label: 'My key' },
            ]}
            onChange={(value) => setQuery({ of: value === 'all' ? undefined : value })}
          />
        ) : undefined
      }
    >
      <Card isFlush>
        <LoadedView state={list.query.state} onRetry={reload}>
          {(page) => (
            <>
              <Table
                caption="Sessions that go on, newest first"
                columns={columnsFor(end)}
                rows={page.items}
                rowKey={({ id }) => id}
              />
              <MoreButton page={page} onMore={list.more} />
            </>
          )}
        </LoadedView>
      </Card>
    </Page>
  )
}

function columnsFor(onEnd: (row: Session) => Promise<void>): readonly Column<Session>[] {
  return [
    {
      id: 'name',
      header: 'Key',
      cell: ({ name, isCurrent }) => (
        <>
          <b>{name}</b> {isCurrent ? <Badge tone="accent">this browser</Badge> : null}
        </>
      ),
    },
    { id: 'keyId', isSecondary: true, header: 'Visible part', isCode: true, cell: ({ keyId }) => keyId },
    { id: 'role', header: 'Role', cell: ({ role }) => role },
    { id: 'address', isSecondary: true, header: 'From', isCode: true, cell: ({ address }) => address ?? '' },
    {
      id: 'browser',
      header: 'Browser',
      cell: ({ browser }) => <span title={browser}>{browserName(browser ?? '')}</span>,
    },
    { id: 'seen', header: 'Last used', cell: ({ lastSeenAt }) => agoText(lastSeenAt, nowMs()) },
    {
      id: 'ends',
      header: 'Ends',
      wraps: true,
      cell: ({ idleExpiresAt, expiresAt }) =>
        `${agoText(idleExpiresAt, nowMs())} when idle, ${agoText(expiresAt, nowMs())} at the latest`,
    },
    {
      id: 'actions',
      header: 'Actions',
      isHeaderHidden: true,
      align: 'end',
      cell: (row) =>
        row.isCurrent ? null : (
          <Button kind="quiet" onClick={() => void onEnd(row)}>
            End
          </Button>
        ),
    },
  ]
}
