import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Precondition } from '@sluice/contract'
import { PROBLEMS } from '@sluice/contract'
import type { InFlight, Sleep } from '@sluice/runtime'
import type {
  Answer,
  AnyHandler,
  AnyRequest,
  FileAnswer,
  Principal,
  Reply,
  StreamAnswer,
} from '../../operations/handler.ts'
import { NO_SNIFF } from '../../operations/handler.ts'
import { invalidRequestAnswer, problemAnswer } from '../../operations/problems.ts'
import type { BodyReading, Endpoint, Parameters, UndecodedRequest } from './endpoints.ts'
import { RequestBatcher } from './request-batcher.ts'
import type { RequestHead } from './request-body.ts'
import { discardBody, parseJsonBody, readHead, rejectType, tooLarge } from './request-body.ts'
import type { RejectedRequest } from './request-observer.ts'
import type { AllowsHost, Found, PathParameters, Router } from './router.ts'
import { sendStream } from './stream-answer.ts'

/** Details of a failure, for the log. */
export interface FailureDetails {
  /** `METHOD /path` of the operation. */
  readonly operation: string
  /** The id that the client got. */
  readonly requestId: string
}

/** Options of {@link RequestServer}. */
export interface RequestServerOptions {
  readonly route: Router<Endpoint>
  /** Finds what is no operation, such as a page. Default: nothing. */
  readonly findPage?: ((request: IncomingMessage) => Found<Endpoint> | undefined) | undefined
  /** Which Host headers are answered. Default: all. */
  readonly allowsHost?: AllowsHost | undefined
  readonly sleep: Sleep
  /** Told of every exception of an endpoint; the client only learns that there was one. */
  readonly reportError: (error: unknown, details: FailureDetails) => void
  /** Told of every request that is answered without a handler. */
  readonly observeRejection?: (rejection: RejectedRequest) => void
  /** A name for a request that came without one. */
  readonly newRequestId: () => string
  /**
   * Runs a callback at the end of this turn of the event loop, for endpoints with `answersAtTurnEnd`. Default: no
   * batching.
   */
  readonly atTurnEnd?: (run: () => void) => void
}

const NO_HOST = problemAnswer('SLUICE_HTTP_MALFORMED', { detail: 'Received no Host header. Send one.' })
const SEVERAL_HOSTS = problemAnswer('SLUICE_HTTP_MALFORMED', {
  detail: 'Received more than one Host header. Send one.',
})
const UNKNOWN_HOST = problemAnswer('SLUICE_HTTP_UNKNOWN_HOST', {
  detail:
    'The Host header names neither this service nor a host of its setting --allowed-hosts. Use the address that ' +
    'the service listens on, or add the name to --allowed-hosts.',
})

/** Seconds after which a client that was rejected may try again. */
const RETRY_AFTER_SECONDS = 1

const OVERLOADED = problemAnswer('SLUICE_HTTP_OVERLOADED', {
  detail: `The service is overloaded. Nothing was counted; try again in ${RETRY_AFTER_SECONDS} second.`,
  headers: { 'Retry-After': String(RETRY_AFTER_SECONDS), 'Cache-Control': 'no-store' },
})

/** Of an answer to a request that the service failed at. */
const FAILED_STATUS = PROBLEMS.SLUICE_HTTP_INTERNAL.status

/** A request id from outside that may go into logs and headers. */
const REQUEST_ID = /^[\w.:-]{1,64}$/

/**
 * Answers requests by the endpoints that a router finds. The steps of a request that needs no waiting are made without
 * a promise.
 */
export class RequestServer {
  readonly #options: RequestServerOptions
  readonly #inFlight = new InFlightRequests()
  readonly #streams = new Set<{ readonly end: () => void }>()
  readonly #batcher: RequestBatcher<Exchange, Handled> | undefined
  #isLeaving = false

  constructor(options: RequestServerOptions) {
    this.#options = options
    const { atTurnEnd } = options
    if (atTurnEnd === undefined) return
    const decide = (exchange: Exchange): Handled => this.#ask(exchange)
    this.#batcher = new RequestBatcher({
      atTurnEnd,
      decide,
      send: (exchange, handled) => this.#sendHandled(exchange, handled),
    })
  }

  /** Answers a request. Can be passed on without its object. */
  readonly serve = (request: IncomingMessage, response: ServerResponse): void => {
    const head = readHead(request)
    const found = this.#find(request, head)
    if ('status' in found) {
      this.#rejectUnrouted(request, response, found)
      return
    }
    const { admit } = found.target
    const exchange = new Exchange(request, response, { head, found })
    if (admit === undefined) this.#takeParameters(exchange)
    else void this.#admit(exchange, admit)
  }

  #find(request: IncomingMessage, { host, hasSeveralHosts }: RequestHead): Found<Endpoint> | Answer {
    const { route, allowsHost } = this.#options
    if (hasSeveralHosts) return SEVERAL_HOSTS
    if (host === undefined && request.httpVersion === '1.1') return NO_HOST
    const routed = route(request.url ?? '', request.method ?? '')
    const found = 'status' in routed ? (this.#options.findPage?.(request) ?? routed) : routed
    if (allowsHost === undefined || host === undefined || 'status' in found) return found
    return found.target.takesAnyHost === true || allowsHost(host) ? found : UNKNOWN_HOST
  }

  leave(): void {
    this.#isLeaving = true
  }

  endStreams(): void {
    for (const { end } of this.#streams) end()
  }

  async #admit(exchange: Exchange, admit: NonNullable<Endpoint['admit']>): Promise<void> {
    try {
      const admitted = await admit(exchange)
      if (isAnswer(admitted)) {
        discardBody(exchange.request)
        this.#reject(exchange, admitted)
        return
      }
      exchange.principal = admitted
      const renewal = admitted.session?.renewal
      if (renewal !== undefined) exchange.response.setHeader('Set-Cookie', renewal)
    } catch (error) {
      discardBody(exchange.request)
      this.#observe(exchange.request, FAILED_STATUS, exchange.endpoint)
      this.#fail(exchange, error)
      return
    }
    if (!exchange.response.destroyed) this.#takeParameters(exchange)
  }

  #takeParameters(exchange: Exchange): void {
    const decoded = exchange.endpoint.decode(exchange)
    if (!decoded.ok) {
      discardBody(exchange.request)
      this.#reject(exchange, decoded.answer)
      return
    }
    exchange.parameters = decoded.parameters
    exchange.precondition = decoded.precondition
    const { body } = exchange.endpoint
    if (body !== undefined) this.#takeBody(exchange, body)
    else if (this.#enterInFlight(exchange) && this.#narrow(exchange)) this.#handle(exchange)
  }

  #takeBody(exchange: Exchange, { maxBytes, reader, decode }: BodyReading): void {
    const rejection = rejectType(exchange.head)
    if (rejection !== undefined) {
      discardBody(exchange.request)
      this.#reject(exchange, rejection)
      return
    }
    reader.read(exchange, maxBytes, (bytes) => {
      if (bytes === 'dropped') {
        // Who is slow and was in the way of others does not get to go on.
        exchange.response.shouldKeepAlive = false
        this.#reject(exchange, OVERLOADED)
      } else if (bytes === 'too-large') this.#reject(exchange, tooLarge(maxBytes))
      else if (this.#enterInFlight(exchange)) this.#takeJson(exchange, bytes, decode)
    })
  }

  #takeJson(exchange: Exchange, bytes: Buffer, decode: BodyReading['decode']): void {
    const json = parseJsonBody(bytes)
    if (!json.ok) {
      this.#reject(exchange, json.answer)
      return
    }
    exchange.body = json.value
    if (!this.#narrow(exchange)) return
    const decoded = decode(exchange.body)
    if (!decoded.ok) {
      this.#reject(exchange, invalidRequestAnswer(decoded))
      return
    }
    exchange.body = decoded.body
    if (this.#batcher !== undefined && exchange.endpoint.answersAtTurnEnd === true) this.#batcher.add(exchange)
    else this.#handle(exchange)
  }

  /** Narrows a request with the key of a tenant to that tenant, or rejects it. */
  #narrow(exchange: Exchange): boolean {
    const tenant = exchange.principal?.tenant
    const { narrow } = exchange.endpoint
    if (tenant === undefined || narrow === undefined) return true
    const narrowed = narrow(exchange, tenant)
    if ('status' in narrowed) {
      this.#reject(exchange, narrowed)
      return false
    }
    exchange.parameters = narrowed.parameters
    exchange.body = narrowed.body
    return true
  }

  /** Takes a slot for a request that is complete; answers it when there is none. */
  #enterInFlight(exchange: Exchange): boolean {
    const { inFlightLimit } = exchange.endpoint
    if (inFlightLimit === undefined) return true
    if (!inFlightLimit.tryEnter()) {
      this.#reject(exchange, OVERLOADED)
      return false
    }
    this.#inFlight.enter(exchange)
    return true
  }

  #handle(exchange: Exchange): void {
    this.#sendHandled(exchange, this.#ask(exchange))
  }

  #ask(exchange: Exchange): Handled {
    try {
      return exchange.endpoint.handle(exchange)
    } catch (error) {
      return { error }
    }
  }

  #sendHandled(exchange: Exchange, handled: Handled): void {
    try {
      if ('status' in handled) this.#send(exchange, handled)
      else if ('error' in handled) this.#fail(exchange, handled.error)
      else handled.then((later) => this.#send(exchange, later)).catch((error) => this.#fail(exchange, error))
    } catch (error) {
      // An answer that cannot be sent.
      this.#fail(exchange, error)
    }
  }

  #fail(exchange: Exchange, error: unknown): void {
    const { request, response, endpoint } = exchange
    const requestId = this.#requestId(request)
    this.#options.reportError(error, { operation: endpoint.name, requestId })
    if (response.headersSent) {
      // Half an answer must not look like a whole one.
      response.destroy()
      return
    }
    const detail =
      `The request may have been counted or not. The log of the service says more under "${requestId}"; try again ` +
      'later.'
    const headers = { 'X-Request-Id': requestId }
    this.#answer(exchange, problemAnswer('SLUICE_HTTP_INTERNAL', { detail, headers }))
  }

  #send(exchange: Exchange, answer: Reply): void {
    const { request, response, endpoint } = exchange
    if (endpoint.hasRequestId) response.setHeader('X-Request-Id', this.#requestId(request))
    if (!('stream' in answer)) this.#answer(exchange, answer)
    else if (request.method === 'HEAD') this.#answer(exchange, { ...answer, body: '' })
    else this.#stream(exchange, answer)
  }

  /** The connection closes after the stream: the stream may be cut when the server stops. */
  #stream(exchange: Exchange, answer: StreamAnswer): void {
    const { response } = exchange
    response.shouldKeepAlive = false
    const stream = { end: (): void => undefined }
    this.#streams.add(stream)
    const done = (): void => {
      this.#streams.delete(stream)
      this.#leaveInFlight(exchange)
    }
    stream.end = sendStream(response, answer, { sleep: this.#options.sleep, done })
  }

  #answer(exchange: Exchange, answer: Answer | FileAnswer): void {
    this.#write(exchange.response, answer)
    this.#leaveInFlight(exchange)
  }

  #leaveInFlight(exchange: Exchange): void {
    const { inFlightLimit } = exchange.endpoint
    if (inFlightLimit !== undefined) this.#inFlight.leave(exchange, inFlightLimit)
  }

  /** Answers a request that does not come to its handler. */
  #reject(exchange: Exchange, answer: Answer): void {
    this.#observe(exchange.request, answer.status, exchange.endpoint)
    this.#send(exchange, answer)
  }

  /** Answers a request that nothing is done for. */
  #rejectUnrouted(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
    this.#observe(request, answer.status, undefined)
    discardBody(request)
    this.#write(response, answer)
  }

  #observe({ socket }: IncomingMessage, status: number, endpoint: Endpoint | undefined): void {
    const { observeRejection } = this.#options
    observeRejection?.({ operation: endpoint?.name, status, remoteAddress: socket.remoteAddress ?? '' })
  }

  #write(response: ServerResponse, answer: Answer | FileAnswer): void {
    if (this.#isLeaving) response.shouldKeepAlive = false
    writeAnswer(response, answer)
  }

  #requestId(request: IncomingMessage): string {
    const given = request.headers['x-request-id']
    return typeof given === 'string' && REQUEST_ID.test(given) ? given : this.#options.newRequestId()
  }
}

/** What a handler gave, or what it threw. */
type Handled = ReturnType<AnyHandler> | { readonly error: unknown }

function isAnswer(admitted: Principal | Answer): admitted is Answer {
  return 'status' in admitted
}

/** Sends an answer that is whole. */
export function writeAnswer(response: ServerResponse, answer: Answer | FileAnswer): void {
  const { headers } = answer
  // Names and values in turn: Node need not go through the members of an object.
  const lines: string[] = []
  for (const name in headers) lines.push(name, headers[name]!)
  lines.push(NO_SNIFF_NAME, NO_SNIFF[NO_SNIFF_NAME])
  response.writeHead(answer.status, lines)
  response.end('body' in answer ? answer.body : answer.bytes)
}

const NO_SNIFF_NAME = 'X-Content-Type-Options'

const NO_PARAMETERS: Parameters = Object.freeze({})

/**
 * One request and its answer. Query and signal are created on first use: a check needs neither, and there are tens of
 * thousands of them per second.
 */
export class Exchange implements AnyRequest, UndecodedRequest {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly head: RequestHead
  readonly endpoint: Endpoint
  readonly params: PathParameters
  parameters: Parameters = NO_PARAMETERS
  precondition: Precondition | undefined = undefined
  body: unknown = undefined
  principal: Principal | undefined = undefined
  /** The requests in flight of its connection, once it is one of them. */
  begun: Exchange[] | undefined = undefined
  #query: URLSearchParams | undefined = undefined
  #signal: AbortSignal | undefined = undefined

  constructor(request: IncomingMessage, response: ServerResponse, { head, found }: ExchangeParts) {
    this.request = request
    this.response = response
    this.head = head
    this.endpoint = found.target
    this.params = found.params
  }

  get query(): URLSearchParams {
    this.#query ??= new URLSearchParams(queryOf(this.request.url ?? ''))
    return this.#query
  }

  get hasQuery(): boolean {
    return (this.request.url ?? '').includes('?')
  }

  get headers(): IncomingHttpHeaders {
    return this.request.headers
  }

  get remoteAddress(): string {
    return this.request.socket.remoteAddress ?? ''
  }

  get signal(): AbortSignal {
    this.#signal ??= signalOf(this.response)
    return this.#signal
  }
}

/** What is known of a request when an exchange begins. */
interface ExchangeParts {
  readonly head: RequestHead
  readonly found: Found<Endpoint>
}

function queryOf(url: string): string {
  const start = url.indexOf('?')
  if (start < 0) return ''
  const end = url.indexOf('#', start)
  return end < 0 ? url.slice(start + 1) : url.slice(start + 1, end)
}

function signalOf(response: ServerResponse): AbortSignal {
  const gone = new AbortController()
  if (response.destroyed) gone.abort()
  else {
    response.once('close', () => {
      if (!response.writableFinished) gone.abort()
    })
  }
  return gone.signal
}

/**
 * Which requests are in progress in which limit. A request leaves when it is answered, or when its connection ends
 * before: the connection is listened to once, and not for each of its requests.
 */
class InFlightRequests {
  // Arrays, because a `Set` keeps members that were removed: V8 replaces its table as they come and go, and an old
  // table refers to the next one. A connection has one request in flight, or a few that are pipelined.
  readonly #begun = new WeakMap<Socket, Exchange[]>()

  /** Notes a request that has entered `inFlightLimit`. */
  enter(exchange: Exchange): void {
    const { socket } = exchange.request
    const begun = this.#begun.get(socket)
    if (begun !== undefined) {
      begun.push(exchange)
      exchange.begun = begun
      return
    }
    const first = [exchange]
    this.#begun.set(socket, first)
    exchange.begun = first
    socket.once('close', () => {
      for (const { endpoint } of first) endpoint.inFlightLimit?.leave()
      first.length = 0
    })
  }

  /** Notes that a request was answered. One that has left already does not leave again. */
  leave(exchange: Exchange, inFlightLimit: InFlight): void {
    const { begun } = exchange
    if (begun === undefined) return
    const index = begun.lastIndexOf(exchange)
    if (index < 0) return
    if (index === begun.length - 1) begun.pop()
    else begun.splice(index, 1)
    inFlightLimit.leave()
  }
}
