import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import { every } from '../clock-and-timers.ts'
import { Link } from '../ui/navigation/link.tsx'
import type { Column } from '../ui/table/table.tsx'
import { Table } from '../ui/table/table.tsx'
import { instantText, NO_VALUE } from '../ui/theme/format.ts'
import type { ChartProps } from './chart-props.ts'

const MOST_ROWS = 30
/** A table that changes under a reading cursor is of no use. */
const REFRESH_MS = 10_000

interface Row {
  readonly fromMs: number
  readonly toMs: number
  readonly values: readonly number[]
}

/** The figures of a chart as a table: at most 30 evenly spaced points, newest first, read again every 10 s. */
export function ChartTable(props: ChartProps): JSX.Element {
  const { title, window, series, format, onPick } = props
  const revision = useSignal(0)
  // The first figures are shown when they come.
  if (window.length === 0) void props.revision.value
  useEffect(() => {
    return every(REFRESH_MS, () => {
      revision.value += 1
    })
  }, [])
  void revision.value
  const columns: Column<Row>[] = [
    {
      id: 'time',
      header: 'Time',
      cell: ({ fromMs, toMs }) =>
        onPick === undefined ? (
          instantText(fromMs)
        ) : (
          <Link to={`/decisions?from=${fromMs}&to=${toMs}`}>{instantText(fromMs)}</Link>
        ),
    },
    ...series.map(({ label }, index) => ({
      id: label,
      header: label,
      align: 'end' as const,
      cell: ({ values }: Row) => (Number.isNaN(values[index]) ? NO_VALUE : format(values[index] ?? 0)),
    })),
  ]
  return (
    <Table caption={`${title}, as a table`} columns={columns} rows={rowsOf(window)} rowKey={({ fromMs }) => fromMs} />
  )
}

function rowsOf(window: ChartProps['window']): readonly Row[] {
  const stride = Math.max(1, Math.ceil(window.length / MOST_ROWS))
  const rows: Row[] = []
  for (let index = window.length - 1; index >= 0; index -= stride) {
    const fromMs = window.timeAt(index)
    const nextMs = window.timeAt(index + 1)
    rows.push({
      fromMs,
      toMs: Number.isNaN(nextMs) ? fromMs + 1000 : nextMs,
      values: Array.from({ length: window.seriesCount }, (_, series) => window.valueAt(series, index)),
    })
  }
  return rows
}
