// What runs without Node: this entry and all that it imports name no Node module, so that browsers and workers can load
// it. The part that users know is published as `sluice/runtime`.

export {
  type NowMs,
  type Random,
  type Sleep,
  systemNowMs,
  systemRandom,
  systemSleep,
  systemTurnEnd,
} from './clock-and-random.ts'
export { HashRing, type HashRingOptions, type HashRingServer } from './hash-ring.ts'
export {
  type BackoffOptions,
  backoffDelayMs,
  DEFAULT_MAX_RETRIES,
  RetriesExhausted,
  type RetryNotice,
  type RetryOptions,
  retry,
} from './retry.ts'
export { isRuntimeError, RuntimeError, type RuntimeErrorCode } from './runtime-error.ts'
export { SlidingCounter, type SlidingCounterOptions } from './sketches/sliding-counter.ts'
export { SnowflakeGenerator, type SnowflakeOptions } from './snowflake-generator.ts'
export { decodeSnowflake, type SnowflakeParts } from './snowflake-id.ts'
export { StartupGraph, type StartupPart, startupLevels } from './startup-graph.ts'
