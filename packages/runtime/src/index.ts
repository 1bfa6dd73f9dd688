export { type BackoffOptions, backoffDelayMs } from './backoff.ts'
export type { NowMs, Sleep } from './clock.ts'
export {
  isRuntimeError,
  RUNTIME_ERRORS,
  RuntimeAggregateError,
  RuntimeError,
  type RuntimeErrorCode,
  type RuntimeErrorDetails,
} from './errors.ts'
export { HashRing, type HashRingOptions, type HashRingServer } from './hash-ring.ts'
export type { Random } from './random.ts'
export { type RetryAttempt, type RetryNotice, type RetryOptions, retry } from './retry.ts'
export { SlidingCounter, type SlidingCounterOptions } from './sliding-counter.ts'
export { SnowflakeGenerator, type SnowflakeOptions } from './snowflake.ts'
export { decodeSnowflake, encodeSnowflake, SNOWFLAKE_EPOCH_MS, type SnowflakeParts } from './snowflake-id.ts'
export { StartupGraph, type StartupPart } from './startup-graph.ts'
export { type Dependent, startupLevels } from './startup-order.ts'
export { systemNowMs, systemRandom, systemSleep } from './system.ts'
