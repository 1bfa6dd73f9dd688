import type {
  AlertBounds,
  Calls,
  OverviewAnswer,
  ShadowRuleSeries,
  ShadowSeries,
  TrafficSeries,
} from '@sluice/contract'
import type { HistoryPlan } from '../history/history.ts'
import { planHistory, readSpans } from '../history/history.ts'
import type { RollupStore } from '../history/rollup-recorder.ts'
import type { TrafficTotals } from '../history/traffic-totals.ts'
import { latencyOf, NO_TRAFFIC, sharesOf } from '../history/traffic-totals.ts'
import { OTHER } from '../metrics/metric-names.ts'
import { shownCallers } from '../top-callers.ts'
import type { ClusterFigures } from './cluster-view.ts'

/** Maximum number of steps in a response. */
const MOST_STEPS = 400

const SHOWN_REGIONS = 12

const SHOWN_RULES = 20

const SHOWN_CALLERS = 10

/** The steps of an overview: 10 seconds or longer while those are kept. */
export function planOverview(
  range: Pick<Calls['overview']['parameters'], 'from' | 'to' | 'stepMs'>,
  nowMs: number,
): HistoryPlan {
  return planHistory(range, nowMs, { hasSeconds: true, mostPoints: MOST_STEPS })
}

/** A node whose history is read: rows name it by id or name. */
export interface HistoryNode {
  readonly id: string
  readonly name: string
}

/** What {@link readOverview} needs. */
export interface OverviewOptions {
  readonly plan: HistoryPlan
  /** Undefined for all nodes. */
  readonly node: HistoryNode | undefined
  readonly now: ClusterFigures
  /** Maximum number of resources besides `other`. */
  readonly resources: number
  readonly alertBounds: AlertBounds
  readonly nowMs: number
}

/** Series of a range, aligned: one number for each step, also where nothing happened. */
export async function readOverview(store: RollupStore, options: OverviewOptions): Promise<OverviewAnswer> {
  const { plan, node, now, nowMs } = options
  const { at, spans } = await readSteps(store, plan, node)
  const totals = spans.map(({ checks }) => sumOf(sharesOf(checks, () => '')))
  const shadows = spans.map((span) => sumOf(sharesOf(shadowsOf(span, now.candidate), () => '')))
  const { nodes, version, configLagMs, inFlight, firingAlerts, breaker, candidate, failureMode, top } = now
  return {
    from: plan.fromMs,
    to: plan.toMs,
    stepMs: plan.stepMs,
    at,
    checks: totals.map(({ checks }) => checks),
    denials: totals.map(({ denials }) => denials),
    withoutStore: spans.map(({ withoutStore }) => withoutStore),
    storeErrors: spans.map(({ storeErrors }) => storeErrors),
    storeP50Ms: spans.map(({ storeLatency }) => latencyOf(storeLatency, 0.5)),
    storeP99Ms: spans.map(({ storeLatency }) => latencyOf(storeLatency, 0.99)),
    resources: seriesOf(
      spans.map(({ checks }) => checks),
      ({ resource }) => resource,
      { most: options.resources, by: 'denials' },
    ),
    regions: seriesOf(
      spans.map(({ regions }) => regions),
      ({ region }) => region,
      { most: SHOWN_REGIONS, by: 'checks' },
    ),
    shadowChecks: shadows.map(({ checks }) => checks),
    shadowDenials: shadows.map(({ denials }) => denials),
    ...{ nodes, version, configLagMs, inFlight, firingAlerts, breaker },
    alertBounds: options.alertBounds,
    ...(candidate === undefined ? {} : { candidate }),
    ...(failureMode === undefined ? {} : { failureMode }),
    top: shownCallers(top, { limit: SHOWN_CALLERS }),
    topSpanMs: Math.max(0, nowMs - top.startedAt),
  }
}

/** What {@link readShadow} needs. */
export interface ShadowOptions extends Pick<OverviewOptions, 'plan' | 'node'> {
  readonly version: number
}

/** What a version would have denied, beside what was denied. */
export async function readShadow(store: RollupStore, options: ShadowOptions): Promise<ShadowSeries> {
  const { plan, node, version } = options
  const { at, spans } = await readSteps(store, plan, node)
  const live = spans.map(({ checks }) => sumOf(sharesOf(checks, () => '')))
  const measured = spans.map((span) => shadowsOf(span, version))
  const shadows = measured.map((rows) => sumOf(sharesOf(rows, () => '')))
  const named = seriesOf(measured, ({ resource, dimension }) => JSON.stringify([resource, dimension]), {
    most: SHOWN_RULES,
    by: 'denials',
  })
  return {
    version,
    from: plan.fromMs,
    to: plan.toMs,
    stepMs: plan.stepMs,
    at,
    checks: live.map(({ checks }) => checks),
    denials: live.map(({ denials }) => denials),
    shadowChecks: shadows.map(({ checks }) => checks),
    shadowDenials: shadows.map(({ denials }) => denials),
    rules: named.filter(({ name }) => name !== OTHER).map(ruleSeriesOf),
  }
}

function ruleSeriesOf({ name, checks, denials }: TrafficSeries): ShadowRuleSeries {
  const [resource, dimension] = JSON.parse(name) as [string, string]
  return { resource, dimension, checks, denials }
}

async function readSteps(
  store: RollupStore,
  plan: HistoryPlan,
  node: HistoryNode | undefined,
): Promise<{ readonly at: readonly number[]; readonly spans: readonly TrafficTotals[] }> {
  const { fromMs, toMs, stepMs } = plan
  const stored = await readSpans(store, plan, node)
  const at: number[] = []
  for (let start = fromMs; start < toMs; start += stepMs) at.push(start)
  return { at, spans: at.map((start) => stored.get(start) ?? NO_TRAFFIC) }
}

function shadowsOf({ shadows }: TrafficTotals, version: number | undefined): TrafficTotals['shadows'] {
  return version === undefined ? [] : shadows.filter((row) => row.version === String(version))
}

function sumOf(shares: readonly { readonly checks: number; readonly denials: number }[]): {
  readonly checks: number
  readonly denials: number
} {
  return shares[0] ?? { checks: 0, denials: 0 }
}

interface Ranking {
  readonly most: number
  readonly by: 'checks' | 'denials'
}

/** One series for each of the largest names, and `other` for the rest. */
function seriesOf<Row extends { readonly result: string; readonly count: number }>(
  steps: readonly (readonly Row[])[],
  nameOf: (row: Row) => string,
  { most, by }: Ranking,
): readonly TrafficSeries[] {
  const series = new Map<string, { checks: number[]; denials: number[]; total: number; second: number }>()
  for (const [step, rows] of steps.entries()) {
    for (const { name, checks, denials } of sharesOf(rows, nameOf)) {
      const one = series.get(name) ?? { checks: zeros(steps), denials: zeros(steps), total: 0, second: 0 }
      series.set(name, one)
      one.checks[step] = checks
      one.denials[step] = denials
      one.total += by === 'checks' ? checks : denials
      one.second += by === 'checks' ? denials : checks
    }
  }
  const sorted = [...series].sort(
    ([oneName, one], [otherName, other]) =>
      other.total - one.total || other.second - one.second || (oneName < otherName ? -1 : 1),
  )
  const shown = sorted.filter(([name]) => name !== OTHER).slice(0, most)
  const names = new Set(shown.map(([name]) => name))
  const rest = sorted.filter(([name]) => !names.has(name))
  const listed = shown.map(([name, { checks, denials }]) => ({ name, checks, denials }))
  if (rest.length === 0) return listed
  const sumAt = (of: 'checks' | 'denials') => (_: unknown, step: number) =>
    rest.reduce((sum, [, one]) => sum + one[of][step]!, 0)
  return [...listed, { name: OTHER, checks: steps.map(sumAt('checks')), denials: steps.map(sumAt('denials')) }]
}

function zeros(steps: readonly unknown[]): number[] {
  return Array.from({ length: steps.length }, () => 0)
}
