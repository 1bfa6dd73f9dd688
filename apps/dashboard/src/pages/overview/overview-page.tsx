import type { ReadonlySignal } from '@preact/signals'
import { useSignal } from '@preact/signals'
import type { NodesAnswer } from '@sluice/contract'
import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import { call } from '../../api/client.ts'
import type { StreamState } from '../../api/event-stream.ts'
import type { Loaded } from '../../api/query.ts'
import { useQuery } from '../../api/query.ts'
import { Chart } from '../../charts/chart.tsx'
import { isPaused } from '../../charts/crosshair.ts'
import { seriesColour } from '../../charts/palette.ts'
import { every } from '../../clock-and-timers.ts'
import { Badge } from '../../ui/controls/badge.tsx'
import { Segments, Select } from '../../ui/controls/field.tsx'
import { ErrorNotice, Loading } from '../../ui/feedback/states.tsx'
import { queryParameter, setQuery } from '../../ui/navigation/router.ts'
import { Page } from '../../ui/shell/page.tsx'
import { TimeRangePicker, timeRange } from '../../ui/shell/time-range.tsx'
import { compactText, durationText, percentText, pluralText } from '../../ui/theme/format.ts'
import type { WantedDecisions } from '../callers/decisions-path.ts'
import { decisionsPath } from '../callers/decisions-path.ts'
import { FigureStrip } from './figure-strip.tsx'
import { NodeList } from './node-list.tsx'
import classes from './overview.module.css'
import type { OverviewFigures } from './overview-figures.ts'
import { MOST_REGIONS, MOST_RESOURCES } from './overview-figures.ts'
import { TopCallers } from './top-callers.tsx'
import type { Overview } from './use-overview.ts'
import { useOverview } from './use-overview.ts'

/** Position of the line of denied calls. */
const DENIED = 1
const NODES_PERIOD_MS = 5000
const SUMMARY_PERIOD_MS = 10_000

/** What happens now, on all nodes or one. */
export function OverviewPage(): JSX.Element {
  const nodes = useQuery('nodes', (signal) => call('nodes', { signal }), { periodMs: NODES_PERIOD_MS })
  const node = queryParameter('node')
  const overview = useOverview(timeRange.value, node)
  const error = overview.error.value
  return (
    <Page
      title="Overview"
      badges={<StreamBadge state={overview.streamState} />}
      actions={
        <>
          <NodePicker nodes={nodes.state} node={node} />
          <TimeRangePicker />
        </>
      }
    >
      {error === undefined ? null : <ErrorNotice error={error} onRetry={overview.reload} />}
      <Figures overview={overview} />
      <div class={classes.grid}>
        <Charts overview={overview} nodes={nodes.state} />
      </div>
      <LiveSummary figures={overview.figures} />
    </Page>
  )
}

function Figures({ overview }: { overview: Overview }): JSX.Element {
  const current = overview.figures.current.value
  return current === undefined ? <Loading lines={2} /> : <FigureStrip figures={current} />
}

function StreamBadge({ state }: { state: ReadonlySignal<StreamState | 'fixed'> }): JSX.Element {
  if (state.value === 'fixed') return <Badge>past</Badge>
  if (state.value !== 'live') return <Badge tone="warning">connecting</Badge>
  if (isPaused.value) return <Badge tone="accent">paused while you point</Badge>
  return (
    <Badge tone="good">
      <span class={classes.pulse} />
      live
    </Badge>
  )
}

interface NodePickerProps {
  readonly nodes: ReadonlySignal<Loaded<NodesAnswer>>
  readonly node: string | undefined
}

/** All nodes together, or one. Nothing where there is only one. */
function NodePicker({ nodes, node }: NodePickerProps): JSX.Element | null {
  const known = nodes.value.value?.nodes ?? []
  if (known.length < 2 && node === undefined) return null
  const choices = known.map(({ id, name, isSelf }) => ({ value: id, label: isSelf ? `${name} (answers here)` : name }))
  return (
    <div class={classes.node}>
      <Select
        label="Node"
        isLabelHidden
        value={node ?? ''}
        choices={[{ value: '', label: known.length === 1 ? 'The only node' : `All ${known.length} nodes` }, ...choices]}
        onChange={(value) => setQuery({ node: value })}
      />
    </div>
  )
}

interface ChartsProps {
  readonly overview: Overview
  readonly nodes: ReadonlySignal<Loaded<NodesAnswer>>
}

function Charts({ overview, nodes }: ChartsProps): JSX.Element {
  const { figures, range } = overview
  const source = { range, revision: figures.revision, onSelect: selectRange }
  const known = nodes.value.value?.nodes ?? []
  return (
    <>
      <div class={classes.wide}>
        <TrafficChart overview={overview} />
      </div>
      <div class={`${classes.narrow} ${classes.half}`}>
        <Chart
          {...source}
          title="Store latency"
          window={figures.latency}
          pathOf={decisionsOf}
          format={durationText}
          leastTop={0.5}
          height={232}
          series={[
            { label: 'p50', colour: 'series-7' },
            { label: 'p99', colour: 'series-6', isFilled: true },
          ]}
        />
      </div>
      <div class={classes.wide}>
        <ResourceChart overview={overview} />
      </div>
      <div class={`${classes.narrow} ${classes.half}`}>
        <TopCallers top={figures.top.value} spanMs={figures.topSpanMs.value} />
      </div>
      <div class={classes.narrow}>
        <RegionChart overview={overview} />
      </div>
      <div class={classes.wide}>
        <NodeList nodes={known} newest={Math.max(0, ...known.map(({ configVersion }) => configVersion))} />
      </div>
    </>
  )
}

function TrafficChart({ overview: { figures, range } }: { overview: Overview }): JSX.Element {
  const candidate = figures.current.value?.candidate
  return (
    <Chart
      title="Requests and denials"
      description="per second"
      window={figures.traffic}
      range={range}
      revision={figures.revision}
      format={compactText}
      leastTop={5}
      height={232}
      pathOf={({ series: line, ...span }) => decisionsOf(span, line === DENIED ? { outcome: 'denied' } : {})}
      onSelect={selectRange}
      series={[
        { label: 'requests', colour: 'accent', isFilled: true },
        { label: 'denied', colour: 'denied', isFilled: true },
        ...(candidate === undefined
          ? []
          : [{ label: `version ${candidate} would also deny`, colour: 'warning' as const, isDashed: true }]),
      ]}
    />
  )
}

function ResourceChart({ overview: { figures, range } }: { overview: Overview }): JSX.Element {
  const measure = useSignal<'share' | 'rate'>('share')
  const { names, shares, denials } = figures.resources.value
  const isShare = measure.value === 'share'
  return (
    <Chart
      title="Denial rate by resource"
      description={isShare ? 'share of requests' : 'denied per second'}
      window={isShare ? shares : denials}
      range={range}
      revision={figures.revision}
      format={isShare ? percentText : compactText}
      leastTop={isShare ? 0.05 : 1}
      height={232}
      pathOf={({ series: line, ...span }) => {
        // The last name stands for all others, which no filter names.
        const resource = line === undefined || line === MOST_RESOURCES ? undefined : names[line]
        return decisionsOf(span, { resource, outcome: 'denied' })
      }}
      onSelect={selectRange}
      series={shownNames(names, MOST_RESOURCES).map((label, index) => ({ label, colour: seriesColour(index, label) }))}
      actions={
        <Segments
          label="Measure"
          value={measure.value}
          choices={[
            { value: 'share', label: '%' },
            { value: 'rate', label: '/s' },
          ]}
          onChange={(value) => {
            measure.value = value
          }}
        />
      }
    />
  )
}

function RegionChart({ overview: { figures, range } }: { overview: Overview }): JSX.Element {
  const { names, checks } = figures.regions.value
  return (
    <Chart
      title="Traffic by region"
      description="requests per second"
      window={checks}
      range={range}
      revision={figures.revision}
      format={compactText}
      leastTop={1}
      pathOf={decisionsOf}
      onSelect={selectRange}
      series={shownNames(names, MOST_REGIONS).map((name, index) => ({
        label: REGION_LABELS[name] ?? name,
        colour: seriesColour(index, name),
      }))}
    />
  )
}

/** Without the last name, which stands for all others, where each has a line of its own. */
function shownNames(names: readonly string[], most: number): readonly string[] {
  return names.length > most ? names : names.slice(0, -1)
}

/** The names that the figures have for what is no region. */
const REGION_LABELS: Readonly<Record<string, string>> = { none: 'no region', other: 'other regions' }

/** The decisions behind a point, of the node that is shown. */
function decisionsOf(
  { fromMs, toMs }: Pick<WantedDecisions, 'fromMs' | 'toMs'>,
  filter: Pick<WantedDecisions, 'resource' | 'outcome'> = {},
): string {
  return decisionsPath({ fromMs, toMs, ...filter, node: queryParameter('node') })
}

function selectRange(fromMs: number, toMs: number): void {
  setQuery({ from: String(fromMs), to: String(toMs), range: undefined })
}

/** Says the figures to screen readers, politely, and never more often than every 10 s. */
function LiveSummary({ figures }: { figures: OverviewFigures }): JSX.Element {
  const text = useSignal('')
  useEffect(() => {
    const renew = (): void => {
      const current = figures.current.peek()
      if (current === undefined) return
      const { checks, denials, storeP99Ms, breaker, firingAlerts } = current
      text.value =
        `${pluralText(checks, 'request')} per second, ${percentText(checks === 0 ? 0 : denials / checks)} denied. ` +
        `Store p99 ${durationText(storeP99Ms)}, breaker ${breaker}. ${pluralText(firingAlerts, 'alert')} firing.`
    }
    return every(SUMMARY_PERIOD_MS, renew)
  }, [figures])
  return (
    <p class="visually-hidden" role="status" aria-live="polite">
      {text.value}
    </p>
  )
}
