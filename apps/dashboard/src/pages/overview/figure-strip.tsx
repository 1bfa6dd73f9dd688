import type { ComponentChildren, JSX } from 'preact'
import { Link } from '../../ui/navigation/link.tsx'
import { compactText, countText, durationText, percentText } from '../../ui/theme/format.ts'
import classes from './overview.module.css'
import type { CurrentFigures } from './overview-figures.ts'

/** A configuration that is not confirmed for so long is marked, before an alert fires. */
const LAG_WARNING_MS = 60_000

interface FigureProps {
  readonly label: string
  readonly value: ComponentChildren
  readonly unit?: string
  readonly note: ComponentChildren
  readonly tone?: 'denied' | 'warning' | 'danger' | undefined
}

function Figure({ label, value, unit, note, tone }: FigureProps): JSX.Element {
  return (
    <div class={classes.figure}>
      <dt>{label}</dt>
      <dd data-tone={tone}>
        {value}
        {unit === undefined ? null : <span class={classes.unit}>{unit}</span>}
      </dd>
      <dd class={classes.note}>{note}</dd>
    </div>
  )
}

/** The figures that say in a second whether all is well. */
export function FigureStrip({ figures }: { figures: CurrentFigures }): JSX.Element {
  const { checks, denials, storeP50Ms, storeP99Ms, version, candidate, configLagMs, nodes, firingAlerts } = figures
  const share = checks === 0 ? 0 : denials / checks
  const { denialRate, storeLatencyMs = Number.POSITIVE_INFINITY } = figures.alertBounds
  const isShareHigh = denialRate !== undefined && share > denialRate
  return (
    <dl class={classes.strip}>
      <Figure
        label="Requests"
        value={compactText(Math.round(checks))}
        unit="/s"
        note={`${countText(figures.inFlight)} in flight`}
      />
      <Figure
        label="Denied"
        value={compactText(round(denials))}
        unit="/s"
        note={
          candidate === undefined
            ? `by rules v${version}`
            : `${compactText(round(figures.shadowDenials))} more with v${candidate}`
        }
        tone={denials > 0 ? 'denied' : undefined}
      />
      <Figure
        label="Denied share"
        value={percentText(share)}
        note={denialRate === undefined ? 'no alert' : `alert above ${percentText(denialRate)}`}
        tone={isShareHigh ? 'danger' : undefined}
      />
      <Figure
        label="Store p99"
        value={durationText(storeP99Ms)}
        note={`p50 ${durationText(storeP50Ms)}`}
        tone={(storeP99Ms ?? 0) > storeLatencyMs ? 'warning' : undefined}
      />
      <BreakerFigure {...figures} />
      <Figure
        label="Configuration"
        value={version === 0 ? 'none' : `v${version}`}
        note={candidate === undefined ? `confirmed ${durationText(configLagMs)} ago` : `v${candidate} is measured`}
        tone={configLagMs > LAG_WARNING_MS ? 'warning' : undefined}
      />
      <Figure
        label="Alerts"
        value={countText(firingAlerts)}
        note={<Link to="/alerts">{firingAlerts === 0 ? 'all quiet' : 'firing now'}</Link>}
        tone={firingAlerts > 0 ? 'danger' : undefined}
      />
      <Figure label="Nodes" value={countText(nodes)} note={<Link to="/nodes">in these figures</Link>} />
    </dl>
  )
}

const BREAKER_TONES = { closed: undefined, 'half-open': 'warning', open: 'danger' } as const

function BreakerFigure({ breaker, failureMode, withoutStore }: CurrentFigures): JSX.Element {
  if (failureMode === undefined) return <Figure label="Store" value="Memory" note="no store to lose" />
  const note = breaker === 'closed' ? `failure mode ${failureMode}` : `${countText(withoutStore)}/s by ${failureMode}`
  return (
    <Figure
      label="Breaker"
      value={breaker[0]?.toUpperCase() + breaker.slice(1)}
      note={note}
      tone={BREAKER_TONES[breaker]}
    />
  )
}

function round(value: number): number {
  return value < 10 ? Math.round(value * 10) / 10 : Math.round(value)
}
