export {
  type NowMs,
  type Random,
  type Sleep,
  systemNowMs,
  systemRandom,
  systemSleep,
  systemTurnEnd,
} from './clock-and-random.ts'
export {
  type DeadLetter,
  type DeliveryAttempt,
  type DeliveryCounts,
  type DeliveryEvent,
  DeliveryQueue,
  type DeliveryRecord,
  type DeliveryStore,
} from './delivery/delivery-queue.ts'
export { HashRing, type HashRingOptions, type HashRingServer } from './hash-ring.ts'
export { keyDigest } from './key-digest.ts'
export type { LineStream } from './log/line-writer.ts'
export type { LogFields } from './log/log-fields.ts'
export { type LogCounts, Logger, type LogLevel, LogOutput } from './log/logger.ts'
export { renderMetrics } from './metrics/exposition.ts'
export { mergeSnapshots } from './metrics/merge-snapshots.ts'
export type { Counter, CounterSeries } from './metrics/metric-counter.ts'
export type { GaugeSeries } from './metrics/metric-gauge.ts'
export type { HistogramSeries } from './metrics/metric-histogram.ts'
export { MetricRegistry } from './metrics/metric-registry.ts'
export type { MetricFamily, MetricsSnapshot } from './metrics/metrics-snapshot.ts'
export { InFlight } from './overload/in-flight.ts'
export { LagGuard, type LoopDelay } from './overload/lag-guard.ts'
export { systemLoopDelay } from './overload/system-loop-delay.ts'
export { replaceFile } from './replace-file.ts'
export {
  type BackoffOptions,
  backoffDelayMs,
  RetriesExhausted,
  type RetryNotice,
  type RetryOptions,
  retry,
} from './retry.ts'
export { isRuntimeError, RuntimeError, type RuntimeErrorCode } from './runtime-error.ts'
export { bucketQuantile } from './sketches/bucket-bounds.ts'
export { RollingHistogram } from './sketches/rolling-histogram.ts'
export { type RatioCounts, RollingRatio } from './sketches/rolling-ratio.ts'
export { SlidingCounter, type SlidingCounterOptions } from './sketches/sliding-counter.ts'
export { mergeTopK, RecentTopK, type TopKSnapshot } from './sketches/top-k.ts'
export { SnowflakeGenerator, type SnowflakeOptions } from './snowflake-generator.ts'
export { decodeSnowflake, SNOWFLAKE_EPOCH_MS, type SnowflakeParts } from './snowflake-id.ts'
export { StartupGraph, type StartupPart, startupLevels } from './startup-graph.ts'
