export {
  decodeSnowflake,
  type NowMs,
  type Random,
  type RetryNotice,
  type Sleep,
  type SnowflakeParts,
} from '@sluice/runtime/portable'
export type { ClientFailureMode } from './check-answers.ts'
export { decisionOf } from './check-answers.ts'
export type {
  CallArguments,
  CallInput,
  CallOptions,
  CheckCallOptions,
  Client,
  ItemOf,
  PagedOperationId,
  SingleCheckOptions,
  StreamOperationId,
} from './client.ts'
export type { ClientOptions } from './client-options.ts'
export { createClient } from './create-client.ts'
export {
  CLIENT_ERRORS,
  ClientError,
  type ClientErrorCode,
  type ClientErrorDetails,
  isClientError,
} from './errors/client-error.ts'
export type { OutgoingRequest } from './fetch/fetch-call.ts'
export type { FetchLimiter, FetchLimiterOptions, FetchLimiterResult } from './fetch/limited-fetch.ts'
export { type LimitedFetchOptions, limitedFetch } from './fetch/limited-fetch.ts'
export { type FetchRetryNotice, type RepeatPolicy, type RetryFetchOptions, retryFetch } from './fetch/retry-fetch.ts'
export type { FetchFunction } from './http/send-request.ts'
export type { RetryLimits } from './retry/retry-options.ts'
export type { ClientRetryOptions } from './retry/send-with-retry.ts'
export { type ServiceLimiterOptions, serviceLimiter } from './service-limiter.ts'
