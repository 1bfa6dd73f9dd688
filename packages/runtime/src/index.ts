export { type BackoffOptions, backoffDelayMs } from './backoff.ts'
export type { NowMs, Sleep } from './clock.ts'
export type { DeliveryAttempt } from './delivery/delivery-attempt.ts'
export {
  type AddOutcome,
  type DeliveryCounts,
  type DeliveryEvent,
  DeliveryQueue,
  type DeliveryQueueOptions,
} from './delivery/delivery-queue.ts'
export type {
  DeadLetter,
  DeliveryChanges,
  DeliveryRecord,
  DeliveryStore,
  PendingDelivery,
} from './delivery/delivery-store.ts'
export {
  isRuntimeError,
  RUNTIME_ERRORS,
  RuntimeAggregateError,
  RuntimeError,
  type RuntimeErrorCode,
  type RuntimeErrorDetails,
} from './errors.ts'
export { HashRing, type HashRingOptions, type HashRingServer } from './hash-ring.ts'
export { keyDigest } from './key-digest.ts'
export type { LineStream } from './log/line-writer.ts'
export type { LogFields } from './log/log-fields.ts'
export { type LogCounts, type LogEntry, type LogLevel, LogOutput, type LogOutputOptions } from './log/log-output.ts'
export { Logger } from './log/logger.ts'
export type { Counter, CounterSeries } from './metrics/counter.ts'
export { type MetricsPage, renderMetrics } from './metrics/exposition.ts'
export type { Gauge, GaugeSeries } from './metrics/gauge.ts'
export type { Histogram, HistogramSeries } from './metrics/histogram.ts'
export { mergeSnapshots } from './metrics/merge-snapshots.ts'
export type {
  ClosedLabel,
  LabelArguments,
  LabelDeclaration,
  LabelValues,
  MetricOptions,
} from './metrics/metric-definition.ts'
export { type GaugeOptions, type HistogramOptions, MetricRegistry, OVERFLOW_METRIC } from './metrics/metric-registry.ts'
export type {
  CounterFamily,
  GaugeFamily,
  GaugeMerge,
  HistogramFamily,
  HistogramSample,
  HistogramView,
  MetricFamily,
  MetricsSnapshot,
  NumberSample,
} from './metrics/metrics-snapshot.ts'
export { InFlight, type InFlightCounts, type InFlightOptions } from './overload/in-flight.ts'
export { LagGuard, type LagGuardOptions, type LoopDelay } from './overload/lag-guard.ts'
export { systemLoopDelay } from './overload/system-loop-delay.ts'
export type { Random } from './random.ts'
export { RetriesExhausted, type RetryAttempt, type RetryNotice, type RetryOptions, retry } from './retry.ts'
export { bucketQuantile } from './sketches/bucket-bounds.ts'
export { RecentTopK, type RecentTopKOptions, type RecentTopKSnapshot } from './sketches/recent-top-k.ts'
export { RollingHistogram, type RollingHistogramOptions } from './sketches/rolling-histogram.ts'
export { type RatioCounts, RollingRatio } from './sketches/rolling-ratio.ts'
export { SlidingCounter, type SlidingCounterOptions } from './sketches/sliding-counter.ts'
export { mergeTopK, TopK, type TopKEntry, type TopKOptions, type TopKSnapshot } from './sketches/top-k.ts'
export { SnowflakeGenerator, type SnowflakeOptions } from './snowflake.ts'
export { decodeSnowflake, encodeSnowflake, SNOWFLAKE_EPOCH_MS, type SnowflakeParts } from './snowflake-id.ts'
export { StartupGraph, type StartupPart } from './startup-graph.ts'
export { type Dependent, startupLevels } from './startup-order.ts'
export { systemNowMs, systemRandom, systemSleep, systemTurnEnd } from './system.ts'
