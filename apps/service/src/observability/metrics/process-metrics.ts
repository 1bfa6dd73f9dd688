import type { CounterSeries, DeliveryCounts, LogCounts, MetricRegistry } from '@sluice/runtime'
import { METRIC } from './metric-names.ts'

/** Webhook messages of a process, for its metrics. */
export interface WebhookCounts
  extends Pick<DeliveryCounts, 'pending' | 'dead' | 'delivered' | 'failed' | 'failedTries'> {
  /** Messages that were dropped for lack of room: not delivered, and no dead letter either. */
  readonly lost: number
}

/** What the process as a whole can say about itself. */
export interface ProcessReadings {
  /** When it began; milliseconds since 1970. */
  readonly startedAt: number
  /** Microseconds of processor time that all threads have used. */
  readonly cpuMicros: () => number
  readonly residentBytes: () => number
  /** Alerts that fire. */
  readonly firingAlerts: () => number
  readonly webhookCounts: () => WebhookCounts
}

const OUTCOMES = ['delivered', 'failed', 'lost'] as const

const MS_PER_SECOND = 1000
const MICROS_PER_SECOND = 1_000_000

/** Shows how the process stands, whenever metrics are read: in one thread only, because it is the same for all. */
export function watchProcess(registry: MetricRegistry, readings: ProcessReadings): void {
  const cpu = registry.counter({ name: 'process_cpu_seconds_total', help: 'Processor time used, in seconds.' }).labels()
  const resident = registry
    .gauge({ name: 'process_resident_memory_bytes', help: 'Memory in use.', merge: 'max' })
    .labels()
  const firing = registry.gauge({ name: METRIC.firingAlerts, help: 'Alerts that fire.', merge: 'max' }).labels()
  registry
    .gauge({ name: 'process_start_time_seconds', help: 'When the process began, in seconds since 1970.', merge: 'max' })
    .labels()
    .set(readings.startedAt / MS_PER_SECOND)
  const updateWebhooks = webhookMetrics(registry, readings.webhookCounts)
  registry.beforeSnapshot(() => {
    raise(cpu, readings.cpuMicros() / MICROS_PER_SECOND)
    resident.set(readings.residentBytes())
    firing.set(readings.firingAlerts())
    updateWebhooks()
  })
}

/** Declares the metrics of webhook messages. The function returned brings them up to date. */
function webhookMetrics(registry: MetricRegistry, read: () => WebhookCounts): () => void {
  const deliveries = registry.counter({
    name: 'sluice_webhook_deliveries_total',
    help: 'Webhook messages by outcome: delivered, failed (given up, now a dead letter), lost (dropped for lack of room).',
    labels: [{ name: 'outcome', values: OUTCOMES }],
  })
  const failedAttempts = registry
    .counter({
      name: 'sluice_webhook_failed_attempts_total',
      help: 'Attempts to deliver a webhook message that failed.',
    })
    .labels()
  const pending = registry
    .gauge({ name: 'sluice_webhook_pending', help: 'Webhook messages that are not delivered yet.', merge: 'max' })
    .labels()
  const deadLetters = registry
    .gauge({ name: 'sluice_webhook_dead_letters', help: 'Webhook messages that were given up.', merge: 'max' })
    .labels()
  return () => {
    const counts = read()
    for (const outcome of OUTCOMES) raise(deliveries.labels({ outcome }), counts[outcome])
    raise(failedAttempts, counts.failedTries)
    pending.set(counts.pending)
    deadLetters.set(counts.dead)
  }
}

/** Brings a counter up to a total that is counted elsewhere. */
function raise(series: CounterSeries, total: number): void {
  series.inc(Math.max(0, total - series.value))
}

/** What a thread can say about itself. */
export interface ThreadReadings {
  /** How late the event loop is, in milliseconds; undefined when nothing was measured since it was last asked. */
  readonly loopDelayMs: () => number | undefined
  /** Bytes of the heap of this thread that are in use. */
  readonly heapBytes: () => number
  /** What became of the lines of the log. */
  readonly logCounts: () => LogCounts
}

const LOG_OUTCOMES = ['written', 'suppressed', 'dropped'] as const

/** Shows how a thread stands, whenever metrics are read. The function returned ends it. */
export function watchThread(registry: MetricRegistry, readings: ThreadReadings): () => void {
  const gauge = (name: string, help: string, merge: 'sum' | 'max') => registry.gauge({ name, help, merge }).labels()
  gauge('sluice_threads', 'Threads that answer requests.', 'sum').set(1)
  const delay = gauge('nodejs_eventloop_lag_seconds', 'How late the event loop is, where it is latest.', 'max')
  const heap = gauge('nodejs_heap_used_bytes', 'Heap in use, of all threads that answer requests.', 'sum')
  const lines = registry.counter({
    name: 'sluice_log_lines_total',
    help: 'Lines of the log by what became of them.',
    labels: [{ name: 'outcome', values: LOG_OUTCOMES }],
  })
  return registry.beforeSnapshot(() => {
    delay.set((readings.loopDelayMs() ?? 0) / MS_PER_SECOND)
    heap.set(readings.heapBytes())
    const counts = readings.logCounts()
    for (const outcome of LOG_OUTCOMES) {
      const series = lines.labels({ outcome })
      series.inc(Math.max(0, counts[outcome] - series.value))
    }
  })
}
