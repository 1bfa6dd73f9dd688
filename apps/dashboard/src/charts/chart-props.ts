import type { ReadonlySignal } from '@preact/signals'
import type { JSX } from 'preact'
import type { ColourName } from './palette.ts'
import type { SeriesWindow } from './series-window.ts'

/** A line of a chart. */
export interface ChartSeries {
  readonly label: string
  readonly colour: ColourName
  /** Fills the area below. */
  readonly isFilled?: boolean
  /** For what did not happen, such as what a draft would deny. */
  readonly isDashed?: boolean
}

/** What is drawn, and when it is drawn again. */
export interface ChartSource {
  readonly window: SeriesWindow
  readonly series: readonly ChartSeries[]
  /** The ends of the time axis, in milliseconds. */
  readonly range: () => readonly [fromMs: number, toMs: number]
  /** Rises with every change of the window. */
  readonly revision: ReadonlySignal<number>
}

/** A point of a chart: a span of time, and the line that is meant. */
export interface ChartPoint {
  readonly fromMs: number
  readonly toMs: number
  /** Position of the series; undefined for the instant as a whole. */
  readonly series: number | undefined
}

export interface ChartProps extends ChartSource {
  readonly title: string
  readonly description?: string
  readonly actions?: JSX.Element
  readonly format: (value: number) => string
  /** The least upper end of the value axis, so that noise does not fill the chart. */
  readonly leastTop?: number
  /** Pixels. Default: 190. */
  readonly height?: number
  /** The page behind a point. A click opens it, and the rows of the table lead to it. */
  readonly pathOf?: (point: ChartPoint) => string
  /** Receives the span that was selected by dragging. */
  readonly onSelect?: (fromMs: number, toMs: number) => void
}
