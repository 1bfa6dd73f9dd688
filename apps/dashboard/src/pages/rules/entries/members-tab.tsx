import { useSignal } from '@preact/signals'
import type { Membership, Stored } from '@sluice/contract'
import type { JSX } from 'preact'
import { call } from '../../../api/client.ts'
import { mayCall } from '../../../api/session.ts'
import { Badge } from '../../../ui/controls/badge.tsx'
import { Button } from '../../../ui/controls/button.tsx'
import { Select, TextInput } from '../../../ui/controls/field.tsx'
import { LoadedView } from '../../../ui/feedback/states.tsx'
import { Card } from '../../../ui/shell/page.tsx'
import type { Column } from '../../../ui/table/table.tsx'
import { Table } from '../../../ui/table/table.tsx'
import { instantText } from '../../../ui/theme/format.ts'
import { attempt, MoreButton, usePages } from '../../lists/paged-list.tsx'
import classes from './entries.module.css'
import { CallerSearch, callerFilter } from './entry-list.tsx'
import { CallerLink } from './overrides-tab.tsx'

const DIMENSIONS = [
  { value: 'user', label: 'User' },
  { value: 'apiKey', label: 'API key' },
  { value: 'tenant', label: 'Tenant' },
] as const

/** Who belongs to which tier. */
export function MembersTab(): JSX.Element {
  const filter = callerFilter()
  const list = usePages(JSON.stringify(filter), (page, signal) =>
    call('listMembers', { parameters: { ...filter, ...page }, signal }),
  )
  const reload = (): void => void list.query.reload()
  const remove = async ({ entry, revision }: Stored<Membership>): Promise<void> => {
    const parameters = { dimension: entry.dimension, entity: entry.entity }
    const text = 'The member is limited as everybody is.'
    if (await attempt(() => call('deleteMember', { parameters, ifMatch: `"${revision}"` }), text)) reload()
  }
  return (
    <div class={classes.below}>
      <Card isFlush title="Members of tiers" actions={<CallerSearch />}>
        {mayCall('putMember') ? <MemberForm onDone={reload} /> : null}
        <LoadedView state={list.query.state} onRetry={reload}>
          {(page) => (
            <>
              <Table
                caption="Members of tiers"
                columns={columnsFor(remove)}
                rows={page.items}
                rowKey={({ entry }) => `${entry.dimension} ${entry.entity}`}
                empty="No caller belongs to a tier."
              />
              <MoreButton page={page} onMore={list.more} />
            </>
          )}
        </LoadedView>
      </Card>
    </div>
  )
}

function columnsFor(onRemove: (row: Stored<Membership>) => Promise<void>): readonly Column<Stored<Membership>>[] {
  return [
    { id: 'caller', header: 'Caller', cell: ({ entry }) => <CallerLink caller={entry} /> },
    { id: 'tier', header: 'Tier', cell: ({ entry }) => <Badge tone="accent">{entry.tier}</Badge> },
    {
      id: 'until',
      header: 'Until',
      cell: ({ entry }) => (entry.expiresAt === undefined ? 'it is removed' : instantText(entry.expiresAt)),
    },
    { id: 'by', header: 'Set by', cell: ({ changedBy, changedAt }) => `${changedBy}, ${instantText(changedAt)}` },
    {
      id: 'actions',
      header: 'Actions',
      isHeaderHidden: true,
      align: 'end',
      cell: (row) =>
        mayCall('deleteMember') ? (
          <Button kind="quiet" onClick={() => void onRemove(row)}>
            Remove
          </Button>
        ) : null,
    },
  ]
}

function MemberForm({ onDone }: { onDone: () => void }): JSX.Element {
  const dimension = useSignal<(typeof DIMENSIONS)[number]['value']>('tenant')
  const entity = useSignal('')
  const tier = useSignal('')
  const add = async (): Promise<void> => {
    const body = { dimension: dimension.value, entity: entity.value.trim(), tier: tier.value.trim() }
    if (await attempt(() => call('putMember', { body }), `${body.entity} belongs to ${body.tier}.`)) onDone()
  }
  return (
    <form
      class={classes.inline}
      onSubmit={(event) => {
        event.preventDefault()
        void add()
      }}
    >
      <Select
        label="Kind of caller"
        isLabelHidden
        value={dimension.value}
        choices={DIMENSIONS}
        onChange={(value) => {
          dimension.value = value
        }}
      />
      <TextInput
        label="New member"
        isLabelHidden
        placeholder="acme"
        required
        value={entity.value}
        onInput={(text) => {
          entity.value = text
        }}
      />
      <TextInput
        label="Tier"
        isLabelHidden
        placeholder="premium"
        required
        value={tier.value}
        onInput={(text) => {
          tier.value = text
        }}
      />
      <Button type="submit">Add member</Button>
    </form>
  )
}
