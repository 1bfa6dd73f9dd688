import type {
  AcquireRequest,
  BatchAnswer,
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
import type { Sleep } from '@sluice/runtime'
import { systemSleep } from '@sluice/runtime'
import type { CallArguments, CallOptions, ItemOf, PagedOperationId, StreamOperationId } from './call-input.ts'
import { ClientError } from './client-error.ts'
import { exchange, openStream, type Request, type ServiceAddress } from './exchange.ts'
import type { ParameterValues } from './operation-url.ts'

const USUAL_TIMEOUT_MS = 5000
const LONGEST_TIMEOUT_MS = 86_400_000

/** Which service, and how it is asked. */
export interface ClientOptions {
  /** Where the service is: `http://` or `https://`, host, port; a path when it stands behind one. */
  readonly url: string
  /** An API key, sent with every call; none when left out, which the check API does not need unless it is told to ask. */
  readonly token?: string | undefined
  /** Milliseconds, above 0, to wait for an answer; 5000 when left out. Calls may say their own. */
  readonly timeoutMs?: number | undefined
  /** Waits; on timers of the process when left out. */
  readonly sleep?: Sleep | undefined
}

/**
 * Asks a service. Every call may be made while others are under way; connections are kept and used again. A call that went wrong
 * rejects with a `ClientError`, one that was ended with the reason of its signal. Nothing is tried a second time.
 */
export interface Client {
  /** Whether a call may go on; takes its tokens when it may. That it may not is an answer, too. */
  check(request: CheckRequest, options?: CallOptions): Promise<CheckAnswer>
  /** Up to 100 checks, each on its own, in their order; one answer each. */
  batch(requests: readonly CheckRequest[], options?: CallOptions): Promise<BatchAnswer['answers']>
  /** What `check` would answer; takes nothing. */
  peek(request: CheckRequest, options?: CallOptions): Promise<CheckAnswer>
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

/** A client for the service at `url`. Nothing is sent before it is asked. Throws when an option cannot be used. */
export function createClient(options: ClientOptions): Client {
  const { token, timeoutMs = USUAL_TIMEOUT_MS, sleep = systemSleep } = options
  if (token !== undefined && !/^[\x21-\x7e]{1,4096}$/.test(token)) {
    throw invalidOption('a token with spaces, line ends or other signs that no API key has', 'one such as slk_..._...')
  }
  const address: ServiceAddress = { base: baseOf(options.url), token, sleep }
  const requestOf = (operation: Operation, input: LooseInput): Request => ({
    operation,
    parameters: (input.parameters ?? {}) as ParameterValues,
    body: input.body,
    ifMatch: typeof input.ifMatch === 'number' ? etagOf(input.ifMatch) : input.ifMatch,
    timeoutMs: checkedTimeout(input.timeoutMs ?? timeoutMs),
    signal: input.signal,
  })
  checkedTimeout(timeoutMs)

  async function call<Id extends OperationId>(id: Id, ...[input]: CallArguments<Id>): Promise<Calls[Id]['answer']> {
    return (await exchange(address, requestOf(OPERATIONS[id], input ?? {}))) as Calls[Id]['answer']
  }

  async function* pages<Id extends PagedOperationId>(
    id: Id,
    ...[input]: CallArguments<Id>
  ): AsyncGenerator<Calls[Id]['answer'], void, void> {
    let after: string | undefined
    for (;;) {
      const parameters = { ...input?.parameters, ...(after === undefined ? {} : { after }) }
      const page = (await exchange(address, requestOf(OPERATIONS[id], { ...input, parameters }))) as Calls[Id]['answer']
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
    for await (const { data } of openStream(address, requestOf(OPERATIONS[id], input ?? {}))) {
      yield eventData(id, data) as Calls[Id]['answer']
    }
  }

  return {
    check: (body, more) => call('check', { ...more, body }),
    batch: async (requests, more) => (await call('checkBatch', { ...more, body: { requests } })).answers,
    peek: (body, more) => call('peek', { ...more, body }),
    reserve: (body, more) => call('reserve', { ...more, body }),
    settle: (body, more) => call('settle', { ...more, body }),
    release: (body, more) => call('release', { ...more, body }),
    acquire: (body, more) =>
      call('acquire', { ...more, body, timeoutMs: (more?.timeoutMs ?? timeoutMs) + (body.maxWaitMs ?? 0) }),
    heartbeat: (body, more) => call('heartbeat', { ...more, body }),
    call,
    pages: (id, ...input) => ({ [Symbol.asyncIterator]: () => pages(id, ...input) }),
    items: (id, ...input) => ({ [Symbol.asyncIterator]: () => items(id, ...input) }),
    stream,
  }
}

function baseOf(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  // What is wrong is not shown: it may hold a password.
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol)) {
    throw invalidOption('an address that cannot be read as one', 'http://host:port or https://host')
  }
  if (parsed.username !== '' || parsed.password !== '' || parsed.search !== '' || parsed.hash !== '') {
    throw invalidOption('an address with a user, a query or a fragment', 'scheme, host, port and path alone')
  }
  return `${parsed.origin}${parsed.pathname.replace(/\/+$/, '')}`
}

function checkedTimeout(timeoutMs: number): number {
  if (timeoutMs > 0 && timeoutMs <= LONGEST_TIMEOUT_MS) return timeoutMs
  throw invalidOption(`timeoutMs ${timeoutMs}`, `a number above 0, at most ${LONGEST_TIMEOUT_MS}`)
}

function invalidOption(received: string, expected: string): ClientError {
  return new ClientError('SLUICE_CLIENT_INVALID_OPTION', { detail: `Received ${received}; expected ${expected}.` })
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
