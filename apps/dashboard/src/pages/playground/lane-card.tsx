import type { Signal } from '@preact/signals'
import type { JSX } from 'preact'
import { Badge } from '../../ui/controls/badge.tsx'
import { Card } from '../../ui/shell/page.tsx'
import { countText, durationText, pluralText } from '../../ui/theme/format.ts'
import { ALGORITHM_TEXTS } from './algorithm-texts.ts'
import { ChartScale, ColumnsChart, TimeAxis } from './columns-chart.tsx'
import classes from './playground.module.css'
import type { Scenario } from './scenario.ts'
import { windowMsOf } from './scenario.ts'
import type { Lane } from './simulation.ts'

export interface LaneCardProps {
  readonly lane: Lane
  readonly scenario: Scenario
  /** The value at the upper edge of all charts, so that they compare. */
  readonly highest: number
  readonly hovered: Signal<number | undefined>
  /** Columns in sight. */
  readonly shown: number
}

/** What one algorithm made of the traffic. */
export function LaneCard({ lane, scenario, highest, hovered, shown }: LaneCardProps): JSX.Element {
  const { label, summary } = ALGORITHM_TEXTS[lane.algorithm]
  const most = Math.max(1, ...lane.remaining)
  return (
    <Card title={label} description={summary} actions={<WorstWindow lane={lane} scenario={scenario} />}>
      <ColumnsChart
        label={laneSummary(lane, scenario)}
        series={[
          { kind: 'admitted', values: lane.admitted },
          { kind: 'denied', values: lane.denied },
        ]}
        highest={highest}
        line={lane.remaining.map((remaining) => remaining / most)}
        hovered={hovered}
        shown={shown}
        worstColumn={lane.worstWindow > scenario.limit ? lane.worstColumn : undefined}
      />
      <TimeAxis windowMs={windowMsOf(scenario)} />
      <div class={classes.laneFoot}>
        <span class={classes.keyAdmitted}>
          <b>{countText(lane.admittedCount)}</b> admitted
        </span>
        <span class={classes.keyDenied}>
          <b>{countText(lane.deniedCount)}</b> denied
        </span>
        <span class={classes.keyLevel}>left for the caller</span>
        {lane.worstWindow > scenario.limit ? (
          <span class={classes.keyWorst}>the {scenario.window} with the most calls</span>
        ) : null}
        {lane.longestDelayMs > 0 ? <span>longest wait {durationText(lane.longestDelayMs)}</span> : null}
        <ChartScale highest={highest} windowMs={windowMsOf(scenario)} />
        <Reading lane={lane} hovered={hovered} />
      </div>
    </Card>
  )
}

/** How many calls went on within one window, which is what a limit is about. */
export function WorstWindow({ lane, scenario }: { lane: Lane; scenario: Scenario }): JSX.Element {
  const { worstWindow } = lane
  const share = worstWindow / scenario.limit
  const text = `at most ${countText(worstWindow)} in ${scenario.window}`
  if (worstWindow <= scenario.limit) return <Badge tone="good">{text}</Badge>
  return (
    <Badge tone={share >= 1.5 ? 'denied' : 'warning'}>
      {text}: {share.toFixed(1)} times the limit
    </Badge>
  )
}

/** The figures of the column that is pointed at. */
function Reading({ lane, hovered }: { lane: Lane; hovered: Signal<number | undefined> }): JSX.Element | null {
  const column = hovered.value
  if (column === undefined) return null
  return (
    <span class={classes.reading}>
      here {lane.admitted[column]} admitted, {lane.denied[column]} denied, {lane.remaining[column]} left
    </span>
  )
}

function laneSummary(lane: Lane, scenario: Scenario): string {
  const { label } = ALGORITHM_TEXTS[lane.algorithm]
  return (
    `${label}: ${pluralText(lane.admittedCount, 'call')} admitted, ${lane.deniedCount} denied, at most ` +
    `${lane.worstWindow} within ${scenario.window}, where the limit is ${scenario.limit}.`
  )
}
