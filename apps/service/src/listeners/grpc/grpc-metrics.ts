import type { CounterSeries, HistogramSeries, MetricRegistry } from '@sluice/runtime'
import { NONE } from '../../observability/metrics/metric-names.ts'
import type { GrpcStatus } from './grpc-status.ts'
import { GRPC_STATUS } from './grpc-status.ts'

const DURATION_BOUNDS_SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.05, 0.1, 1]

const MS_PER_SECOND = 1000

/** Counts calls by method and status, and times them. */
export class GrpcMetrics {
  readonly #counts = new Map<string, Map<GrpcStatus, CounterSeries>>()
  readonly #durations = new Map<string, HistogramSeries>()
  readonly #countOf: (method: string, status: GrpcStatus) => CounterSeries

  /** `methods`: the names of all methods. */
  constructor(metrics: MetricRegistry, methods: readonly string[]) {
    const counter = metrics.counter({
      name: 'sluice_grpc_calls_total',
      help: 'Calls of the gRPC listener that have ended, by method and status.',
      labels: [
        { name: 'method', values: [...methods, NONE] },
        { name: 'status', values: Object.keys(GRPC_STATUS) },
      ],
    })
    const histogram = metrics.histogram({
      name: 'sluice_grpc_call_duration_seconds',
      help: 'How long gRPC calls took to answer, in seconds.',
      labels: [{ name: 'method', values: methods }],
      bounds: DURATION_BOUNDS_SECONDS,
    })
    this.#countOf = (method, status) => counter.labels({ method, status })
    for (const method of methods) {
      this.#durations.set(method, histogram.labels({ method }))
      this.#counts.set(method, new Map([['OK', this.#countOf(method, 'OK')]]))
    }
    this.#counts.set(NONE, new Map())
  }

  /** Counts a call that has ended. `method`: undefined if there is none of that name. */
  count(method: string | undefined, status: GrpcStatus): void {
    const byStatus = this.#counts.get(method ?? NONE)
    let series = byStatus?.get(status)
    if (series === undefined) {
      series = this.#countOf(method ?? NONE, status)
      byStatus?.set(status, series)
    }
    series.inc()
  }

  time(method: string, durationMs: number): void {
    this.#durations.get(method)?.observe(Math.max(0, durationMs) / MS_PER_SECOND)
  }
}
