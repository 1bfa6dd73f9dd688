import { useSignal } from '@preact/signals'
import type { TopDimension, TopEntry } from '@sluice/contract'
import type { JSX } from 'preact'
import { Segments } from '../../ui/controls/field.tsx'
import { Link } from '../../ui/navigation/link.tsx'
import { Card } from '../../ui/shell/page.tsx'
import type { Column } from '../../ui/table/table.tsx'
import { Table } from '../../ui/table/table.tsx'
import { countText, durationText } from '../../ui/theme/format.ts'
import type { Caller } from '../callers/caller.ts'
import { usagePath } from '../callers/caller.ts'
import classes from './overview.module.css'

const LABELS: Readonly<Record<string, string>> = {
  user: 'Users',
  apiKey: 'Keys',
  ip: 'Addresses',
  tenant: 'Tenants',
  service: 'Services',
}
/** These are shown even without denials. */
const FIRST = ['user', 'apiKey', 'ip']
const MOST_CALLERS = 8

/** The callers that were denied most in the last minutes, one dimension at a time. */
export function TopCallers({ top, spanMs }: { top: readonly TopDimension[]; spanMs: number }): JSX.Element {
  const chosen = useSignal('user')
  const dimensions = [...new Set([...FIRST, ...top.map(({ dimension }) => dimension)])]
  const entries = top.find(({ dimension }) => dimension === chosen.value)?.entries ?? []
  const most = Math.max(1, ...entries.map(({ denials }) => denials))
  return (
    <Card
      title="Most denied"
      description={spanMs === 0 ? 'denied calls' : `last ${durationText(inMinutes(spanMs))}`}
      isFlush
      actions={
        <Segments
          label="Kind of caller"
          value={chosen.value}
          choices={dimensions.map((value) => ({ value, label: LABELS[value] ?? value }))}
          onChange={(value) => {
            chosen.value = value
          }}
        />
      }
    >
      <Table
        caption={`Most denied callers: ${LABELS[chosen.value] ?? chosen.value}`}
        columns={columnsOf(chosen.value, most)}
        rows={entries.slice(0, MOST_CALLERS)}
        rowKey={({ entity }) => entity}
        empty="No caller was denied in the last minutes."
      />
    </Card>
  )
}

/** Whole minutes: the span of a young service grows with every second. */
function inMinutes(spanMs: number): number {
  return Math.max(1, Math.round(spanMs / 60_000)) * 60_000
}

/** A caller with the way to its counters. API keys are shown as digests, which have none. */
function CallerName({ dimension, entity }: Caller): JSX.Element {
  const usage = usagePath({ dimension, entity })
  if (usage === undefined) {
    return (
      <span class={classes.caller} title={entity}>
        {entity}
      </span>
    )
  }
  return (
    <Link to={usage} class={classes.caller} title={entity}>
      {entity}
    </Link>
  )
}

function columnsOf(dimension: string, most: number): Column<TopEntry>[] {
  return [
    {
      id: 'caller',
      header: 'Caller',
      isCode: true,
      cell: ({ entity }) => <CallerName dimension={dimension} entity={entity} />,
    },
    {
      id: 'denials',
      header: 'Denied',
      align: 'end',
      cell: ({ denials, error }) => (
        <div class={classes.share} title={error === 0 ? 'exact' : `at most ${countText(error)} too high`}>
          <div class={classes.track}>
            <div class={classes.fill} style={{ width: `${(100 * denials) / most}%` }} />
          </div>
          <span class={classes.count}>{countText(denials)}</span>
        </div>
      ),
    },
    {
      id: 'decisions',
      header: 'Decisions',
      isHeaderHidden: true,
      align: 'end',
      cell: ({ entity }) => (
        <Link to={`/decisions?${new URLSearchParams({ dimension, caller: entity, outcome: 'denied' })}`}>
          decisions
        </Link>
      ),
    },
  ]
}
