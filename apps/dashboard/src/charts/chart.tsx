import { useSignal, useSignalEffect } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { Button } from '../ui/controls/button.tsx'
import { Card } from '../ui/shell/page.tsx'
import { colourRevision } from '../ui/theme/theme.ts'
import type { ChartProps } from './chart-props.ts'
import { ChartTable } from './chart-table.tsx'
import classes from './charts.module.css'
import { crosshairAtMs, isPaused } from './crosshair.ts'
import { cancelDraw, requestDraw, watchVisibility } from './draw-loop.ts'
import { colourOf } from './palette.ts'
import { TimePlot } from './time-plot.ts'

/**
 * A chart over time with a legend, and a table of the same figures for screen readers. The legend shows the values
 * under the crosshair, which all charts share; without one, the newest.
 */
export function Chart(props: ChartProps): JSX.Element {
  const isTableShown = useSignal(false)
  const { title, description, actions } = props
  return (
    <Card
      title={title}
      description={description}
      isFlush
      actions={
        <span>
          {actions}
          <Button
            kind="quiet"
            icon="table"
            label={`${isTableShown.value ? 'Hide' : 'Show'} ${title} as a table`}
            isPressed={isTableShown.value}
            onClick={() => {
              isTableShown.value = !isTableShown.value
            }}
          />
        </span>
      }
    >
      <figure class={classes.figure} aria-label={title}>
        <Legend {...props} />
        <Plot {...props} />
        <div class={isTableShown.value ? classes.data : 'visually-hidden'}>
          <ChartTable {...props} isShown={isTableShown.value} />
        </div>
      </figure>
    </Card>
  )
}

/** The canvas. It is made again when the series change, and only drawn again when the window does. */
function Plot(props: ChartProps): JSX.Element {
  const host = useRef<HTMLDivElement>(null)
  const plot = useRef<TimePlot | undefined>(undefined)
  const isVisible = useRef(true)
  const latest = useRef(props)
  latest.current = props
  const drawable = useMemo(
    () => ({ isVisible: () => isVisible.current, draw: () => plot.current?.draw(latest.current) }),
    [],
  )
  const seriesKey = props.series.map(({ label, colour, isDashed }) => `${label} ${colour} ${isDashed}`).join('\n')
  useEffect(() => {
    if (host.current === null) return
    plot.current = new TimePlot(host.current, latest)
    const stopWatching = watchVisibility(host.current, (isInSight) => {
      isVisible.current = isInSight
    })
    requestDraw(drawable)
    return () => {
      stopWatching()
      cancelDraw(drawable)
      plot.current?.close()
      plot.current = undefined
    }
  }, [seriesKey, props.height])
  useSignalEffect(() => {
    void colourRevision.value
    void props.revision.value
    if (!isPaused.value) requestDraw(drawable)
  })
  useEffect(() => requestDraw(drawable), [props.window])
  const isEmpty = props.window.length === 0
  void props.revision.value
  return (
    <div ref={host} class={classes.plot} aria-hidden="true">
      {isEmpty ? <div class={classes.empty}>No figures in this range</div> : null}
    </div>
  )
}

function Legend({ window, series, format, revision }: ChartProps): JSX.Element {
  void revision.value
  void colourRevision.value
  const atMs = crosshairAtMs.value
  const index = atMs === undefined ? window.length - 1 : window.indexAt(atMs)
  return (
    <div class={classes.legend} aria-hidden="true">
      {series.map(({ label, colour, isDashed }, position) => {
        const value = window.valueAt(position, index)
        return (
          <span key={label} class={classes.legendItem} title={label}>
            <span class={classes.swatch} data-dashed={isDashed} style={{ color: colourOf(colour) }} />
            <span class={classes.legendName}>{label}</span>
            <span class={classes.legendValue}>{Number.isNaN(value) ? '–' : format(value)}</span>
          </span>
        )
      })}
    </div>
  )
}
