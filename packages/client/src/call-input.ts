import type { Call, Calls, OperationId } from '@sluice/contract'
import type { ClientFailureMode } from './failure-answer.ts'

/** How a call is made. */
export interface CallOptions {
  /** Ends the call: it rejects with the reason of the signal. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds, above 0, that the call may take with all its tries; those of the client when left out. */
  readonly timeoutMs?: number | undefined
}

/** How a check is made. */
export interface CheckCallOptions extends CallOptions {
  /** What to give when the service cannot be asked; that of the client when left out. */
  readonly failureMode?: ClientFailureMode | undefined
}

/** How a check is made that may go together with others. */
export interface SingleCheckOptions extends CheckCallOptions {
  /** Whether it goes together with the other checks of this turn; as the client says when left out. */
  readonly batch?: boolean | undefined
}

type ParametersInput<P> = keyof P extends never
  ? { readonly parameters?: undefined }
  : object extends P
    ? { readonly parameters?: P }
    : { readonly parameters: P }

type BodyInput<B> = undefined extends B ? { readonly body?: undefined } : { readonly body: B }

/** What a call of one operation takes. */
export type CallInput<C extends Call> = CallOptions &
  ParametersInput<C['parameters']> &
  BodyInput<C['body']> & {
    /** The revision that must still be there, 0 for nothing yet, `*` for anything; not looked at when left out. */
    readonly ifMatch?: number | '*' | undefined
  }

/** The arguments after the id of an operation: none are needed where it takes nothing. */
export type CallArguments<Id extends OperationId> =
  object extends CallInput<Calls[Id]> ? [input?: CallInput<Calls[Id]>] : [input: CallInput<Calls[Id]>]

/** The operations that answer page by page. */
export type PagedOperationId = {
  [Id in OperationId]: Calls[Id]['answer'] extends { readonly items: readonly unknown[]; readonly next?: string }
    ? Id
    : never
}[OperationId]

/** What stands on the pages of an operation. */
export type ItemOf<Id extends PagedOperationId> = Calls[Id]['answer']['items'][number]

/** The operations whose answer is a stream. */
export type StreamOperationId = 'live'
