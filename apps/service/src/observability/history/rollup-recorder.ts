import type { Rollup, RollupTable } from '@sluice/config-store'
import type { Clock } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type { Logger, Sleep } from '@sluice/runtime'
import { errorFields } from '../error-fields.ts'
import type { ServiceReport } from '../metrics-aggregator.ts'
import type { TrafficTotals } from './traffic-totals.ts'
import { addTraffic, boundedTraffic, hasTraffic, trafficOf, trafficSince } from './traffic-totals.ts'

/** What a {@link RollupRecorder} works with. */
export interface RollupRecorderParts {
  readonly store: RollupStore
  readonly report: () => Promise<ServiceReport>
  readonly clock: Clock
  readonly sleep: Sleep
  readonly log: Logger
  /** Names this recorder, and no other before or after it: 1 to 64 letters, digits or `-`. */
  readonly source: string
}

/** A span that is being counted. */
interface Span {
  readonly at: number
  readonly totals: TrafficTotals
}

/** Rows that wait for a database that is away, the newest: the hours that they are part of and the last two of minutes. */
const MOST_WAITING = 150

/** Rows of resources, and of regions, in one span; the rest is `other`. */
const MOST_ROWS = 200

/**
 * Keeps what was counted, minute by minute and hour by hour, for all threads of this process. Each row is this process's own and
 * is put whole, so that putting it again after a lost answer counts nothing twice.
 */
export class RollupRecorder {
  readonly #parts: RollupRecorderParts
  readonly #waiting = new Map<string, RollupRow>()
  readonly #ending = new AbortController()
  #before: { readonly atMs: number; readonly totals: TrafficTotals } | undefined
  #minute: Span | undefined
  #hour: Span | undefined
  #forgottenHour = 0
  #running: Promise<void> | undefined

  constructor(parts: RollupRecorderParts) {
    this.#parts = parts
  }

  /** Begins. What was counted before counts as old. */
  start(): void {
    this.#running ??= this.#run()
  }

  /** Keeps what came since the last full minute, and ends. May be called again. */
  async close(): Promise<void> {
    if (this.#running === undefined || this.#ending.signal.aborted) return await this.#running
    this.#ending.abort()
    await this.#running
    await this.#record()
  }

  async #run(): Promise<void> {
    const { signal } = this.#ending
    await this.#record()
    while (!signal.aborted) {
      const nowMs = this.#nowMs()
      try {
        await this.#parts.sleep(MINUTE_MS - (nowMs % MINUTE_MS), signal)
      } catch {
        return
      }
      await this.#record()
    }
  }

  /** Never rejects: what cannot be kept now is kept with the next minute. */
  async #record(): Promise<void> {
    try {
      const { metrics } = await this.#parts.report()
      this.#count(trafficOf(metrics))
      await this.#save()
    } catch (error) {
      this.#parts.log.warn('history could not be kept; it is tried again', {
        rows: this.#waiting.size,
        error: errorFields(error),
      })
    }
  }

  /** Adds what came since the last time to the minute and the hour in which that was. */
  #count(totals: TrafficTotals): void {
    const before = this.#before
    this.#before = { atMs: this.#nowMs(), totals }
    if (before === undefined) return
    const came = trafficSince(totals, before.totals)
    if (!hasTraffic(came)) return
    this.#minute = this.#grown(this.#minute, MINUTE_MS, { at: before.atMs, totals: came })
    this.#hour = this.#grown(this.#hour, HOUR_MS, { at: before.atMs, totals: came })
  }

  #grown(span: Span | undefined, stepMs: number, came: Span): Span {
    const at = Math.floor(came.at / stepMs) * stepMs
    const totals = span?.at === at ? addTraffic(span.totals, came.totals) : came.totals
    const body = JSON.stringify(boundedTraffic(totals, MOST_ROWS))
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

  /** Once an hour. */
  async #forget(): Promise<void> {
    const nowMs = this.#nowMs()
    const hour = Math.floor(nowMs / HOUR_MS)
    if (hour === this.#forgottenHour) return
    for (const stepMs of [MINUTE_MS, HOUR_MS]) {
      await this.#parts.store.forget({ stepMs, beforeMs: Math.floor(nowMs) - KEPT_MS[stepMs]! })
    }
    this.#forgottenHour = hour
  }

  #nowMs(): number {
    return this.#parts.clock.nowMicros() / MICROS_PER_MS
  }
}

/** What one process counted in one span of time, a minute or an hour. */
export type RollupRow = Rollup

/** Where history is kept: a table of the configuration database. */
export type RollupStore = RollupTable

/** Length of the shortest spans that are kept. */
export const MINUTE_MS = 60_000

/** Length of the spans that are kept for long. */
export const HOUR_MS = 3_600_000

const DAY_MS = 86_400_000

/** How long spans are kept, by their length. */
export const KEPT_MS: Readonly<Record<number, number>> = { [MINUTE_MS]: 2 * DAY_MS, [HOUR_MS]: 90 * DAY_MS }
