import { useSignal } from '@preact/signals'
import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useMemo } from 'preact/hooks'
import { every } from '../clock-and-timers.ts'
import { Link } from '../ui/navigation/link.tsx'
import type { Column } from '../ui/table/table.tsx'
import { Table } from '../ui/table/table.tsx'
import { instantText, NO_VALUE } from '../ui/theme/format.ts'
import type { ChartPoint, ChartProps } from './chart-props.ts'

const MOST_ROWS = 30
/** A table that changes under a reading cursor is of no use. */
const REFRESH_MS = 10_000

interface Row {
  readonly fromMs: number
  readonly toMs: number
  readonly values: readonly number[]
}

export interface ChartTableProps extends ChartProps {
  /** Whether it is in sight, with links. Screen readers read it either way. */
  readonly isShown: boolean
}

/** The figures of a chart as a table: at most 30 evenly spaced points, newest first, read again every 10 s. */
export function ChartTable({ isShown, ...props }: ChartTableProps): JSX.Element {
  const { window, series, revision } = props
  const reading = useSignal(0)
  const isEmpty = window.length === 0
  // The first figures are shown when they come.
  if (isEmpty) void revision.value
  useEffect(() => {
    return every(REFRESH_MS, () => {
      reading.value += 1
    })
  }, [])
  const labels = series.map(({ label }) => label).join('\n')
  return useMemo(() => tableOf(props, isShown), [window, isEmpty, labels, isShown, reading.value])
}

function tableOf({ title, window, series, format, pathOf }: ChartProps, isShown: boolean): JSX.Element {
  const linked = (text: string, point: ChartPoint): ComponentChildren =>
    isShown && pathOf !== undefined ? <Link to={pathOf(point)}>{text}</Link> : text
  const columns: Column<Row>[] = [
    {
      id: 'time',
      header: 'Time',
      cell: ({ fromMs, toMs }) => linked(instantText(fromMs), { fromMs, toMs, series: undefined }),
    },
    ...series.map(({ label }, index) => ({
      id: label,
      header: label,
      align: 'end' as const,
      cell: ({ values, fromMs, toMs }: Row) => {
        const value = values[index] ?? Number.NaN
        return Number.isNaN(value) ? NO_VALUE : linked(format(value), { fromMs, toMs, series: index })
      },
    })),
  ]
  return (
    <Table
      caption={`${title}, as a table`}
      columns={columns}
      rows={rowsOf(window)}
      rowKey={({ fromMs }) => fromMs}
      isOutOfSight={!isShown}
    />
  )
}

function rowsOf(window: ChartProps['window']): readonly Row[] {
  const stride = Math.max(1, Math.ceil(window.length / MOST_ROWS))
  const rows: Row[] = []
  for (let index = window.length - 1; index >= 0; index -= stride) {
    rows.push({
      fromMs: window.timeAt(index),
      toMs: window.endOf(index),
      values: Array.from({ length: window.seriesCount }, (_, series) => window.valueAt(series, index)),
    })
  }
  return rows
}
