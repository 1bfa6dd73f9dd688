import type { LogCounts, MetricRegistry } from '@sluice/runtime'

/** What a thread can say about itself. */
export interface ThreadReadings {
  /** How late the event loop is, in milliseconds; undefined when nothing was measured since it was last asked. */
  readonly loopDelayMs: () => number | undefined
  /** Bytes of the heap of this thread that are in use. */
  readonly heapBytes: () => number
  /** What became of the lines of the log. */
  readonly logCounts: () => LogCounts
}

const MS_PER_SECOND = 1000

const OUTCOMES = ['written', 'suppressed', 'dropped'] as const

/** Shows how a thread stands, whenever metrics are read. The function returned ends it. */
export function watchThread(registry: MetricRegistry, readings: ThreadReadings): () => void {
  const gauge = (name: string, help: string, merge: 'sum' | 'max') => registry.gauge({ name, help, merge }).labels()
  gauge('sluice_threads', 'Threads that answer requests.', 'sum').set(1)
  const delay = gauge('nodejs_eventloop_lag_seconds', 'How late the event loop is, where it is latest.', 'max')
  const heap = gauge('nodejs_heap_used_bytes', 'Heap in use, of all threads that answer requests.', 'sum')
  const lines = registry.counter({
    name: 'sluice_log_lines_total',
    help: 'Lines of the log by what became of them.',
    labels: [{ name: 'outcome', values: OUTCOMES }],
  })
  return registry.beforeSnapshot(() => {
    delay.set((readings.loopDelayMs() ?? 0) / MS_PER_SECOND)
    heap.set(readings.heapBytes())
    const counts = readings.logCounts()
    for (const outcome of OUTCOMES) {
      const series = lines.labels({ outcome })
      series.inc(Math.max(0, counts[outcome] - series.value))
    }
  })
}
