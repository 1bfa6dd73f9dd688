import type { Signal } from '@preact/signals'
import type { JSX } from 'preact'
import { durationText, pluralText } from '../../ui/theme/format.ts'
import classes from './playground.module.css'
import { COLUMNS_PER_WINDOW, RESULT_COLUMNS } from './simulation.ts'

/** Units of the drawing: ten to a column, a hundred high. */
const COLUMN_WIDTH = 10
const WIDTH = RESULT_COLUMNS * COLUMN_WIDTH
const HEIGHT = 100
const GAP = 1.5

/** One kind of columns; several are stacked in their order. */
export interface ColumnSeries {
  readonly kind: 'offered' | 'admitted' | 'denied'
  readonly values: readonly number[]
}

export interface ColumnsChartProps {
  /** What the chart shows, in a sentence: a picture says nothing to a screen reader. */
  readonly label: string
  readonly series: readonly ColumnSeries[]
  /** The value at the upper edge. */
  readonly highest: number
  /** A line over the columns, 0 to 1. */
  readonly line?: readonly number[]
  readonly hovered: Signal<number | undefined>
  /** Where the window with the most calls begins, in columns, when it has more than the limit. */
  readonly worstColumn?: number | undefined
  /** Columns in sight, from the start. Default: all. */
  readonly shown?: number
}

/** Columns over time, with the boundaries of windows. Pointing at one shows the same instant in all charts. */
export function ColumnsChart(props: ColumnsChartProps): JSX.Element {
  const { label, series, highest, line, hovered, worstColumn, shown = RESULT_COLUMNS } = props
  const point = (event: PointerEvent & { currentTarget: Element }): void => {
    const box = event.currentTarget.getBoundingClientRect()
    const column = Math.floor(((event.clientX - box.left) / box.width) * RESULT_COLUMNS)
    hovered.value = column >= 0 && column < RESULT_COLUMNS ? column : undefined
  }
  return (
    <svg
      class={classes.chart}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
      onPointerMove={point}
      onPointerLeave={() => {
        hovered.value = undefined
      }}
    >
      {worstColumn === undefined || shown < RESULT_COLUMNS ? null : (
        <rect
          class={classes.worst}
          x={worstColumn * COLUMN_WIDTH}
          y={0}
          width={COLUMNS_PER_WINDOW * COLUMN_WIDTH}
          height={HEIGHT}
        />
      )}
      <WindowLines />
      {series.map(({ kind, values }, index) => (
        <path
          key={kind}
          class={classes[kind]}
          d={columnsPath(values.slice(0, shown), { below: series.slice(0, index), highest })}
        />
      ))}
      {line === undefined ? null : <path class={classes.level} d={linePath(line.slice(0, shown))} />}
      <HoverMark hovered={hovered} />
      {shown < RESULT_COLUMNS ? (
        <line class={classes.cursor} x1={shown * COLUMN_WIDTH} x2={shown * COLUMN_WIDTH} y1={0} y2={HEIGHT} />
      ) : null}
    </svg>
  )
}

/** What the upper edge of a chart stands for. */
export function ChartScale({ highest, windowMs }: { highest: number; windowMs: number }): JSX.Element {
  return (
    <span>
      full height: {pluralText(Math.round(highest), 'call')} in {durationText(windowMs / COLUMNS_PER_WINDOW)}
    </span>
  )
}

/** When each window begins, below a chart. */
export function TimeAxis({ windowMs }: { windowMs: number }): JSX.Element {
  const windows = RESULT_COLUMNS / COLUMNS_PER_WINDOW
  return (
    <ol class={classes.axis} aria-hidden="true">
      {Array.from({ length: windows }, (_, index) => (
        <li key={index}>{durationText(index * windowMs)}</li>
      ))}
    </ol>
  )
}

function WindowLines(): JSX.Element {
  const boundaries = Array.from(
    { length: RESULT_COLUMNS / COLUMNS_PER_WINDOW - 1 },
    (_, index) => (index + 1) * COLUMNS_PER_WINDOW * COLUMN_WIDTH,
  )
  return (
    <path
      class={classes.boundary}
      d={boundaries.map((x) => `M${x} 0V${HEIGHT}`).join('')}
      vector-effect="non-scaling-stroke"
    />
  )
}

function HoverMark({ hovered }: { hovered: Signal<number | undefined> }): JSX.Element | null {
  if (hovered.value === undefined) return null
  return <rect class={classes.hover} x={hovered.value * COLUMN_WIDTH} y={0} width={COLUMN_WIDTH} height={HEIGHT} />
}

function columnsPath(
  values: readonly number[],
  { below, highest }: { readonly below: readonly ColumnSeries[]; readonly highest: number },
): string {
  return values
    .map((value, column) => {
      if (value === 0) return ''
      const base = below.reduce((sum, series) => sum + series.values[column]!, 0)
      const bottom = HEIGHT - (base / highest) * HEIGHT
      const top = HEIGHT - ((base + value) / highest) * HEIGHT
      const left = column * COLUMN_WIDTH + GAP
      return `M${left} ${bottom}V${top.toFixed(2)}H${left + COLUMN_WIDTH - 2 * GAP}V${bottom.toFixed(2)}Z`
    })
    .join('')
}

function linePath(values: readonly number[]): string {
  return values
    .map((value, column) => {
      const y = HEIGHT - Math.min(1, Math.max(0, value)) * HEIGHT
      return `${column === 0 ? 'M' : 'L'}${(column + 0.5) * COLUMN_WIDTH} ${y.toFixed(2)}`
    })
    .join('')
}
