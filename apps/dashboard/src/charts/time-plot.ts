import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { navigate } from '../ui/navigation/router.ts'
import type { ChartProps, ChartSeries } from './chart-props.ts'
import { CROSSHAIR_KEY, moveCrosshair } from './crosshair.ts'
import { colourOf, faded } from './palette.ts'

const DEFAULT_HEIGHT = 190
/** How far from a line a click still means it. */
const NEAR_PX = 12
const DAY_MS = 86_400_000
const MINUTE_MS = 60_000
const FONT = '11px -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, sans-serif'
const WITH_SECONDS = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const WITHOUT_SECONDS = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })
const DAYS = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })

/** One chart on a canvas, with the crosshair that all charts share. */
export class TimePlot {
  readonly #plot: uPlot
  readonly #host: HTMLElement
  readonly #props: { readonly current: ChartProps }
  readonly #resizing: ResizeObserver

  /** `props` are read whenever they are needed, so that a new handler needs no new chart. */
  constructor(host: HTMLElement, props: { readonly current: ChartProps }) {
    this.#host = host
    this.#props = props
    this.#plot = new uPlot(this.#options(), [[]], host)
    this.#plot.over.addEventListener('mouseleave', () => moveCrosshair(undefined))
    this.#plot.over.addEventListener('click', () => this.#pick())
    this.#resizing = new ResizeObserver(() => this.#plot.setSize(this.#size()))
    this.#resizing.observe(host)
  }

  /** Draws the window as it is now. */
  draw({ window, range, series }: ChartProps): void {
    const [min, max] = range()
    this.#plot.batch(() => {
      this.#plot.setData(window.view().slice(0, series.length + 1) as uPlot.AlignedData, false)
      this.#plot.setScale('x', { min, max })
    })
    this.#plot.redraw(true, true)
  }

  close(): void {
    this.#resizing.disconnect()
    this.#plot.destroy()
  }

  #size(): { width: number; height: number } {
    const { paddingLeft, paddingRight } = getComputedStyle(this.#host)
    const width = this.#host.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight)
    return { width: Math.max(120, width), height: this.#props.current.height ?? DEFAULT_HEIGHT }
  }

  #options(): uPlot.Options {
    const { series, format, leastTop = 1 } = this.#props.current
    const top = (): number => (this.#props.current.window.highest(series.length) ?? 0) * 1.08
    const axis = { font: FONT, stroke: () => colourOf('text-muted') }
    return {
      ...this.#size(),
      ms: 1,
      legend: { show: false },
      padding: [8, 22, 0, 0],
      scales: { x: { time: true }, y: { range: () => [0, Math.max(leastTop, top())] } },
      axes: [
        {
          ...axis,
          grid: { show: false },
          ticks: { stroke: () => colourOf('grid'), width: 1, size: 4 },
          space: 72,
          size: 26,
          values: (_, ...[splits]) => timeLabels(splits),
        },
        {
          ...axis,
          grid: { stroke: () => colourOf('grid'), width: 1 },
          ticks: { show: false },
          size: 52,
          space: 34,
          values: (_, splits) => splits.map(format),
        },
      ],
      series: [{}, ...series.map(lineOf)],
      cursor: {
        sync: { key: CROSSHAIR_KEY, setSeries: false, scales: ['x', null] },
        y: false,
        points: { size: 6, width: 2, fill: () => colourOf('grid') },
        drag: { x: true, y: false, setScale: false },
      },
      hooks: { setCursor: [(plot) => this.#follow(plot)], setSelect: [(plot) => this.#select(plot)] },
    }
  }

  #follow(plot: uPlot): void {
    const { left } = plot.cursor
    // The crosshair of another chart moves this one too; only the chart under the pointer tells.
    if (left === undefined || left < 0 || !plot.over.matches(':hover')) return
    moveCrosshair(plot.posToVal(left, 'x'))
  }

  #select(plot: uPlot): void {
    const { left, width } = plot.select
    const { onSelect } = this.#props.current
    if (width < 4) return
    const [fromMs, toMs] = [plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')]
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
    moveCrosshair(undefined)
    onSelect?.(Math.floor(fromMs), Math.ceil(toMs))
  }

  #pick(): void {
    const { window, pathOf } = this.#props.current
    const { left, top } = this.#plot.cursor
    if (left === undefined || top === undefined || left < 0 || pathOf === undefined) return
    const index = Math.max(0, window.indexAt(this.#plot.posToVal(left, 'x')))
    if (index >= window.length) return
    moveCrosshair(undefined)
    const series = this.#seriesNear(index, top)
    navigate(pathOf({ fromMs: window.timeAt(index), toMs: window.endOf(index), series }))
  }

  /** The line that somebody means who clicks at a height; undefined when none is near. */
  #seriesNear(index: number, top: number): number | undefined {
    const { window, series } = this.#props.current
    const distances = series.map((_, position) => {
      const value = window.valueAt(position, index)
      return Number.isNaN(value) ? Number.POSITIVE_INFINITY : Math.abs(this.#plot.valToPos(value, 'y') - top)
    })
    const nearest = Math.min(...distances)
    return nearest <= NEAR_PX ? distances.indexOf(nearest) : undefined
  }
}

function lineOf({ label, colour, isFilled, isDashed }: ChartSeries): uPlot.Series {
  return {
    label,
    stroke: () => colourOf(colour),
    width: isDashed ? 1.5 : 1.75,
    ...(isDashed ? { dash: [5, 4] } : {}),
    ...(isFilled ? { fill: () => faded(colourOf(colour), 0.13) } : {}),
    points: { show: false },
    spanGaps: true,
  }
}

function timeLabels(splits: readonly number[]): string[] {
  const incrementMs = (splits[1] ?? 0) - (splits[0] ?? 0)
  if (incrementMs >= DAY_MS) return splits.map((split) => DAYS.format(split))
  return splits.map((split) => (incrementMs < MINUTE_MS ? WITH_SECONDS : WITHOUT_SECONDS).format(split))
}
