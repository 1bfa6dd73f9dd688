// What runs without Node: this entry and all that it imports name no Node module, so that browsers and workers can load
// it.
export { type BackoffOptions, backoffDelayMs } from './backoff.ts'
export { DEFAULT_MAX_RETRIES, RetriesExhausted, type RetryNotice, type RetryOptions, retry } from './retry.ts'
export { isRuntimeError } from './runtime-error.ts'
export { decodeSnowflake, type SnowflakeParts } from './snowflake-id.ts'
export { type NowMs, type Random, type Sleep, systemNowMs, systemRandom, systemSleep, systemTurnEnd } from './system.ts'
