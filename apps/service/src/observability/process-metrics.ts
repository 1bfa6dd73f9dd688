import type { MetricRegistry } from '@sluice/runtime'
import { METRIC } from './metric-names.ts'

/** What the process as a whole can say about itself. */
export interface ProcessReadings {
  /** When it began; milliseconds since 1970. */
  readonly startedAt: number
  /** Microseconds of processor time that all threads have used. */
  readonly cpuMicros: () => number
  readonly residentBytes: () => number
  /** Alerts that hold. */
  readonly firingAlerts: () => number
}

const MS_PER_SECOND = 1000
const MICROS_PER_SECOND = 1_000_000

/** Shows how the process stands, whenever metrics are read: in one thread only, because it is the same for all. */
export function watchProcess(registry: MetricRegistry, readings: ProcessReadings): void {
  const cpu = registry.counter({ name: 'process_cpu_seconds_total', help: 'Processor time used, in seconds.' }).labels()
  const resident = registry
    .gauge({ name: 'process_resident_memory_bytes', help: 'Memory in use.', merge: 'max' })
    .labels()
  const firing = registry.gauge({ name: METRIC.firingAlerts, help: 'Alerts that hold.', merge: 'max' }).labels()
  registry
    .gauge({ name: 'process_start_time_seconds', help: 'When the process began, in seconds since 1970.', merge: 'max' })
    .labels()
    .set(readings.startedAt / MS_PER_SECOND)
  registry.beforeSnapshot(() => {
    cpu.inc(Math.max(0, readings.cpuMicros() / MICROS_PER_SECOND - cpu.value))
    resident.set(readings.residentBytes())
    firing.set(readings.firingAlerts())
  })
}
