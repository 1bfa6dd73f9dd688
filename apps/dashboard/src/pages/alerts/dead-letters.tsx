import type { DeadLetter } from '@sluice/contract'
import type { JSX } from 'preact'
import { call } from '../../api/client.ts'
import { mayCall } from '../../api/session.ts'
import { Button } from '../../ui/controls/button.tsx'
import { LoadedView } from '../../ui/feedback/states.tsx'
import { Card } from '../../ui/shell/page.tsx'
import type { Column } from '../../ui/table/table.tsx'
import { Table } from '../../ui/table/table.tsx'
import { instantText } from '../../ui/theme/format.ts'
import { attempt, MoreButton, usePages } from '../lists/paged-list.tsx'

const REFRESH_MS = 5000

/** Messages about alerts and blocks whose every attempt failed. */
export function DeadLetters(): JSX.Element {
  const list = usePages('dead letters', (page, signal) => call('listDeadLetters', { parameters: page, signal }), {
    periodMs: REFRESH_MS,
  })
  const reload = (): void => void list.query.reload()
  const retry = async ({ id }: DeadLetter): Promise<void> => {
    const text = 'It is sent again. If it fails again, it is back here.'
    if (await attempt(() => call('retryDeadLetter', { parameters: { id } }), text)) reload()
  }
  return (
    <Card title="Dead letters" description="Messages that could not be delivered." isFlush>
      <LoadedView state={list.query.state} onRetry={reload}>
        {(page) => (
          <>
            <Table
              caption="Messages that could not be delivered, newest first"
              columns={columnsFor(retry)}
              rows={page.items}
              rowKey={({ id }) => id}
              empty="Every message arrived."
            />
            <MoreButton page={page} onMore={list.more} />
          </>
        )}
      </LoadedView>
    </Card>
  )
}

function columnsFor(onRetry: (row: DeadLetter) => Promise<void>): readonly Column<DeadLetter>[] {
  return [
    {
      id: 'about',
      header: 'About',
      isCode: true,
      cell: ({ alertId, cidr }) => (cidr === undefined ? `alert ${alertId}` : `block of ${cidr}`),
    },
    { id: 'destination', header: 'Destination', isCode: true, cell: ({ destination }) => destination },
    { id: 'attempts', header: 'Attempts', align: 'end', cell: ({ attempts }) => attempts },
    { id: 'last', header: 'Last attempt', cell: ({ lastAttemptAt }) => instantText(lastAttemptAt) },
    { id: 'error', header: 'Why it failed', wraps: true, cell: ({ error }) => error },
    {
      id: 'actions',
      header: 'Actions',
      isHeaderHidden: true,
      align: 'end',
      cell: (row) =>
        mayCall('retryDeadLetter') ? (
          <Button kind="quiet" onClick={() => void onRetry(row)}>
            Retry
          </Button>
        ) : null,
    },
  ]
}
