import type { Signal } from '@preact/signals'
import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { ChartScale, ColumnsChart, TimeAxis } from './columns-chart.tsx'
import classes from './playground.module.css'
import type { Scenario } from './scenario.ts'
import { DRAWN_COLUMNS, HIGHEST_LEVEL, LIMIT_LEVEL, SIMULATED_WINDOWS, windowMsOf } from './scenario.ts'
import { RESULT_COLUMNS } from './simulation.ts'

export interface TrafficEditorProps {
  readonly scenario: Scenario
  readonly offered: readonly number[]
  readonly hovered: Signal<number | undefined>
  /** While somebody draws. */
  readonly onDraw: (levels: readonly number[]) => void
  /** When a drawing is done. */
  readonly onDrawn: (levels: readonly number[]) => void
}

/** The traffic of a scenario. Drawing over it changes it, with a pointer or with the arrow keys. */
export function TrafficEditor({ scenario, offered, hovered, onDraw, onDrawn }: TrafficEditorProps): JSX.Element {
  const column = useSignal(0)
  const isDrawing = useSignal(false)
  const levels = scenario.shape === 'drawn' ? scenario.levels : levelsOf(offered, scenario)
  const highest = Math.max(callsAtHighest(scenario), ...offered)
  const draw = (event: PointerEvent & { currentTarget: HTMLElement }): void => {
    const box = event.currentTarget.getBoundingClientRect()
    const at = within(Math.floor(((event.clientX - box.left) / box.width) * DRAWN_COLUMNS), DRAWN_COLUMNS - 1)
    const share = 1 - (event.clientY - box.top) / box.height
    onDraw(levels.with(at, within(Math.round(share * HIGHEST_LEVEL), HIGHEST_LEVEL)))
  }
  const press = (event: KeyboardEvent): void => {
    const moves: Readonly<Record<string, readonly [columns: number, levels: number]>> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, 1],
      ArrowDown: [0, -1],
      PageUp: [0, 5],
      PageDown: [0, -5],
    }
    const move = moves[event.key]
    if (move === undefined) return
    event.preventDefault()
    column.value = within(column.value + move[0], DRAWN_COLUMNS - 1)
    if (move[1] !== 0) {
      onDrawn(levels.with(column.value, within(levels[column.value]! + move[1], HIGHEST_LEVEL)))
    }
  }
  return (
    <>
      <div
        class={classes.editor}
        role="slider"
        tabIndex={0}
        aria-label="Traffic. Left and right choose a moment, up and down change how many calls arrive then."
        aria-orientation="vertical"
        aria-valuemin={0}
        aria-valuemax={HIGHEST_LEVEL}
        aria-valuenow={levels[column.value]}
        aria-valuetext={momentText(column.value, levels[column.value]!)}
        onKeyDown={press}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId)
          isDrawing.value = true
          draw(event)
        }}
        onPointerMove={(event) => {
          if (isDrawing.value) draw(event)
        }}
        onPointerUp={() => {
          if (isDrawing.value) onDrawn(levels)
          isDrawing.value = false
        }}
      >
        <ColumnsChart
          label={`Calls that arrive: ${offered.reduce((sum, count) => sum + count, 0)} in all.`}
          series={[{ kind: 'offered', values: offered }]}
          highest={highest}
          line={new Array<number>(RESULT_COLUMNS).fill(callsAtLimit(scenario) / highest)}
          hovered={hovered}
        />
      </div>
      <TimeAxis windowMs={windowMsOf(scenario)} />
      <div class={classes.laneFoot}>
        <span class={classes.keyOffered}>calls</span>
        <span class={classes.keyLevel}>pace of the limit</span>
        <ChartScale highest={highest} windowMs={windowMsOf(scenario)} />
      </div>
    </>
  )
}

function momentText(column: number, level: number): string {
  return `moment ${column + 1} of ${DRAWN_COLUMNS}, ${Math.round((level / LIMIT_LEVEL) * 100)} % of the limit`
}

function callsAtLimit({ limit }: Scenario): number {
  return (limit * SIMULATED_WINDOWS) / RESULT_COLUMNS
}

function callsAtHighest(scenario: Scenario): number {
  return (callsAtLimit(scenario) * HIGHEST_LEVEL) / LIMIT_LEVEL
}

/** The drawing that comes nearest to some traffic, to go on from there. */
function levelsOf(offered: readonly number[], scenario: Scenario): readonly number[] {
  const perColumn = RESULT_COLUMNS / DRAWN_COLUMNS
  return Array.from({ length: DRAWN_COLUMNS }, (_, column) => {
    const own = offered.slice(column * perColumn, (column + 1) * perColumn)
    const calls = own.reduce((sum, count) => sum + count, 0) / perColumn
    return within(Math.round((calls / callsAtLimit(scenario)) * LIMIT_LEVEL), HIGHEST_LEVEL)
  })
}

function within(value: number, most: number): number {
  return Math.min(most, Math.max(0, value))
}
