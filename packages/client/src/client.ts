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
import { CallBatcher, CHECK_BATCHES, REPORT_BATCHES } from './call-batcher.ts'
import type { ClientFailureMode } from './check-answers.ts'
import { failureAnswer } from './check-answers.ts'
import type { ResolvedOptions } from './client-options.ts'
import { ClientError } from './errors/client-error.ts'
import { invalidOption } from './errors/client-option-check.ts'
import { Deadline } from './http/deadline.ts'
import type { ParameterValues, ServiceRequest, StreamTimeout } from './http/send-request.ts'
import { openStream } from './http/send-request.ts'
import { sendWithRetry } from './retry/send-with-retry.ts'

/**
 * Calls a service. Calls may run concurrently; connections are reused. A failed call rejects with a `ClientError`, an
 * aborted one with the reason of its signal. A failed call is retried within its timeout if the service certainly did
 * not process it, or if it is idempotent.
 */
export interface Client {
  /** Checks a call, and charges its tokens if it is allowed. A denial is an answer, not an error. */
  check(request: CheckRequest, options?: SingleCheckOptions): Promise<CheckAnswer>
  /** Up to 100 independent checks, decided in order; one answer each. */
  batch(requests: readonly CheckRequest[], options?: CheckCallOptions): Promise<BatchAnswer['answers']>
  /** What `check` would answer. Charges nothing. */
  peek(request: CheckRequest, options?: CheckCallOptions): Promise<CheckAnswer>
  /** Reserves tokens. The answer has a `reservationId` if it was allowed. */
  reserve(request: ReserveRequest, options?: CallOptions): Promise<ReservationAnswer | CheckAnswer>
  /** Settles a reservation with its actual cost. */
  settle(request: SettleRequest, options?: CallOptions): Promise<SettlementAnswer>
  /** Releases a reservation or a slot. */
  release(request: ReservationRequest, options?: CallOptions): Promise<SettlementAnswer>
  /** Acquires a slot. Waits for up to `maxWaitMs`, in addition to the timeout. */
  acquire(request: AcquireRequest, options?: CallOptions): Promise<ReservationAnswer | CheckAnswer>
  /** Renews a slot. */
  heartbeat(request: ReservationRequest, options?: CallOptions): Promise<HeartbeatAnswer>
  /**
   * Reports the outcome of an allowed call, for limits that shrink while too many calls fail. Resolves when it was
   * counted. Reports of the same turn of the event loop are sent together.
   */
  report(ended: CallReport, options?: CallOptions): Promise<void>
  /** Any operation, by its id: `call('putTier', { parameters: { name }, body, ifMatch: 13 })`. */
  call<Id extends OperationId>(id: Id, ...input: CallArguments<Id>): Promise<Calls[Id]['answer']>
  /** The pages of an operation, fetched while you iterate. Each iteration starts at the first page. */
  pages<Id extends PagedOperationId>(id: Id, ...input: CallArguments<Id>): AsyncIterable<Calls[Id]['answer']>
  /** The items of all pages of an operation. Each iteration starts at the first page. */
  items<Id extends PagedOperationId>(id: Id, ...input: CallArguments<Id>): AsyncIterable<ItemOf<Id>>
  /** The events of a streaming operation, until the service or the reader ends it. */
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

/** Idempotent operations in addition to read operations. */
const IDEMPOTENT_OPERATIONS: ReadonlySet<string> = new Set<OperationId>(['peek', 'heartbeat', 'release'])

/** A client that does not check its arguments; `createClient` returns one that does. */
export function uncheckedClient(options: ResolvedOptions): Client {
  const { service, timeoutMs, failureMode, batch: isBatching, turnEnd } = options
  const checks = new CallBatcher(CHECK_BATCHES, service, turnEnd)
  const reports = new CallBatcher(REPORT_BATCHES, service, turnEnd)

  /** Runs `work` within the timeout of a call. */
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
      (operation.method === 'GET' && operation.id !== 'forwardAuth') ||
      IDEMPOTENT_OPERATIONS.has(operation.id) ||
      takesNothing(operation, body),
  }
}

function takesNothing({ id }: Operation, body: unknown): boolean {
  if (id === 'check') return (body as Partial<CheckRequest> | undefined)?.tokens === 0
  if (id !== 'checkBatch' && id !== 'checkBatchAlias') return false
  const { requests } = body as { readonly requests: readonly CheckRequest[] }
  return requests.every(({ tokens }) => tokens === 0)
}

/** A body as JSON; throws if it has none. */
function jsonOf(id: string, body: unknown): string {
  let text: string | undefined
  try {
    text = JSON.stringify(body)
  } catch {
    // A cycle or a BigInt: reported below, like everything else without JSON.
  }
  if (text !== undefined) return text
  throw invalidOption({
    problem: `the body of "${id}" cannot be written as JSON`,
    expected: 'an object of strings, numbers and lists',
  })
}

function eventData(id: string, data: string): unknown {
  try {
    return JSON.parse(data)
  } catch (cause) {
    const detail = `An event of "${id}" is not JSON. Check the proxies in front of the service.`
    throw new ClientError('SLUICE_CLIENT_UNEXPECTED_ANSWER', { detail, cause })
  }
}

function endless(id: string): ClientError {
  const detail = `The pages of "${id}" form a loop. Check the proxies in front of the service.`
  return new ClientError('SLUICE_CLIENT_UNEXPECTED_ANSWER', { detail })
}

/** Options of a call. */
export interface CallOptions {
  /** Aborts the call: it rejects with the reason of the signal. */
  readonly signal?: AbortSignal | undefined
  /** Timeout of the call with all its retries, in milliseconds above 0. Default: that of the client. */
  readonly timeoutMs?: number | undefined
}

/** Options of a check. */
export interface CheckCallOptions extends CallOptions {
  /** What to return when the service is unavailable. Default: that of the client. */
  readonly failureMode?: ClientFailureMode | undefined
}

/** Options of a check that can be batched. */
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

/** Arguments of an operation. */
export type CallInput<C extends Call> = CallOptions &
  ParametersInput<C['parameters']> &
  BodyInput<C['body']> & {
    /** The expected revision, 0 for nothing yet, `*` for anything. Default: any. */
    readonly ifMatch?: number | '*' | undefined
  }

/** The arguments after the id of an operation: none if it takes none. */
export type CallArguments<Id extends OperationId> =
  object extends CallInput<Calls[Id]> ? [input?: CallInput<Calls[Id]>] : [input: CallInput<Calls[Id]>]

/** The paged operations. */
export type PagedOperationId = {
  [Id in OperationId]: Calls[Id]['answer'] extends { readonly items: readonly unknown[]; readonly next?: string }
    ? Id
    : never
}[OperationId]

/** The items of the pages of an operation. */
export type ItemOf<Id extends PagedOperationId> = Calls[Id]['answer']['items'][number]

/** The streaming operations. */
export type StreamOperationId = 'live'
