import { useSignal } from '@preact/signals'
import type { Override, Stored } from '@sluice/contract'
import type { JSX } from 'preact'
import { call } from '../../../api/client.ts'
import { mayCall } from '../../../api/session.ts'
import { Button } from '../../../ui/controls/button.tsx'
import { TextInput } from '../../../ui/controls/field.tsx'
import { LoadedView } from '../../../ui/feedback/states.tsx'
import { Link } from '../../../ui/navigation/link.tsx'
import { Dialog } from '../../../ui/overlay/dialog.tsx'
import { Card } from '../../../ui/shell/page.tsx'
import type { Column } from '../../../ui/table/table.tsx'
import { Table } from '../../../ui/table/table.tsx'
import { instantText } from '../../../ui/theme/format.ts'
import type { Caller } from '../../callers/caller.ts'
import { usagePath } from '../../callers/caller.ts'
import { OverrideDialog } from '../../callers/override-dialog.tsx'
import { termsText } from '../../callers/terms-text.ts'
import { attempt, MoreButton, usePages } from '../../lists/paged-list.tsx'
import classes from './entries.module.css'
import { CallerSearch, callerFilter } from './entry-list.tsx'

/** Other numbers for single callers. */
export function OverridesTab(): JSX.Element {
  const filter = callerFilter()
  const list = usePages(JSON.stringify(filter), (page, signal) =>
    call('listOverrides', { parameters: { ...filter, ...page }, signal }),
  )
  const reload = (): void => void list.query.reload()
  const editing = useSignal<{ readonly caller: Caller; readonly resource: string } | undefined>(undefined)
  const isAsking = useSignal(false)
  const remove = async ({ entry, revision }: Stored<Override>): Promise<void> => {
    const { dimension, entity, resource } = entry
    const parameters = { dimension, entity, resource }
    const done = await attempt(
      () => call('deleteOverride', { parameters, ifMatch: `"${revision}"` }),
      'The override is removed.',
    )
    if (done) reload()
  }
  return (
    <Card
      isFlush
      title="Overrides"
      description="They hold in the place of a rule's own numbers, for one caller."
      actions={
        <span class={classes.head}>
          <CallerSearch />
          {mayCall('putOverride') ? (
            <Button
              icon="plus"
              onClick={() => {
                isAsking.value = true
              }}
            >
              Add override
            </Button>
          ) : null}
        </span>
      }
    >
      <LoadedView state={list.query.state} onRetry={reload}>
        {(page) => (
          <>
            <Table
              caption="Overrides"
              columns={columnsFor(remove)}
              rows={page.items}
              rowKey={({ entry }) => `${entry.dimension} ${entry.entity} ${entry.resource}`}
              empty="No override: the rules hold for everybody as they are."
            />
            <MoreButton page={page} onMore={list.more} />
          </>
        )}
      </LoadedView>
      <WhoDialog
        isOpen={isAsking.value}
        onClose={() => {
          isAsking.value = false
        }}
        onChosen={(chosen) => {
          isAsking.value = false
          editing.value = chosen
        }}
      />
      <OverrideDialog
        caller={editing.value?.caller}
        resource={editing.value?.resource ?? '*'}
        onClose={() => {
          editing.value = undefined
        }}
        onDone={reload}
      />
    </Card>
  )
}

function columnsFor(onRemove: (row: Stored<Override>) => Promise<void>): readonly Column<Stored<Override>>[] {
  return [
    { id: 'caller', header: 'Caller', cell: ({ entry }) => <CallerLink caller={entry} /> },
    { id: 'resource', header: 'For rules of', isCode: true, cell: ({ entry }) => entry.resource },
    { id: 'terms', header: 'Holds instead', cell: ({ entry }) => termsText(entry.terms) },
    {
      id: 'expires',
      header: 'Until',
      cell: ({ entry }) => (entry.expiresAt === undefined ? 'it is removed' : instantText(entry.expiresAt)),
    },
    {
      id: 'by',
      isSecondary: true,
      header: 'Set by',
      cell: ({ changedBy, changedAt }) => `${changedBy}, ${instantText(changedAt)}`,
    },
    {
      id: 'actions',
      header: 'Actions',
      isHeaderHidden: true,
      align: 'end',
      cell: (row) =>
        mayCall('deleteOverride') ? (
          <Button kind="quiet" onClick={() => void onRemove(row)}>
            Remove
          </Button>
        ) : null,
    },
  ]
}

/** A caller, as a link to its counters where it has a page. */
export function CallerLink({ caller }: { caller: Caller }): JSX.Element {
  const path = usagePath(caller)
  const text = `${caller.dimension} ${caller.entity}`
  return path === undefined ? <span>{text}</span> : <Link to={path}>{text}</Link>
}

interface WhoDialogProps {
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly onChosen: (chosen: { readonly caller: Caller; readonly resource: string }) => void
}

/** Asks for whom and for which rules. */
function WhoDialog({ isOpen, onClose, onChosen }: WhoDialogProps): JSX.Element {
  const dimension = useSignal('user')
  const entity = useSignal('')
  const resource = useSignal('*')
  const field = (label: string, signal: typeof entity, hint: string): JSX.Element => (
    <TextInput
      label={label}
      hint={hint}
      value={signal.value}
      onInput={(text) => {
        signal.value = text
      }}
    />
  )
  return (
    <Dialog
      title="Override: for whom?"
      isOpen={isOpen}
      onClose={onClose}
      actions={
        <Button
          kind="primary"
          disabled={entity.value.trim() === ''}
          onClick={() =>
            onChosen({
              caller: { dimension: dimension.value.trim(), entity: entity.value.trim() },
              resource: resource.value.trim(),
            })
          }
        >
          Continue
        </Button>
      }
    >
      <div class={classes.form}>
        {field('Dimension', dimension, 'user, apiKey, ip, tenant, service, or a descriptor.')}
        {field('Caller', entity, 'As your checks name it.')}
        {field('Resource', resource, 'As the rules write it; * for every rule of the dimension.')}
      </div>
    </Dialog>
  )
}
