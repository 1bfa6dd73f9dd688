import type { MetricsSnapshot } from '@sluice/runtime'
import { MetricRegistry, mergeSnapshots } from '@sluice/runtime'
import type { MainThread, ThreadGroup } from '../threads/message-bus.ts'
import type { ThreadReport } from './instrument.ts'
import type { ProcessReadings } from './metrics/process-metrics.ts'
import { watchProcess } from './metrics/process-metrics.ts'
import type { TopCallersSnapshot } from './top-callers.ts'
import { mergeTopCallers } from './top-callers.ts'

/** What all threads of this process know together: plain data. */
export interface ServiceReport {
  /** Counters never go down, also when a thread ends. */
  readonly metrics: MetricsSnapshot
  readonly top: TopCallersSnapshot
}

/** The report of a thread, and which it is. */
interface SignedReport extends ThreadReport {
  /** Where the thread stands among the others. */
  readonly index: number
  /** Names this thread alone, not another that comes in its place. */
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
 * Makes one report of those of several threads. A thread that does not answer counts by what it said last. One that has ended,
 * so that another stands in its place, is remembered by its counters: whoever reads a sum that went down takes it for a new
 * beginning, and all of it for something that just happened.
 */
export class MetricsAggregator {
  readonly #registry = new MetricRegistry()
  readonly #latest = new Map<number, SignedReport>()
  #ended: MetricsSnapshot = { families: [] }

  constructor(process: ProcessReadings) {
    watchProcess(this.#registry, process)
  }

  /** What these threads know, and all those before them. */
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

/** What a thread has counted; how it stands is of no interest once it has ended. */
function withoutGauges({ families }: MetricsSnapshot): MetricsSnapshot {
  return { families: families.map((family) => (family.type === 'gauge' ? { ...family, samples: [] } : family)) }
}
