import { useSignal } from '@preact/signals'
import type { Block, Stored } from '@sluice/contract'
import type { JSX } from 'preact'
import { call } from '../../../api/client.ts'
import { mayCall } from '../../../api/session.ts'
import { nowMs } from '../../../clock-and-timers.ts'
import { Badge } from '../../../ui/controls/badge.tsx'
import { Button } from '../../../ui/controls/button.tsx'
import { LoadedView } from '../../../ui/feedback/states.tsx'
import { Card } from '../../../ui/shell/page.tsx'
import type { Column } from '../../../ui/table/table.tsx'
import { Table } from '../../../ui/table/table.tsx'
import { agoText, instantText } from '../../../ui/theme/format.ts'
import { BlockDialog } from '../../callers/block-dialog.tsx'
import { callerText } from '../../callers/caller.ts'
import { attempt, MoreButton, usePages } from '../../lists/paged-list.tsx'
import classes from './entries.module.css'
import { CallerSearch, callerFilter } from './entry-list.tsx'
import { CallerLink } from './overrides-tab.tsx'

/** Callers that are denied everywhere for a time. */
export function BlocksTab(): JSX.Element {
  const filter = callerFilter()
  const list = usePages(JSON.stringify(filter), (page, signal) =>
    call('listBlocks', { parameters: { ...filter, ...page }, signal }),
  )
  const reload = (): void => void list.query.reload()
  const { dimension, entity } = filter
  const isBlocking = useSignal(false)
  const lift = async ({ entry }: Stored<Block>): Promise<void> => {
    const parameters = { dimension: entry.dimension, entity: entry.entity }
    const text = `${callerText(entry)} is let in again.`
    if (await attempt(() => call('deleteBlock', { parameters }), text)) reload()
  }
  const canBlock = mayCall('putBlock') && dimension !== undefined && entity !== undefined
  return (
    <Card
      isFlush
      title="Blocks"
      description="Set by somebody, or by the penalty of a rule. They end by themselves."
      actions={
        <span class={classes.head}>
          <CallerSearch />
          {canBlock ? (
            <Button
              kind="danger"
              icon="block"
              onClick={() => {
                isBlocking.value = true
              }}
            >
              Block this caller
            </Button>
          ) : null}
        </span>
      }
    >
      <LoadedView state={list.query.state} onRetry={reload}>
        {(page) => (
          <>
            <Table
              caption="Blocks"
              columns={columnsFor(lift)}
              rows={page.items}
              rowKey={({ entry }) => `${entry.dimension} ${entry.entity}`}
              empty={
                canBlock
                  ? 'This caller is not blocked.'
                  : 'No caller is blocked. Find a caller above, or open its usage, to block it.'
              }
            />
            <MoreButton page={page} onMore={list.more} />
          </>
        )}
      </LoadedView>
      <BlockDialog
        caller={isBlocking.value && canBlock ? { dimension, entity } : undefined}
        onClose={() => {
          isBlocking.value = false
        }}
        onDone={reload}
      />
    </Card>
  )
}

function columnsFor(onLift: (row: Stored<Block>) => Promise<void>): readonly Column<Stored<Block>>[] {
  return [
    { id: 'caller', header: 'Caller', cell: ({ entry }) => <CallerLink caller={entry} /> },
    {
      id: 'until',
      header: 'Until',
      cell: ({ entry }) => (
        <>
          {instantText(entry.until)} <Badge tone="denied">{agoText(entry.until, nowMs())}</Badge>
        </>
      ),
      sortValue: ({ entry }) => entry.until,
    },
    {
      id: 'why',
      header: 'Why',
      wraps: true,
      cell: ({ entry, changedBy }) =>
        entry.rule === undefined ? `${entry.reason ?? 'no reason given'}, by ${changedBy}` : `penalty of ${entry.rule}`,
    },
    { id: 'strikes', header: 'Strikes', align: 'end', cell: ({ entry }) => entry.strikes },
    {
      id: 'actions',
      header: 'Actions',
      isHeaderHidden: true,
      align: 'end',
      cell: (row) =>
        mayCall('deleteBlock') ? (
          <Button kind="quiet" onClick={() => void onLift(row)}>
            Lift
          </Button>
        ) : null,
    },
  ]
}
