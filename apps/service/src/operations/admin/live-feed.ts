import type { LiveSample } from '@sluice/contract'
import type { Clock } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type { BreakerState } from '@sluice/core/store'
import type { Logger, MetricsSnapshot, Sleep } from '@sluice/runtime'
import { errorFields } from '../../observability/error-fields.ts'
import type { TrafficTotals } from '../../observability/history/traffic-totals.ts'
import { trafficOf, trafficPoint, trafficSince } from '../../observability/history/traffic-totals.ts'
import { METRIC } from '../../observability/metrics/metric-names.ts'
import type { ServiceReport } from '../../observability/metrics-aggregator.ts'
import { shownCallers } from '../../observability/top-callers.ts'
import type { StreamAnswer } from '../handler.ts'

/** What a {@link LiveFeed} works with. */
export interface LiveFeedParts {
  readonly report: () => Promise<ServiceReport>
  readonly clock: Clock
  readonly sleep: Sleep
  readonly log: Logger
  /** Goes into the digests of API keys; read at each use. */
  readonly secret: Uint8Array
  /** Most streams at once. */
  readonly mostStreams: number
}

/** Who reads a stream. */
export interface LiveReader {
  /** The id of the last event that it has seen, as the client says: any text. */
  readonly lastEventId: string | undefined
  /** Whether it may go on to read; asked before each event. */
  readonly mayRead: () => boolean
}

const EVERY_MS = 1000

/** Events that are kept for readers that come back. */
const MOST_KEPT = 60

const SHOWN_CALLERS = 10

/** Tells clients to come back after two seconds when the connection is lost, and that it is there now. */
const OPENING = 'retry: 2000\n: connected\n\n'

/** Keeps connections from being taken for dead. */
const HEARTBEAT = ': heartbeat\n\n'

const HEADERS: Readonly<Record<string, string>> = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store',
  // Proxies that gather answers would hold events back.
  'X-Accel-Buffering': 'no',
}

const BREAKER_STATES: readonly BreakerState[] = ['closed', 'half-open', 'open']

interface Reader extends LiveReader {
  readonly write: (text: string) => boolean
  readonly end: () => void
  /** Whether it had not read up when it was last written to. */
  isBehind: boolean
}

interface Baseline {
  readonly atMs: number
  readonly totals: TrafficTotals
}

interface KeptEvent {
  readonly id: number
  readonly text: string
}

/**
 * Sends a sample per second to its readers, as server-sent events. All readers share the same events; without readers
 * none are made. A reader that does not keep up is disconnected: it reconnects by itself and gets what it missed of the
 * last minute.
 */
export class LiveFeed {
  readonly #parts: LiveFeedParts
  readonly #readers = new Set<Reader>()
  readonly #kept: KeptEvent[] = []
  #running: AbortController | undefined

  constructor(parts: LiveFeedParts) {
    this.#parts = parts
  }

  /** Streams that are open. */
  get streams(): number {
    return this.#readers.size
  }

  /** The stream for a reader; undefined when there are too many. */
  open(reader: LiveReader): StreamAnswer | undefined {
    if (this.#readers.size >= this.#parts.mostStreams) return undefined
    return {
      status: 200,
      headers: HEADERS,
      stream: (write, end) => this.#begin({ ...reader, write, end, isBehind: false }),
    }
  }

  #begin(reader: Reader): () => void {
    // Many may have been promised a stream before the first of them began.
    if (this.#readers.size >= this.#parts.mostStreams) {
      reader.end()
      return () => undefined
    }
    this.#readers.add(reader)
    // May be more than a connection takes at once; whether it was read is seen at the next event.
    reader.write(OPENING + this.#missedBy(reader))
    this.#start()
    return () => this.#leave(reader)
  }

  #leave(reader: Reader): void {
    if (!this.#readers.delete(reader) || this.#readers.size > 0) return
    this.#running?.abort()
    this.#running = undefined
  }

  #start(): void {
    if (this.#running !== undefined || this.#readers.size === 0) return
    const running = new AbortController()
    this.#running = running
    void this.#run(running.signal)
  }

  async #run(signal: AbortSignal): Promise<void> {
    let before = this.#baselineOf(await this.#report())
    while (!signal.aborted) {
      try {
        await this.#parts.sleep(EVERY_MS, signal)
      } catch {
        return
      }
      const report = await this.#report()
      if (signal.aborted) return
      const now = this.#baselineOf(report)
      if (report === undefined || now === undefined || before === undefined) this.#writeAll(HEARTBEAT)
      else this.#tell(report, before, now)
      before = now ?? before
    }
  }

  /** Tells what came since `before`. */
  #tell(report: ServiceReport, before: Baseline, now: Baseline): void {
    const id = Math.floor(now.atMs)
    const text = `id: ${id}\nevent: sample\ndata: ${JSON.stringify(this.#eventOf(report, before, now))}\n\n`
    this.#kept.push({ id, text })
    if (this.#kept.length > MOST_KEPT) this.#kept.shift()
    this.#writeAll(text)
  }

  #eventOf(report: ServiceReport, before: Baseline, now: Baseline): LiveSample {
    const { metrics, top } = report
    const spanMs = Math.max(1, Math.round(now.atMs - before.atMs))
    return {
      ...trafficPoint(trafficSince(now.totals, before.totals), { at: Math.floor(before.atMs), spanMs }),
      version: gaugeOf(metrics, METRIC.configVersion),
      configAgeMs: Math.round(gaugeOf(metrics, METRIC.configLag) * 1000),
      inFlight: gaugeOf(metrics, METRIC.inFlight),
      firingAlerts: gaugeOf(metrics, METRIC.firingAlerts),
      breaker: BREAKER_STATES[gaugeOf(metrics, METRIC.breaker)] ?? 'closed',
      top: shownCallers(top, { limit: SHOWN_CALLERS, secret: this.#parts.secret }),
    }
  }

  #baselineOf(report: ServiceReport | undefined): Baseline | undefined {
    if (report === undefined) return undefined
    return { atMs: this.#parts.clock.nowMicros() / MICROS_PER_MS, totals: trafficOf(report.metrics) }
  }

  async #report(): Promise<ServiceReport | undefined> {
    try {
      return await this.#parts.report()
    } catch (error) {
      this.#parts.log.warn('could not collect the metrics of the live feed', { error: errorFields(error) })
      return undefined
    }
  }

  #missedBy({ lastEventId }: Reader): string {
    const seen = lastEventId !== undefined && /^\d{1,16}$/.test(lastEventId) ? Number(lastEventId) : undefined
    if (seen === undefined) return ''
    return this.#kept
      .filter(({ id }) => id > seen)
      .map(({ text }) => text)
      .join('')
  }

  #writeAll(text: string): void {
    for (const reader of [...this.#readers]) {
      const mayGoOn = reader.mayRead() && this.#write(reader, text)
      if (!mayGoOn) reader.end()
    }
  }

  /** Writes; false when the reader had not read up twice in a row, so that ever more would have to be kept for it. */
  #write(reader: Reader, text: string): boolean {
    const hasReadUp = reader.write(text)
    const isTooSlow = !hasReadUp && reader.isBehind
    reader.isBehind = !hasReadUp
    return !isTooSlow
  }
}

function gaugeOf({ families }: MetricsSnapshot, name: string): number {
  const family = families.find((one) => one.name === name)
  return family?.type === 'gauge' ? (family.samples[0]?.value ?? 0) : 0
}
