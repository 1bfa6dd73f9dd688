import type {
  AcquireRequest,
  BatchAnswer,
  Call,
  CallReport,
  Calls,
  CheckAnswer,
  CheckRequest,
  HeartbeatAnswer,
  Operation,
  OperationId,
  ReservationAnswer,
  ReservationRequest,
  ReserveRequest,
  SettlementAnswer,
  SettleRequest,
} from '@sluice/contract'
import { etagOf, OPERATIONS } from '@sluice/contract'
import type { ClientFailureMode } from './check-answers.ts'
import { failureAnswer } from './check-answers.ts'
import type { ResolvedOptions } from './client-options.ts'
import { ClientError } from './errors/client-error.ts'
import { invalidOption } from './errors/client-option-check.ts'
import { Deadline } from './http/deadline.ts'
import type { ParameterValues, ServiceRequest, StreamTimeout } from './http/send-request.ts'
import { openStream } from './http/send-request.ts'
import { CHECK_BATCHES, REPORT_BATCHES, RequestBatcher } from './request-batcher.ts'
import { sendWithRetry } from './retry/send-with-retry.ts'

/**
 * Asks a service. Every call may be made while others are under way; connections are kept and used again. A call that went wrong
 * rejects with a `ClientError`, one that was ended with the reason of its signal. A call that failed is made again, within its
 * time, where it was not dealt with for sure, or where it changes nothing; any other is not.
 */
export interface Client {
  /** Whether a call may go on; takes its tokens when it may. That it may not is an answer, too. */
  check(request: CheckRequest, options?: SingleCheckOptions): Promise<CheckAnswer>
  /** Up to 100 checks, each on its own, in their order; one answer each. */
  batch(requests: readonly CheckRequest[], options?: CheckCallOptions): Promise<BatchAnswer['answers']>
  /** What `check` would answer; takes nothing. */
  peek(request: CheckRequest, options?: CheckCallOptions): Promise<CheckAnswer>
  /** Takes tokens in advance. The answer has a `reservationId` when it was allowed. */
  reserve(request: ReserveRequest, options?: CallOptions): Promise<ReservationAnswer | CheckAnswer>
  /** Says what a reservation really cost. */
  settle(request: SettleRequest, options?: CallOptions): Promise<SettlementAnswer>
  /** Gives a reservation or a slot back. */
  release(request: ReservationRequest, options?: CallOptions): Promise<SettlementAnswer>
  /** Takes a slot, and waits for one for up to `maxWaitMs`, which comes on top of the timeout. */
  acquire(request: AcquireRequest, options?: CallOptions): Promise<ReservationAnswer | CheckAnswer>
  /** Keeps a slot. */
  heartbeat(request: ReservationRequest, options?: CallOptions): Promise<HeartbeatAnswer>
  /**
   * Tells how a call ended that was let through, for limits that are cut while too many fail. Resolves when it was counted. The
   * reports of one turn of the event loop go together.
   */
  report(ended: CallReport, options?: CallOptions): Promise<void>
  /** Any operation, by its id: `call('putTier', { parameters: { name }, body, ifMatch: 13 })`. */
  call<Id extends OperationId>(id: Id, ...input: CallArguments<Id>): Promise<Calls[Id]['answer']>
  /** The pages of an operation, asked for as they are read. Starts anew each time it is iterated. */
  pages<Id extends PagedOperationId>(id: Id, ...input: CallArguments<Id>): AsyncIterable<Calls[Id]['answer']>
  /** The items of all pages of an operation. Starts anew each time it is iterated. */
  items<Id extends PagedOperationId>(id: Id, ...input: CallArguments<Id>): AsyncIterable<ItemOf<Id>>
  /** The events of an operation that goes on, until the service ends it or the reader does. */
  stream<Id extends StreamOperationId>(
    id: Id,
    ...input: CallArguments<Id>
  ): AsyncGenerator<Calls[Id]['answer'], void, void>
}

interface LooseInput extends CallOptions {
  readonly parameters?: object | undefined
  readonly body?: unknown
  readonly ifMatch?: number | '*' | undefined
}

/** Operations that change nothing, or nothing more, when they are dealt with a second time; besides all that only read. */
const IDEMPOTENT_OPERATIONS: ReadonlySet<string> = new Set<OperationId>(['peek', 'heartbeat', 'release'])

/** A client that takes what it is given as it is; `createClient` looks at it first. */
export function uncheckedClient(options: ResolvedOptions): Client {
  const { service, timeoutMs, failureMode, batch: isBatching, turnEnd } = options
  const checks = new RequestBatcher(CHECK_BATCHES, service, turnEnd)
  const reports = new RequestBatcher(REPORT_BATCHES, service, turnEnd)

  /** Does something within the time of a call. */
  async function within<T>({ signal, ...more }: CallOptions, work: (deadline: Deadline) => Promise<T>): Promise<T> {
    const deadline = new Deadline({ ...service, signal })
    deadline.renew(more.timeoutMs ?? timeoutMs, `from ${service.base}`)
    try {
      return await work(deadline)
    } finally {
      deadline.end()
    }
  }

  async function send(operation: Operation, input: LooseInput): Promise<unknown> {
    const request = requestOf(operation, input)
    return await within(input, (deadline) => sendWithRetry(service, request, deadline))
  }

  async function call<Id extends OperationId>(id: Id, ...[input]: CallArguments<Id>): Promise<Calls[Id]['answer']> {
    return (await send(OPERATIONS[id], input ?? {})) as Calls[Id]['answer']
  }

  async function check(body: CheckRequest, more: SingleCheckOptions = {}): Promise<CheckAnswer> {
    const mode = more.failureMode ?? failureMode
    const takes = body?.tokens !== 0
    try {
      if (!(more.batch ?? isBatching)) return await call('check', { ...more, body })
      const text = jsonOf('check', body)
      const lined = { body: text, isIdempotent: !takes }
      return (await within(more, (budget) => checks.ask({ ...lined, budget }))) as CheckAnswer
    } catch (error) {
      return failureAnswer(error, { mode, takes })
    }
  }

  async function peek(body: CheckRequest, more: CheckCallOptions = {}): Promise<CheckAnswer> {
    const mode = more.failureMode ?? failureMode
    try {
      return await call('peek', { ...more, body })
    } catch (error) {
      return failureAnswer(error, { mode, takes: false })
    }
  }

  async function batch(
    requests: readonly CheckRequest[],
    more: CheckCallOptions = {},
  ): Promise<readonly CheckAnswer[]> {
    const mode = more.failureMode ?? failureMode
    try {
      return (await call('checkBatch', { ...more, body: { requests } })).answers
    } catch (error) {
      return requests.map(({ tokens }) => failureAnswer(error, { mode, takes: tokens !== 0 }))
    }
  }

  async function report(ended: CallReport, more: CallOptions = {}): Promise<void> {
    if (isBatching) {
      const body = jsonOf('report', ended)
      await within(more, (budget) => reports.ask({ body, isIdempotent: false, budget }))
    } else await call('report', { ...more, body: { reports: [ended] } })
  }

  async function* pages<Id extends PagedOperationId>(
    id: Id,
    ...[input]: CallArguments<Id>
  ): AsyncGenerator<Calls[Id]['answer'], void, void> {
    let after: string | undefined
    for (;;) {
      const parameters = { ...input?.parameters, ...(after === undefined ? {} : { after }) }
      const page = (await send(OPERATIONS[id], { ...input, parameters })) as Calls[Id]['answer']
      yield page
      if (page.next === undefined) return
      if (page.next === after) throw endless(id)
      after = page.next
    }
  }

  async function* items<Id extends PagedOperationId>(
    id: Id,
    ...input: CallArguments<Id>
  ): AsyncGenerator<ItemOf<Id>, void, void> {
    for await (const page of pages(id, ...input)) yield* page.items as readonly ItemOf<Id>[]
  }

  async function* stream<Id extends StreamOperationId>(
    id: Id,
    ...[input]: CallArguments<Id>
  ): AsyncGenerator<Calls[Id]['answer'], void, void> {
    const patience: StreamTimeout = { timeoutMs: input?.timeoutMs ?? timeoutMs, signal: input?.signal }
    for await (const { data } of openStream(service, requestOf(OPERATIONS[id], input ?? {}), patience)) {
      yield eventData(id, data) as Calls[Id]['answer']
    }
  }

  return {
    check,
    batch,
    peek,
    reserve: (body, more) => call('reserve', { ...more, body }),
    settle: (body, more) => call('settle', { ...more, body }),
    release: (body, more) => call('release', { ...more, body }),
    acquire: (body, more) =>
      call('acquire', { ...more, body, timeoutMs: (more?.timeoutMs ?? timeoutMs) + (body.maxWaitMs ?? 0) }),
    heartbeat: (body, more) => call('heartbeat', { ...more, body }),
    report,
    call,
    pages: (id, ...input) => ({ [Symbol.asyncIterator]: () => pages(id, ...input) }),
    items: (id, ...input) => ({ [Symbol.asyncIterator]: () => items(id, ...input) }),
    stream,
  }
}

function requestOf(operation: Operation, input: LooseInput): ServiceRequest {
  const { body, ifMatch, parameters } = input
  return {
    operation,
    parameters: (parameters ?? {}) as ParameterValues,
    body: body === undefined ? undefined : jsonOf(operation.id, body),
    ifMatch: typeof ifMatch === 'number' ? etagOf(ifMatch) : ifMatch,
    isIdempotent:
      operation.method === 'GET' || IDEMPOTENT_OPERATIONS.has(operation.id) || takesNothing(operation, body),
  }
}

function takesNothing({ id }: Operation, body: unknown): boolean {
  if (id === 'check') return (body as Partial<CheckRequest> | undefined)?.tokens === 0
  if (id !== 'checkBatch' && id !== 'checkBatchAlias') return false
  const { requests } = body as { readonly requests: readonly CheckRequest[] }
  return requests.every(({ tokens }) => tokens === 0)
}

/** A body as JSON; throws when there is no JSON for it. */
function jsonOf(id: string, body: unknown): string {
  let text: string | undefined
  try {
    text = JSON.stringify(body)
  } catch {
    // A circle, or a number without end: told below, with what else has no JSON.
  }
  if (text !== undefined) return text
  throw invalidOption({
    problem: `the body of "${id}" cannot be written as JSON`,
    expected: 'an object of texts, numbers and lists',
  })
}

function eventData(id: string, data: string): unknown {
  try {
    return JSON.parse(data)
  } catch (cause) {
    const detail = `An event of "${id}" is not JSON. Look what stands before the service.`
    throw new ClientError('SLUICE_CLIENT_UNEXPECTED_ANSWER', { detail, cause })
  }
}

function endless(id: string): ClientError {
  const detail = `The pages of "${id}" come round: one names itself as the next. Look what stands before the service.`
  return new ClientError('SLUICE_CLIENT_UNEXPECTED_ANSWER', { detail })
}

/** How a call is made. */
export interface CallOptions {
  /** Ends the call: it rejects with the reason of the signal. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds, above 0, that the call may take with all its retries. Default: that of the client. */
  readonly timeoutMs?: number | undefined
}

/** How a check is made. */
export interface CheckCallOptions extends CallOptions {
  /** What to return when the service is unavailable. Default: that of the client. */
  readonly failureMode?: ClientFailureMode | undefined
}

/** How a check is made that may go together with others. */
export interface SingleCheckOptions extends CheckCallOptions {
  /** Whether to batch it with other checks of the same turn of the event loop. Default: that of the client. */
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
    /** The revision that must still be there, 0 for nothing yet, `*` for anything. Default: any. */
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
