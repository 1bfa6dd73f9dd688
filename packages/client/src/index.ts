export { decodeSnowflake, type SnowflakeParts } from '@sluice/runtime'
export type {
  CallArguments,
  CallInput,
  CallOptions,
  ItemOf,
  PagedOperationId,
  StreamOperationId,
} from './call-input.ts'
export { type Client, type ClientOptions, createClient } from './client.ts'
export {
  CLIENT_ERRORS,
  ClientError,
  type ClientErrorCode,
  type ClientErrorDetails,
  isClientError,
} from './client-error.ts'
