import type { Rollup, RollupTable } from '@sluice/config-store'
import type { Clock } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type { Logger, Sleep } from '@sluice/runtime'
import { errorFields } from '../error-fields.ts'
import type { ServiceReport } from '../metrics-aggregator.ts'
import type { TrafficTotals } from './traffic-totals.ts'
import { addTraffic, boundedTraffic, hasTraffic, trafficOf, trafficSince } from './traffic-totals.ts'

/** Options of {@link RollupRecorder}. */
export interface RollupRecorderParts {
  readonly store: RollupStore
  readonly report: () => Promise<ServiceReport>
  readonly clock: Clock
  readonly sleep: Sleep
  readonly log: Logger
  /** Unique name of this recorder: 1 to 64 letters, digits or `-`. */
  readonly source: string
  /** Name of the node for people. Default: none. */
  readonly node?: string
  /** Lengths of the spans, the shortest first: it is recorded at the end of each of those. Default: minute and hour. */
  readonly spansMs?: readonly number[]
}

/** The current span. */
interface Span {
  readonly at: number
  readonly totals: TrafficTotals
}

/** Maximum number of rows that wait for an unreachable database: current hours and the last two hours of minutes. */
const MOST_WAITING = 150

/** Maximum number of resources and of regions in one span; the rest is `other`. */
const MOST_ROWS = 200

/**
 * Stores the counts of this process per span of time. Each row belongs to this process and is written as a
 * whole, so a repeated write after a lost reply counts nothing twice.
 */
export class RollupRecorder {
  readonly #parts: RollupRecorderParts
  readonly #waiting = new Map<string, RollupRow>()
  readonly #ending = new AbortController()
  #before: { readonly atMs: number; readonly totals: TrafficTotals } | undefined
  readonly #spansMs: readonly number[]
  readonly #spans = new Map<number, Span>()
  #forgottenHour = 0
  #running: Promise<void> | undefined

  constructor(parts: RollupRecorderParts) {
    this.#parts = parts
    this.#spansMs = parts.spansMs ?? [MINUTE_MS, HOUR_MS]
  }

  /** Starts. Earlier counts are ignored. */
  start(): void {
    this.#running ??= this.#run()
  }

  /** Stores the current minute and ends. Can be called again. */
  async close(): Promise<void> {
    if (this.#running === undefined || this.#ending.signal.aborted) return await this.#running
    this.#ending.abort()
    await this.#running
    await this.#record()
  }

  async #run(): Promise<void> {
    const { signal } = this.#ending
    const tickMs = this.#spansMs[0]!
    await this.#record()
    while (!signal.aborted) {
      const nowMs = this.#nowMs()
      try {
        await this.#parts.sleep(tickMs - (nowMs % tickMs), signal)
      } catch {
        return
      }
      await this.#record()
    }
  }

  /** Never rejects: rows that cannot be stored now are stored with the next minute. */
  async #record(): Promise<void> {
    try {
      const { metrics } = await this.#parts.report()
      this.#count(trafficOf(metrics))
      await this.#save()
    } catch (error) {
      this.#parts.log.warn('could not store history; retrying', {
        rows: this.#waiting.size,
        error: errorFields(error),
      })
    }
  }

  /** Adds the counts since the last call to the current minute and hour. */
  #count(totals: TrafficTotals): void {
    const before = this.#before
    this.#before = { atMs: this.#nowMs(), totals }
    if (before === undefined) return
    const came = trafficSince(totals, before.totals)
    if (!hasTraffic(came)) return
    for (const stepMs of this.#spansMs) {
      this.#spans.set(stepMs, this.#grown(this.#spans.get(stepMs), stepMs, { at: before.atMs, totals: came }))
    }
  }

  #grown(span: Span | undefined, stepMs: number, came: Span): Span {
    const at = Math.floor(came.at / stepMs) * stepMs
    const totals = span?.at === at ? addTraffic(span.totals, came.totals) : came.totals
    const { node } = this.#parts
    const body = JSON.stringify({ ...boundedTraffic(totals, MOST_ROWS), ...(node === undefined ? {} : { node }) })
    const key = `${stepMs} ${at}`
    this.#waiting.delete(key)
    this.#waiting.set(key, { stepMs, at, source: this.#parts.source, body })
    for (const oldest of this.#waiting.keys()) {
      if (this.#waiting.size <= MOST_WAITING) break
      this.#waiting.delete(oldest)
    }
    return { at, totals }
  }

  async #save(): Promise<void> {
    const rows = [...this.#waiting.values()]
    if (rows.length > 0) await this.#parts.store.put(rows)
    for (const row of rows) {
      const key = `${row.stepMs} ${row.at}`
      if (this.#waiting.get(key) === row) this.#waiting.delete(key)
    }
    await this.#forget()
  }

  /** Once an hour. Rows of the shortest spans are kept for up to twice as long. */
  async #forget(): Promise<void> {
    const nowMs = this.#nowMs()
    const hour = Math.floor(nowMs / HOUR_MS)
    if (hour === this.#forgottenHour) return
    for (const stepMs of this.#spansMs) {
      await this.#parts.store.forget({ stepMs, beforeMs: Math.floor(nowMs) - KEPT_MS[stepMs]! })
    }
    this.#forgottenHour = hour
  }

  #nowMs(): number {
    return this.#parts.clock.nowMicros() / MICROS_PER_MS
  }
}

/** Counts of one process in one minute or hour. */
export type RollupRow = Rollup

/** The history table of the configuration database. */
export type RollupStore = RollupTable

/** Length of the shortest spans. */
export const SHORT_MS = 10_000

export const MINUTE_MS = 60_000

/** Length of the longest spans. */
export const HOUR_MS = 3_600_000

const DAY_MS = 86_400_000

/** Retention of spans by their length. */
export const KEPT_MS: Readonly<Record<number, number>> = {
  [SHORT_MS]: HOUR_MS,
  [MINUTE_MS]: 2 * DAY_MS,
  [HOUR_MS]: 90 * DAY_MS,
}
