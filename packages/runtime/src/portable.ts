// What runs without Node: this entry and all that it imports name no Node module, so that browsers and workers can load it.
export { type BackoffOptions, backoffDelayMs } from './backoff.ts'
export type { NowMs, Sleep } from './clock.ts'
export { isRuntimeError } from './errors.ts'
export type { Random } from './random.ts'
export { DEFAULT_MAX_RETRIES, RetriesExhausted, type RetryNotice, type RetryOptions, retry } from './retry.ts'
export { decodeSnowflake, type SnowflakeParts } from './snowflake-id.ts'
export { systemNowMs, systemRandom, systemSleep, systemTurnEnd } from './system.ts'
