import type { HistoryAnswer, HistoryParameters } from '@sluice/contract'
import type { RollupRow, RollupStore } from './rollup-recorder.ts'
import { HOUR_MS, KEPT_MS, MINUTE_MS } from './rollup-recorder.ts'
import type { TrafficTotals } from './traffic-totals.ts'
import { addTraffic, NO_TRAFFIC, trafficPoint } from './traffic-totals.ts'

/** Points of an answer; a longer time is told in longer spans. */
const MOST_POINTS = 1000

/** Points of an answer when nobody says how many. */
const USUAL_POINTS = 120

/** Lengths of spans that are told, rising, in minutes. */
const STEPS_MS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440].map((minutes) => minutes * MINUTE_MS)

/** Kept spans that are read at once, so that neither memory nor the event loop is taken for long. */
const READ_AT_ONCE = 60

/** Which part of the past is told, in which spans. */
export interface HistoryPlan {
  readonly fromMs: number
  readonly toMs: number
  /** Length of the spans that are told. */
  readonly stepMs: number
  /** Length of the spans that are read. */
  readonly keptMs: number
}

/** Which spans answer a question best: of the length asked for or the next longer one, not too many, and still kept. */
export function planHistory({ from, to, stepMs }: HistoryParameters, nowMs: number): HistoryPlan {
  const untilMs = Math.min(to ?? nowMs, nowMs)
  // Nothing is there from before, so there is nothing to look for.
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

/** Tells what was kept, over all processes that keep it in this store. */
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

/** What was counted; what an older or newer version left out counts as nothing. */
function totalsOf({ body }: RollupRow): TrafficTotals {
  return { ...NO_TRAFFIC, ...(JSON.parse(body) as Partial<TrafficTotals>) }
}
