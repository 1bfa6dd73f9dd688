import type { CounterSeries, DeliveryCounts, LogCounts, MetricRegistry } from '@sluice/runtime'
import { METRIC } from './metric-names.ts'

/** Webhook messages of a process, for its metrics. */
export interface WebhookCounts
  extends Pick<DeliveryCounts, 'pending' | 'dead' | 'delivered' | 'failed' | 'failedTries'> {
  /** Messages dropped because a queue was full. */
  readonly lost: number
}

/** Readings of the process. */
export interface ProcessReadings {
  /** Start time in milliseconds since 1970. */
  readonly startedAt: number
  /** CPU time of all threads, in microseconds. */
  readonly cpuMicros: () => number
  /** Undefined where it is unknown; then the metric has no sample. */
  readonly residentBytes: () => number | undefined
  /** Number of firing alerts. */
  readonly firingAlerts: () => number
  readonly webhookCounts: () => WebhookCounts
}

const OUTCOMES = ['delivered', 'failed', 'lost'] as const

const MS_PER_SECOND = 1000
const MICROS_PER_SECOND = 1_000_000

/** Metrics of the process. In one thread only, because they are the same for all. */
export function watchProcess(registry: MetricRegistry, readings: ProcessReadings): void {
  const cpu = registry.counter({ name: 'process_cpu_seconds_total', help: 'CPU time in seconds.' }).labels()
  const resident = registry.gauge({
    name: 'process_resident_memory_bytes',
    help: 'Resident memory in bytes.',
    merge: 'max',
  })
  const firing = registry.gauge({ name: METRIC.firingAlerts, help: 'Firing alerts.', merge: 'max' }).labels()
  registry
    .gauge({
      name: 'process_start_time_seconds',
      help: 'Start time of the process in seconds since 1970.',
      merge: 'max',
    })
    .labels()
    .set(readings.startedAt / MS_PER_SECOND)
  const updateWebhooks = webhookMetrics(registry, readings.webhookCounts)
  registry.beforeSnapshot(() => {
    raise(cpu, readings.cpuMicros() / MICROS_PER_SECOND)
    const residentBytes = readings.residentBytes()
    if (residentBytes !== undefined) resident.labels().set(residentBytes)
    firing.set(readings.firingAlerts())
    updateWebhooks()
  })
}

/** Declares the metrics of webhooks. The returned function updates them. */
function webhookMetrics(registry: MetricRegistry, read: () => WebhookCounts): () => void {
  const deliveries = registry.counter({
    name: 'sluice_webhook_deliveries_total',
    help: 'Webhook messages by outcome: delivered, failed (now a dead letter), lost (dropped from a full queue).',
    labels: [{ name: 'outcome', values: OUTCOMES }],
  })
  const failedAttempts = registry
    .counter({
      name: 'sluice_webhook_failed_attempts_total',
      help: 'Failed delivery attempts of webhook messages.',
    })
    .labels()
  const pending = registry
    .gauge({ name: 'sluice_webhook_pending', help: 'Pending webhook messages.', merge: 'max' })
    .labels()
  const deadLetters = registry
    .gauge({ name: 'sluice_webhook_dead_letters', help: 'Dead letters of webhooks.', merge: 'max' })
    .labels()
  return () => {
    const counts = read()
    for (const outcome of OUTCOMES) raise(deliveries.labels({ outcome }), counts[outcome])
    raise(failedAttempts, counts.failedTries)
    pending.set(counts.pending)
    deadLetters.set(counts.dead)
  }
}

/** Raises a counter to a total that is counted elsewhere. */
function raise(series: CounterSeries, total: number): void {
  series.inc(Math.max(0, total - series.value))
}

/** Readings of a thread. */
export interface ThreadReadings {
  /** Event loop delay in milliseconds; undefined if nothing was measured since the last read. */
  readonly loopDelayMs: () => number | undefined
  /** Used heap of this thread, in bytes. */
  readonly heapBytes: () => number
  readonly logCounts: () => LogCounts
}

const LOG_OUTCOMES = ['written', 'suppressed', 'dropped'] as const

/** Metrics of a thread. The returned function ends it. */
export function watchThread(registry: MetricRegistry, readings: ThreadReadings): () => void {
  const gauge = (name: string, help: string, merge: 'sum' | 'max') => registry.gauge({ name, help, merge }).labels()
  gauge('sluice_threads', 'Threads that answer requests.', 'sum').set(1)
  const delay = gauge('nodejs_eventloop_lag_seconds', 'How late the event loop is, where it is latest.', 'max')
  const heap = gauge('nodejs_heap_used_bytes', 'Heap in use, of all threads that answer requests.', 'sum')
  const lines = registry.counter({
    name: 'sluice_log_lines_total',
    help: 'Log lines by outcome.',
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
