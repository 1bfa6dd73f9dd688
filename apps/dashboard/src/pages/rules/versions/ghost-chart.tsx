import { useComputed } from '@preact/signals'
import type { ShadowSeries } from '@sluice/contract'
import type { JSX } from 'preact'
import { call } from '../../../api/client.ts'
import type { Query } from '../../../api/query.ts'
import { useQuery } from '../../../api/query.ts'
import { Chart } from '../../../charts/chart.tsx'
import { SeriesWindow } from '../../../charts/series-window.ts'
import { nowMs } from '../../../clock-and-timers.ts'
import { LoadedView } from '../../../ui/feedback/states.tsx'
import { compactText, countText, percentText } from '../../../ui/theme/format.ts'
import { decisionsPath } from '../../callers/decisions-path.ts'
import classes from './versions.module.css'

/** Position of the line of denied calls. */
const DENIED = 0
const SPAN_MS = 900_000
const STEP_MS = 10_000
const REFRESH_MS = 2000
const NARROWEST_MS = 60_000

/** What a version measured in the last 15 minutes, read again and again. */
export function useShadowSeries(version: number): Query<ShadowSeries> {
  return useQuery(
    `shadow ${version}`,
    (signal) => {
      const to = nowMs()
      const parameters = { number: version, from: to - SPAN_MS, to, stepMs: STEP_MS }
      return call('shadowSeries', { parameters, signal })
    },
    { periodMs: REFRESH_MS },
  )
}

/** What a version in shadow would also have denied, as a dashed line over what was denied: live, over 15 minutes. */
export function GhostChart({ version }: { version: number }): JSX.Element {
  const query = useShadowSeries(version)
  const window = useComputed(() => windowOf(query.state.value.value))
  const revision = useComputed(() => query.state.value.value?.to ?? 0)
  return (
    <LoadedView state={query.state} onRetry={() => void query.reload()}>
      {(series) => (
        <div class={classes.candidate}>
          <Figures series={series} />
          <Chart
            title={`What version ${version} would also deny`}
            description="Denied calls per second in the last 15 minutes: enforced, and measured."
            window={window.value}
            series={[
              { label: 'Denied', colour: 'denied', isFilled: true },
              { label: `Version ${version} would also deny`, colour: 'accent', isDashed: true },
            ]}
            range={() => [Math.min(window.value.firstAtMs ?? series.from, series.to - NARROWEST_MS), series.to]}
            revision={revision}
            format={compactText}
            leastTop={1}
            height={150}
            pathOf={({ fromMs, toMs, series: line }) =>
              decisionsPath({ fromMs, toMs, outcome: line === DENIED ? 'denied' : undefined })
            }
          />
        </div>
      )}
    </LoadedView>
  )
}

function windowOf(series: ShadowSeries | undefined): SeriesWindow {
  const window = new SeriesWindow(Math.max(1, series?.at.length ?? 1), 2)
  if (series === undefined) return window
  const perSecond = 1000 / series.stepMs
  // A young service has no past: the line begins where its traffic does.
  const first = Math.max(0, series.checks.findIndex((count) => count > 0) - 1)
  for (const [index, at] of series.at.entries()) {
    if (index < first) continue
    // A step that goes on would look like a fall of the line.
    if (at + series.stepMs > nowMs()) break
    window.set(at, [series.denials[index]! * perSecond, series.shadowDenials[index]! * perSecond])
  }
  return window
}

/** The same in figures. */
function Figures({ series }: { series: ShadowSeries }): JSX.Element {
  const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0)
  const [checks, denials] = [sum(series.checks), sum(series.denials)]
  const [measured, wouldDeny] = [sum(series.shadowChecks), sum(series.shadowDenials)]
  const [worst] = series.rules
  return (
    <dl class={classes.figures}>
      <div>
        <dt>Measured in 15 minutes</dt>
        <dd>{countText(measured)}</dd>
      </div>
      <div>
        <dt>Would also deny</dt>
        <dd>
          {countText(wouldDeny)} <small>{percentText(measured === 0 ? undefined : wouldDeny / measured)}</small>
        </dd>
      </div>
      <div>
        <dt>Denied now</dt>
        <dd>
          {countText(denials)} <small>{percentText(checks === 0 ? undefined : denials / checks)}</small>
        </dd>
      </div>
      {worst === undefined || sum(worst.denials) === 0 ? null : (
        <div>
          <dt>Most by the rule for</dt>
          <dd>
            <code>{worst.resource}</code> <small>{worst.dimension}</small>
          </dd>
        </div>
      )}
    </dl>
  )
}
