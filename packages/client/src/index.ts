export {
  decodeSnowflake,
  type NowMs,
  type Random,
  type RetryNotice,
  type Sleep,
  type SnowflakeParts,
} from '@sluice/runtime/portable'
export type {
  CallArguments,
  CallInput,
  CallOptions,
  CheckCallOptions,
  ItemOf,
  PagedOperationId,
  SingleCheckOptions,
  StreamOperationId,
} from './call-input.ts'
export type { Client } from './client.ts'
export {
  CLIENT_ERRORS,
  ClientError,
  type ClientErrorCode,
  type ClientErrorDetails,
  isClientError,
} from './client-error.ts'
export type { ClientOptions } from './client-options.ts'
export { createClient } from './create-client.ts'
export { decisionOf } from './decision-of.ts'
export type { ClientFailureMode } from './failure-answer.ts'
export type { FetchFunction } from './fetch-function.ts'
export { type LimitedFetchOptions, limitedFetch } from './limited-fetch.ts'
export type { OutgoingRequest } from './outgoing-request.ts'
export type { ClientRetryOptions } from './repeated-exchange.ts'
export { type FetchRetryNotice, type RepeatPolicy, type RetryFetchOptions, retryFetch } from './retry-fetch.ts'
export type { RetryLimits } from './retry-options.ts'
export { type ServiceTurnsOptions, serviceTurns } from './service-turns.ts'
export type { Turn, TurnLimiter, TurnOptions } from './turn-limiter.ts'
