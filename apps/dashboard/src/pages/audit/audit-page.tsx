import { useSignal } from '@preact/signals'
import type { AuditRecord } from '@sluice/contract'
import type { JSX } from 'preact'
import { call } from '../../api/client.ts'
import { Badge, FilterChips } from '../../ui/controls/badge.tsx'
import { Button } from '../../ui/controls/button.tsx'
import { TextInput } from '../../ui/controls/field.tsx'
import { LoadedView } from '../../ui/feedback/states.tsx'
import { Link } from '../../ui/navigation/link.tsx'
import { pathWith, queryParameter, setQuery } from '../../ui/navigation/router.ts'
import { Dialog } from '../../ui/overlay/dialog.tsx'
import { Card, Page } from '../../ui/shell/page.tsx'
import type { Column } from '../../ui/table/table.tsx'
import { Table } from '../../ui/table/table.tsx'
import { instantText } from '../../ui/theme/format.ts'
import { MoreButton, usePages } from '../lists/paged-list.tsx'
import classes from './audit.module.css'

/** Every change: who made it, with which key, why, what was there before and after. */
export function AuditPage(): JSX.Element {
  const filter = {
    ...(queryParameter('by') === undefined ? {} : { by: queryParameter('by')! }),
    ...(queryParameter('action') === undefined ? {} : { action: queryParameter('action')! }),
  }
  const list = usePages(JSON.stringify(filter), (page, signal) =>
    call('listAudit', { parameters: { ...filter, ...page }, signal }),
  )
  const reload = (): void => void list.query.reload()
  const shown = useSignal<AuditRecord | undefined>(undefined)
  return (
    <Page
      title="Audit"
      description="Every change, newest first. Records cannot be changed or removed here."
      actions={<AuditFilter />}
    >
      <FilterChips
        filters={[
          { parameter: 'by', label: 'by', value: queryParameter('by') },
          { parameter: 'action', label: 'action', value: queryParameter('action') },
        ]}
      />
      <Card isFlush>
        <LoadedView state={list.query.state} onRetry={reload}>
          {(page) => (
            <>
              <Table
                caption="Audit log, newest first"
                columns={columnsFor((record) => {
                  shown.value = record
                })}
                rows={page.items}
                rowKey={({ number }) => number}
                empty="No change matches."
              />
              <MoreButton page={page} onMore={list.more} />
            </>
          )}
        </LoadedView>
      </Card>
      <Dialog
        title={shown.value === undefined ? '' : `${shown.value.action} ${shown.value.target}`}
        isOpen={shown.value !== undefined}
        isWide
        onClose={() => {
          shown.value = undefined
        }}
      >
        {shown.value === undefined ? null : <Details record={shown.value} />}
      </Dialog>
    </Page>
  )
}

function AuditFilter(): JSX.Element {
  const by = useSignal(queryParameter('by') ?? '')
  return (
    <form
      class={classes.filter}
      onSubmit={(event) => {
        event.preventDefault()
        setQuery({ by: by.value.trim() })
      }}
    >
      <TextInput
        label="Name of a key"
        isLabelHidden
        type="search"
        placeholder="Name of a key"
        value={by.value}
        onInput={(text) => {
          by.value = text
        }}
      />
      <Button type="submit">Filter</Button>
    </form>
  )
}

function columnsFor(onShow: (record: AuditRecord) => void): readonly Column<AuditRecord>[] {
  return [
    { id: 'at', header: 'When', cell: ({ at }) => instantText(at) },
    { id: 'by', header: 'By', cell: ({ by }) => <Link to={pathWith({ by })}>{by}</Link> },
    {
      id: 'action',
      header: 'Action',
      cell: ({ action }) => (
        <Link to={pathWith({ action })}>
          <Badge tone="accent">{action}</Badge>
        </Link>
      ),
    },
    { id: 'target', header: 'What', isCode: true, wraps: true, cell: ({ target }) => target },
    { id: 'note', header: 'Why', wraps: true, cell: ({ note }) => note ?? '' },
    { id: 'key', isSecondary: true, header: 'Key', isCode: true, cell: ({ keyId }) => keyId ?? '' },
    {
      id: 'actions',
      header: 'Actions',
      isHeaderHidden: true,
      align: 'end',
      cell: (record) =>
        record.before === undefined && record.after === undefined && record.details === undefined ? null : (
          <Button kind="quiet" onClick={() => onShow(record)}>
            Details
          </Button>
        ),
    },
  ]
}

function Details({ record }: { record: AuditRecord }): JSX.Element {
  const parts = [
    ['Before', record.before],
    ['After', record.after],
    ['Details', record.details],
  ] as const
  return (
    <div class={classes.details}>
      {parts.map(([title, value]) =>
        value === undefined ? null : (
          <section key={title}>
            <h3>{title}</h3>
            <pre>{JSON.stringify(value, null, 2)}</pre>
          </section>
        ),
      )}
    </div>
  )
}
