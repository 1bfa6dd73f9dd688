import type { Calls, HistoryAnswer } from '@sluice/contract'
import type { RollupStore } from './rollup-recorder.ts'
import { HOUR_MS, KEPT_MS, MINUTE_MS, SHORT_MS } from './rollup-recorder.ts'
import type { TrafficTotals } from './traffic-totals.ts'
import { addTraffic, NO_TRAFFIC, trafficPoint } from './traffic-totals.ts'

/** Maximum number of points in a response; longer ranges get longer spans. */
const MOST_POINTS = 1000

/** Default number of points. */
const USUAL_POINTS = 120

/** Lengths of spans, ascending: seconds, then minutes. */
const SECOND_STEPS_MS = [10_000, 20_000, 30_000]
const STEPS_MS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440].map((minutes) => minutes * MINUTE_MS)

/** Number of stored spans read at once, to bound memory and event loop delay. */
const READ_AT_ONCE = 60

/** A range of the past and its spans. */
export interface HistoryPlan {
  readonly fromMs: number
  readonly toMs: number
  /** Length of the spans in the response. */
  readonly stepMs: number
  /** Length of the stored spans. */
  readonly keptMs: number
}

/** The best spans for a request: of the requested length or the next longer one, not too many, and still stored. */
export function planHistory(
  { from, to, stepMs }: Pick<Calls['history']['parameters'], 'from' | 'to' | 'stepMs'>,
  nowMs: number,
  { hasSeconds = false, mostPoints = MOST_POINTS }: PlanOptions = {},
): HistoryPlan {
  const untilMs = Math.min(to ?? nowMs, nowMs)
  // Nothing is stored from before.
  const sinceMs = Math.max(from ?? untilMs - HOUR_MS, nowMs - KEPT_MS[HOUR_MS]!)
  const lengthMs = Math.max(0, untilMs - sinceMs)
  const leastMs = Math.max(stepMs ?? lengthMs / USUAL_POINTS, lengthMs / mostPoints, leastKept(sinceMs, nowMs))
  const steps = hasSeconds ? [...SECOND_STEPS_MS, ...STEPS_MS] : STEPS_MS
  const step = steps.find((one) => one >= leastMs) ?? STEPS_MS.at(-1)!
  return {
    fromMs: Math.floor(sinceMs / step) * step,
    toMs: untilMs,
    stepMs: step,
    keptMs: [HOUR_MS, MINUTE_MS].find((kept) => step % kept === 0) ?? SHORT_MS,
  }
}

/** The shortest spans that are still stored for this time. */
function leastKept(sinceMs: number, nowMs: number): number {
  return [SHORT_MS, MINUTE_MS].find((step) => sinceMs >= nowMs - KEPT_MS[step]!) ?? HOUR_MS
}

/** Options of {@link planHistory}. */
export interface PlanOptions {
  /** Whether spans may be shorter than a minute. Default: false. */
  readonly hasSeconds?: boolean
  /** Default: 1000. */
  readonly mostPoints?: number
}

/** Reads the history of all nodes that share the store, or of one. */
export async function readHistory(
  store: RollupStore,
  plan: HistoryPlan,
  node?: { readonly id: string; readonly name: string },
): Promise<HistoryAnswer> {
  const { stepMs } = plan
  const spans = await readSpans(store, plan, node)
  const points = Array.from(spans, ([at, totals]) => trafficPoint(totals, { at, spanMs: stepMs }))
  return { stepMs, points: points.sort((one, other) => one.at - other.at) }
}

/** The counts of each span in which something happened, by its start. */
export async function readSpans(
  store: RollupStore,
  { fromMs, toMs, stepMs, keptMs }: HistoryPlan,
  node?: { readonly id: string; readonly name: string },
): Promise<ReadonlyMap<number, TrafficTotals>> {
  const spans = new Map<number, TrafficTotals>()
  for (let at = fromMs; at < toMs; at += READ_AT_ONCE * keptMs) {
    const part = { fromMs: at, toMs: Math.min(toMs, at + READ_AT_ONCE * keptMs), stepMs: keptMs }
    for (const row of await store.list(part)) {
      const stored = JSON.parse(row.body) as StoredTotals
      if (node !== undefined && row.source !== node.id && stored.node !== node.name) continue
      const span = Math.floor(row.at / stepMs) * stepMs
      spans.set(span, addTraffic(spans.get(span) ?? NO_TRAFFIC, { ...NO_TRAFFIC, ...stored }))
    }
  }
  return spans
}

/** Stored counts; what another version omitted is not there. */
type StoredTotals = Partial<TrafficTotals> & { readonly node?: string }
