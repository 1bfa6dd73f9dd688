import { useComputed, useSignal } from '@preact/signals'
import type { Calls, Usage } from '@sluice/contract'
import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import { call } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { currentRole, mayCall } from '../../api/session.ts'
import { Button } from '../../ui/controls/button.tsx'
import { Segments, TextInput } from '../../ui/controls/field.tsx'
import { Empty, LoadedView, ReadOnlyNotice } from '../../ui/feedback/states.tsx'
import { Link } from '../../ui/navigation/link.tsx'
import { location } from '../../ui/navigation/router.ts'
import { Card, Page } from '../../ui/shell/page.tsx'
import type { Column } from '../../ui/table/table.tsx'
import { Table } from '../../ui/table/table.tsx'
import { BlockDialog } from '../callers/block-dialog.tsx'
import type { Caller, CallerDimension } from '../callers/caller.ts'
import { askedKey, CALLER_DIMENSIONS, callerText, explainPath, forgetAskedKey, openUsage } from '../callers/caller.ts'
import callerClasses from '../callers/callers.module.css'
import { CounterMeter, usedShare } from '../callers/counter-meter.tsx'
import { OverrideDialog } from '../callers/override-dialog.tsx'
import { ResetDialog } from '../callers/reset-dialog.tsx'
import { CallerEntries } from './caller-entries.tsx'
import classes from './usage.module.css'

/** How often counters are read again while somebody looks at them. */
const REFRESH_MS = 2000

/** The counters of one caller, and what can be done about them. */
export function UsagePage(): JSX.Element {
  useEffect(() => forgetAskedKey, [])
  const caller = useComputed<Caller | undefined>(() => {
    const { query } = location.value
    for (const { value } of CALLER_DIMENSIONS) {
      const entity = query.get(value)
      if (value !== 'apiKey' && entity !== null && entity !== '') return { dimension: value, entity }
    }
    return askedKey.value === undefined ? undefined : { dimension: 'apiKey', entity: askedKey.value }
  })
  return (
    <Page title="Usage" description="All counters of one user, key, address or tenant, as they stand now.">
      <Card>
        <CallerForm caller={caller.value} />
      </Card>
      {caller.value === undefined ? (
        <Card>
          <Empty title="Whose usage?" icon="usage">
            Choose what kind of caller it is, and type its name as your checks name it.
          </Empty>
        </Card>
      ) : (
        <CallerUsage key={`${caller.value.dimension} ${caller.value.entity}`} caller={caller.value} />
      )}
    </Page>
  )
}

function CallerForm({ caller }: { caller: Caller | undefined }): JSX.Element {
  const dimension = useSignal<CallerDimension>('user')
  const entity = useSignal('')
  useEffect(() => {
    if (caller === undefined) return
    dimension.value = caller.dimension as CallerDimension
    entity.value = caller.entity
  }, [caller])
  return (
    <form
      class={classes.form}
      onSubmit={(event) => {
        event.preventDefault()
        if (entity.value.trim() !== '') openUsage({ dimension: dimension.value, entity: entity.value.trim() })
      }}
    >
      <Segments
        label="Kind of caller"
        value={dimension.value}
        choices={CALLER_DIMENSIONS}
        onChange={(value) => {
          dimension.value = value
        }}
      />
      <div class={classes.entity}>
        <TextInput
          label="Caller"
          isLabelHidden
          placeholder={dimension.value === 'ip' ? '192.0.2.7' : 'ada'}
          value={entity.value}
          onInput={(text) => {
            entity.value = text
          }}
        />
      </div>
      <Button kind="primary" type="submit">
        Show usage
      </Button>
    </form>
  )
}

/** What a row action is about. */
interface RowTarget {
  readonly caller: Caller
  readonly resource: string
}

function CallerUsage({ caller }: { caller: Caller }): JSX.Element {
  const key = `${caller.dimension} ${caller.entity}`
  const asked = { [caller.dimension]: caller.entity }
  const usage = useQuery(key, (signal) => call('usage', { parameters: asked, signal }), { periodMs: REFRESH_MS })
  const overriding = useSignal<RowTarget | undefined>(undefined)
  const resetting = useSignal<RowTarget | undefined>(undefined)
  const blocking = useSignal<Caller | undefined>(undefined)
  const changed = useSignal(0)
  const done = (): void => {
    changed.value += 1
    void usage.reload()
  }
  return (
    <>
      {mayCall('putOverride') ? null : <ReadOnlyNotice needed="editor" role={currentRole()} />}
      <Card
        title={`Counters of ${callerText(caller)}`}
        description="Read every 2 seconds. Each change is in the audit log."
        isFlush
        actions={
          mayCall('reset') ? (
            <span class={callerClasses.actions}>
              <Button
                onClick={() => {
                  resetting.value = { caller, resource: '' }
                }}
              >
                Refund or reset all
              </Button>
              <Button
                kind="danger"
                icon="block"
                onClick={() => {
                  blocking.value = caller
                }}
              >
                Block
              </Button>
            </span>
          ) : undefined
        }
      >
        <LoadedView state={usage.state} onRetry={() => void usage.reload()}>
          {(value) => (
            <Table
              caption={`Counters of ${callerText(caller)}`}
              columns={columnsFor({
                onOverride: (row) => {
                  overriding.value = {
                    caller: { dimension: row.dimension, entity: row.entity },
                    resource: row.resource,
                  }
                },
                onReset: (row) => {
                  resetting.value = { caller, resource: row.resource }
                },
                onBlock: ({ dimension, entity }) => {
                  blocking.value = { dimension, entity }
                },
              })}
              rows={value.usage}
              rowKey={({ rule, entity }) => `${rule} ${entity}`}
              empty="No rule counts this caller."
            />
          )}
        </LoadedView>
      </Card>
      <CallerEntries caller={caller} changes={changed.value} onChange={done} />
      <OverrideDialog
        caller={overriding.value?.caller}
        resource={overriding.value?.resource ?? '*'}
        onClose={() => {
          overriding.value = undefined
        }}
        onDone={done}
      />
      <ResetDialog
        target={resetting.value === undefined ? undefined : resetBody(asked, resetting.value.resource)}
        name={callerText(caller)}
        onClose={() => {
          resetting.value = undefined
        }}
        onDone={done}
      />
      <BlockDialog
        caller={blocking.value}
        onClose={() => {
          blocking.value = undefined
        }}
        onDone={done}
      />
    </>
  )
}

/** Without a resource, the counters of every rule are meant. */
function resetBody(who: Readonly<Record<string, string>>, resource: string): Calls['reset']['body'] {
  return resource === '' ? who : { ...who, resource }
}

interface RowActions {
  readonly onOverride: (row: Usage) => void
  readonly onReset: (row: Usage) => void
  readonly onBlock: (row: Usage) => void
}

function columnsFor(actions: RowActions): readonly Column<Usage>[] {
  return [
    { id: 'rule', header: 'Rule', isCode: true, cell: ({ rule }) => rule, sortValue: ({ rule }) => rule },
    { id: 'dimension', isSecondary: true, header: 'Counts', cell: ({ dimension, entity }) => `${dimension} ${entity}` },
    {
      id: 'counters',
      header: 'Used',
      cell: ({ counters }) => counters.map((counter, index) => <CounterMeter key={index} counter={counter} />),
      sortValue: ({ counters }) => Math.max(...counters.map(usedShare)),
    },
    {
      id: 'actions',
      header: 'Actions',
      isHeaderHidden: true,
      align: 'end',
      cell: (row) => <RowButtons row={row} {...actions} />,
    },
  ]
}

function RowButtons({ row, onOverride, onReset, onBlock }: RowActions & { readonly row: Usage }): JSX.Element {
  const request = { resource: row.resource, [row.dimension]: row.entity }
  return (
    <span class={callerClasses.actions}>
      {row.dimension === 'apiKey' ? null : (
        <Link to={explainPath(request)} class={classes.explain}>
          Explain
        </Link>
      )}
      {mayCall('putOverride') ? (
        <Button kind="quiet" onClick={() => onOverride(row)}>
          Override
        </Button>
      ) : null}
      {mayCall('reset') ? (
        <Button kind="quiet" onClick={() => onReset(row)}>
          Refund or reset
        </Button>
      ) : null}
      {mayCall('putBlock') ? (
        <Button kind="quiet" onClick={() => onBlock(row)}>
          Block
        </Button>
      ) : null}
    </span>
  )
}
