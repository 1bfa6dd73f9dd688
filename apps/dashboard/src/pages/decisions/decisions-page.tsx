import { useComputed, useSignal } from '@preact/signals'
import type { Calls, DecisionRecord } from '@sluice/contract'
import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import { call } from '../../api/client.ts'
import { followStream } from '../../api/event-stream.ts'
import { useQuery } from '../../api/query.ts'
import { mayCall } from '../../api/session.ts'
import { nowMs } from '../../clock-and-timers.ts'
import { Badge, FilterChips } from '../../ui/controls/badge.tsx'
import { Button } from '../../ui/controls/button.tsx'
import { Segments, TextInput } from '../../ui/controls/field.tsx'
import { LoadedView } from '../../ui/feedback/states.tsx'
import { Link } from '../../ui/navigation/link.tsx'
import { location, navigate, pathWith, queryParameter, setQuery } from '../../ui/navigation/router.ts'
import { showFailure } from '../../ui/overlay/toast.tsx'
import { Card, Page } from '../../ui/shell/page.tsx'
import type { Column } from '../../ui/table/table.tsx'
import { Table } from '../../ui/table/table.tsx'
import { countText, durationText, NO_VALUE, timeText } from '../../ui/theme/format.ts'
import type { Caller } from '../callers/caller.ts'
import { callerText, countedCaller } from '../callers/caller.ts'
import callerClasses from '../callers/callers.module.css'
import { OverrideDialog } from '../callers/override-dialog.tsx'
import { attempt } from '../lists/paged-list.tsx'
import { loadEnforced, resourceOfRule } from '../rules/versions/enforced-rules.ts'
import { DecisionDialog } from './decision-dialog.tsx'
import { countedText, MOST_ROWS, withNewer } from './decision-list.ts'
import classes from './decisions.module.css'

type Filter = NonNullable<Calls['listDecisions']['parameters']>

const OUTCOMES = [
  { value: '', label: 'All' },
  { value: 'denied', label: 'Denied' },
  { value: 'allowed', label: 'Allowed' },
] as const

const RETENTION =
  'A live sample. Of every 10 seconds, each thread keeps a random choice of 36 denied and 12 allowed ones for 15 ' +
  'minutes; other nodes show their newest 256. Keys of callers are shown as digests.'

/** The filters of the URL. */
function filterOf(query: URLSearchParams): Filter {
  const texts = ['resource', 'rule', 'dimension', 'caller', 'outcome', 'node'] as const
  const given = texts.flatMap((name) => (query.get(name) ? [[name, query.get(name)]] : []))
  const instants = (['from', 'to'] as const).flatMap((name) => {
    const value = Number(query.get(name))
    return query.get(name) === null || Number.isNaN(value) ? [] : [[name, value]]
  })
  return Object.fromEntries([...given, ...instants]) as Filter
}

/** A live sample of recent decisions. Pointing at the list holds it still. */
export function DecisionsPage(): JSX.Element {
  const filter = useComputed(() => filterOf(location.value.query))
  const key = JSON.stringify(filter.value)
  return (
    <Page title="Decisions" description={RETENTION}>
      <DecisionList key={key} filter={filter.value} />
    </Page>
  )
}

function DecisionList({ filter }: { filter: Filter }): JSX.Element {
  const rows = useSignal<readonly DecisionRecord[]>([])
  const waiting = useSignal<readonly DecisionRecord[]>([])
  const skipped = useSignal(0)
  const isHeld = useSignal(false)
  const explained = useSignal<DecisionRecord | undefined>(undefined)
  const overriding = useSignal<{ readonly caller: Caller; readonly resource: string } | undefined>(undefined)
  const isPast = filter.to !== undefined
  const query = useQuery(JSON.stringify(filter), async (signal) => {
    const { items } = await call('listDecisions', { parameters: { ...filter, limit: 200 }, signal })
    rows.value = withNewer(rows.peek(), items)
    return true
  })
  useEffect(() => {
    // A range of the past does not go on.
    if (isPast) return undefined
    const { from: _from, to: _to, limit: _limit, after: _after, ...live } = filter
    const stream = followStream({
      id: 'liveDecisions',
      parameters: live,
      onEvent: (update) => {
        skipped.value += update.skipped
        if (isHeld.peek()) waiting.value = withNewer(waiting.peek(), update.decisions)
        else rows.value = withNewer(rows.peek(), update.decisions)
      },
    })
    return () => stream.close()
  }, [])
  const override = async (caller: Caller, rule: string): Promise<void> => {
    try {
      const { ruleSet } = await loadEnforced()
      overriding.value = { caller, resource: resourceOfRule(ruleSet, rule) }
    } catch (error) {
      showFailure(error)
    }
  }
  const hold = (held: boolean): void => {
    isHeld.value = held
    if (held) return
    rows.value = withNewer(rows.peek(), waiting.peek())
    waiting.value = []
  }
  return (
    <Card
      isFlush
      title={<LiveState isPast={isPast} isHeld={isHeld.value} waiting={waiting.value.length} />}
      actions={<Filters />}
      description={skipped.value === 0 ? undefined : `The sample left out ${countText(skipped.value)} more.`}
    >
      <Chips filter={filter} />
      <div
        onPointerEnter={() => hold(true)}
        onPointerLeave={() => hold(false)}
        onFocusIn={({ target }) => {
          // Who uses the keyboard has no pointer to hold the list with.
          if ((target as Element).matches(':focus-visible')) hold(true)
        }}
        onFocusOut={() => hold(false)}
      >
        <LoadedView state={query.state} onRetry={() => void query.reload()}>
          {() => (
            <Table
              caption="Recent decisions, newest first"
              columns={columnsFor({
                onExplain: (row) => {
                  explained.value = row
                },
                onOverride: (caller, rule) => void override(caller, rule),
                onLift: (caller) => {
                  const parameters = { dimension: caller.dimension, entity: caller.entity }
                  void attempt(() => call('deleteBlock', { parameters }), `${callerText(caller)} is let in again.`)
                },
              })}
              rows={rows.value}
              rowKey={({ id }) => id}
              empty={emptyText(filter)}
            />
          )}
        </LoadedView>
      </div>
      <DecisionDialog
        decision={explained.value}
        onClose={() => {
          explained.value = undefined
        }}
      />
      <OverrideDialog
        caller={overriding.value?.caller}
        resource={overriding.value?.resource ?? '*'}
        onClose={() => {
          overriding.value = undefined
        }}
      />
    </Card>
  )
}

const RETAINED_MS = 900_000

/** Why there is nothing to see. */
function emptyText({ to }: Filter): string {
  if (to === undefined) return 'No decision of the sample matches. New ones appear here as they are made.'
  if (to > nowMs() - RETAINED_MS) return 'No decision of the sample matches.'
  return 'The sample keeps decisions for 15 minutes, and this range is older. The charts keep their figures.'
}

function LiveState({ isPast, isHeld, waiting }: { isPast: boolean; isHeld: boolean; waiting: number }): JSX.Element {
  if (isPast) return <Badge>a range of the past</Badge>
  if (!isHeld) return <Badge tone="good">live</Badge>
  return <Badge tone="warning">held while you look, {waiting === MOST_ROWS ? `${waiting} or more` : waiting} new</Badge>
}

function Filters(): JSX.Element {
  const typed = {
    caller: useSignal(queryParameter('caller') ?? ''),
    resource: useSignal(queryParameter('resource') ?? ''),
  }
  const input = (name: keyof typeof typed, label: string): JSX.Element => (
    <TextInput
      label={label}
      isLabelHidden
      type="search"
      placeholder={label}
      value={typed[name].value}
      onInput={(text) => {
        typed[name].value = text
      }}
    />
  )
  return (
    <form
      class={classes.filters}
      onSubmit={(event) => {
        event.preventDefault()
        setQuery({ caller: typed.caller.value.trim(), resource: typed.resource.value.trim() })
      }}
    >
      <Segments
        label="Outcome"
        value={(queryParameter('outcome') ?? '') as (typeof OUTCOMES)[number]['value']}
        choices={OUTCOMES}
        onChange={(value) => setQuery({ outcome: value })}
      />
      {input('resource', 'Resource')}
      {input('caller', 'Caller')}
      <Button type="submit">Filter</Button>
    </form>
  )
}

function Chips({ filter }: { filter: Filter }): JSX.Element | null {
  const filters = [
    { parameter: 'resource', label: 'resource', value: filter.resource },
    { parameter: 'rule', label: 'rule', value: filter.rule },
    { parameter: 'dimension', label: 'dimension', value: filter.dimension },
    { parameter: 'caller', label: 'caller', value: filter.caller },
    { parameter: 'node', label: 'node', value: filter.node },
    { parameter: 'from', label: 'from', value: filter.from === undefined ? undefined : timeText(filter.from) },
    { parameter: 'to', label: 'to', value: filter.to === undefined ? undefined : timeText(filter.to) },
  ]
  return filters.some(({ value }) => value !== undefined) ? (
    <div class={classes.chips}>
      <FilterChips filters={filters} />
    </div>
  ) : null
}

interface RowActions {
  readonly onExplain: (row: DecisionRecord) => void
  readonly onOverride: (caller: Caller, rule: string) => void
  readonly onLift: (caller: Caller) => void
}

function columnsFor(actions: RowActions): readonly Column<DecisionRecord>[] {
  return [
    { id: 'at', header: 'Time', isCode: true, cell: ({ at }) => timeText(at) },
    {
      id: 'outcome',
      header: 'Outcome',
      sharesLine: true,
      cell: ({ allowed, reason }) =>
        allowed ? <Badge tone="good">allowed</Badge> : <Badge tone="denied">denied: {reason ?? 'limit'}</Badge>,
    },
    {
      id: 'resource',
      header: 'Call',
      isCode: true,
      wraps: true,
      cell: ({ method, resource }) => (
        <Link to={pathWith({ resource })} title="Show only this resource">
          {method === undefined ? '' : `${method} `}
          {resource}
        </Link>
      ),
    },
    { id: 'caller', header: 'Counted', wraps: true, cell: (row) => <CountedCaller row={row} /> },
    {
      id: 'rule',
      isSecondary: true,
      header: 'Rule',
      isCode: true,
      cell: ({ rule }) => (rule === undefined ? NO_VALUE : <Link to={pathWith({ rule })}>{rule}</Link>),
    },
    {
      id: 'left',
      isSecondary: true,
      header: 'Left',
      align: 'end',
      cell: ({ remaining, limit, reason }) =>
        limit === undefined || reason === 'blocked'
          ? NO_VALUE
          : `${remaining === undefined ? '?' : countText(remaining)} of ${countText(limit)}`,
    },
    {
      id: 'retry',
      isSecondary: true,
      header: 'Retry after',
      align: 'end',
      cell: ({ retryAfterMs }) => (retryAfterMs === undefined ? NO_VALUE : durationText(retryAfterMs)),
    },
    {
      id: 'duration',
      isSecondary: true,
      header: 'Took',
      align: 'end',
      cell: ({ durationMs }) => durationText(durationMs),
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

function CountedCaller({ row }: { row: DecisionRecord }): JSX.Element {
  const text = countedText(row)
  return row.caller === undefined || row.dimension === 'global' ? (
    <span class={classes.muted}>{text}</span>
  ) : (
    <Link to={pathWith({ caller: row.caller, dimension: row.dimension })} title="Show only this caller">
      {text}
    </Link>
  )
}

function RowButtons({
  row,
  onExplain,
  onOverride,
  onLift,
}: RowActions & { readonly row: DecisionRecord }): JSX.Element {
  const caller = row.allowed ? undefined : countedCaller(row)
  // Nobody is counted on its own: another number is a change of the rule.
  const editedRule = row.allowed || caller !== undefined || !mayCall('createVersion') ? undefined : row.rule
  // Other numbers do not help who is blocked.
  const isBlocked = row.reason === 'blocked'
  return (
    <span class={callerClasses.actions}>
      <Button kind="quiet" onClick={() => onExplain(row)}>
        Explain
      </Button>
      {caller === undefined || isBlocked || !mayCall('putOverride') ? null : (
        <Button kind="quiet" onClick={() => onOverride(caller, row.rule ?? '')}>
          Override
        </Button>
      )}
      {editedRule === undefined ? null : (
        <Button kind="quiet" onClick={() => navigate(`/rules/edit?${new URLSearchParams({ rule: editedRule })}`)}>
          Edit rule
        </Button>
      )}
      {caller === undefined || !isBlocked || row.hidden.includes(row.dimension) || !mayCall('deleteBlock') ? null : (
        <Button kind="quiet" onClick={() => onLift(caller)}>
          Lift block
        </Button>
      )}
    </span>
  )
}
