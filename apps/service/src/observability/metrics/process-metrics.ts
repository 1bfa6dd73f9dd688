import type { CounterSeries, MetricRegistry } from '@sluice/runtime'
import type { WebhookCounts } from '../../alerts/open-alerts.ts'
import { METRIC } from './metric-names.ts'

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
