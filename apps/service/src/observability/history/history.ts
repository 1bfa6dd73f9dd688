import type { Calls, HistoryAnswer } from '@sluice/contract'
import type { RollupRow, RollupStore } from './rollup-recorder.ts'
import { HOUR_MS, KEPT_MS, MINUTE_MS } from './rollup-recorder.ts'
import type { TrafficTotals } from './traffic-totals.ts'
import { addTraffic, NO_TRAFFIC, trafficPoint } from './traffic-totals.ts'

/** Maximum number of points in a response; longer ranges get longer spans. */
const MOST_POINTS = 1000

/** Default number of points. */
const USUAL_POINTS = 120

/** Lengths of spans in minutes, ascending. */
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
export function planHistory({ from, to, stepMs }: Calls['history']['parameters'], nowMs: number): HistoryPlan {
  const untilMs = Math.min(to ?? nowMs, nowMs)
  // Nothing is stored from before.
  const sinceMs = Math.max(from ?? untilMs - HOUR_MS, nowMs - KEPT_MS[HOUR_MS]!)
  const lengthMs = Math.max(0, untilMs - sinceMs)
  const leastMs = Math.max(
    stepMs ?? lengthMs / USUAL_POINTS,
    lengthMs / MOST_POINTS,
    sinceMs < nowMs - KEPT_MS[MINUTE_MS]! ? HOUR_MS : MINUTE_MS,
  )
  const step = STEPS_MS.find((one) => one >= leastMs) ?? STEPS_MS.at(-1)!
  return {
    fromMs: Math.floor(sinceMs / step) * step,
    toMs: untilMs,
    stepMs: step,
    keptMs: step % HOUR_MS === 0 ? HOUR_MS : MINUTE_MS,
  }
}

/** Reads the history of all processes that share the store. */
export async function readHistory(store: RollupStore, plan: HistoryPlan): Promise<HistoryAnswer> {
  const { fromMs, toMs, stepMs, keptMs } = plan
  const spans = new Map<number, TrafficTotals>()
  for (let at = fromMs; at < toMs; at += READ_AT_ONCE * keptMs) {
    const part = { fromMs: at, toMs: Math.min(toMs, at + READ_AT_ONCE * keptMs), stepMs: keptMs }
    for (const row of await store.list(part)) {
      const span = Math.floor(row.at / stepMs) * stepMs
      spans.set(span, addTraffic(spans.get(span) ?? NO_TRAFFIC, totalsOf(row)))
    }
  }
  const points = Array.from(spans, ([at, totals]) => trafficPoint(totals, { at, spanMs: stepMs }))
  return { stepMs, points: points.sort((one, other) => one.at - other.at) }
}

/** Stored counts; fields that another version omitted are 0. */
function totalsOf({ body }: RollupRow): TrafficTotals {
  return { ...NO_TRAFFIC, ...(JSON.parse(body) as Partial<TrafficTotals>) }
}
