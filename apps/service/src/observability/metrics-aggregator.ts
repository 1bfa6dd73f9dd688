import type { MetricsSnapshot } from '@sluice/runtime'
import { MetricRegistry, mergeSnapshots } from '@sluice/runtime'
import type { MainThread, ThreadGroup } from '../thread-messages/message-bus.ts'
import type { ThreadReport } from './instrument.ts'
import type { ProcessReadings } from './metrics/process-metrics.ts'
import { watchProcess } from './metrics/process-metrics.ts'
import type { TopCallersSnapshot } from './top-callers.ts'
import { mergeTopCallers } from './top-callers.ts'

/** The report of the process: plain data. */
export interface ServiceReport {
  /** Counters never decrease, even when a thread ends. */
  readonly metrics: MetricsSnapshot
  readonly top: TopCallersSnapshot
}

/** The report of a thread with its identity. */
interface SignedReport extends ThreadReport {
  /** Number of the thread. */
  readonly index: number
  /** Unique name of the thread; its replacement has another. */
  readonly name: string
}

/** Messages about metrics and top callers. */
export interface ReportMessages {
  /** The report of each thread. */
  'reports.thread': () => SignedReport
  /** The report of the process, from the main thread. */
  'reports.service': () => ServiceReport
}

/** Shares the report of this thread. `name`: unique among all threads that the process ever had. */
export function shareReports(threads: ThreadGroup<ReportMessages>, name: string, report: () => ThreadReport): void {
  const { index } = threads
  threads.handle('reports.thread', () => ({ ...report(), index, name }))
}

/** Merges the reports of all threads. Call it once, in the main thread. */
export function collectReports(threads: MainThread<ReportMessages>, process: ProcessReadings): void {
  const aggregator = new MetricsAggregator(process)
  threads.handleInMain('reports.service', async () =>
    aggregator.merge((await threads.gather('reports.thread')).replies),
  )
}

/** The report of the process, from any thread. */
export function askReport(threads: Pick<ThreadGroup<ReportMessages>, 'callMain'>): Promise<ServiceReport> {
  return threads.callMain('reports.service')
}

/**
 * Merges the reports of several threads. A thread that does not reply counts with its last report. The counters of a
 * thread that was replaced are kept, because a scraper takes a counter that decreases for a restart.
 */
export class MetricsAggregator {
  readonly #registry = new MetricRegistry()
  readonly #latest = new Map<number, SignedReport>()
  #ended: MetricsSnapshot = { families: [] }

  constructor(process: ProcessReadings) {
    watchProcess(this.#registry, process)
  }

  /** The report of these threads and all that they replaced. */
  merge(reports: readonly SignedReport[]): ServiceReport {
    for (const report of reports) {
      const before = this.#latest.get(report.index)
      if (before !== undefined && before.name !== report.name) {
        this.#ended = mergeSnapshots([this.#ended, withoutGauges(before.metrics)])
      }
      this.#latest.set(report.index, report)
    }
    const latest = [...this.#latest.values()]
    return {
      metrics: mergeSnapshots([...latest.map(({ metrics }) => metrics), this.#registry.snapshot(), this.#ended]),
      top: mergeTopCallers(latest.map(({ top }) => top)),
    }
  }
}

/** Only counters: gauges of an ended thread are meaningless. */
function withoutGauges({ families }: MetricsSnapshot): MetricsSnapshot {
  return { families: families.map((family) => (family.type === 'gauge' ? { ...family, samples: [] } : family)) }
}
