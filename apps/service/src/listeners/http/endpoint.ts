import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FieldProblem } from '@sluice/contract'
import type { InFlight } from '@sluice/runtime'
import type { Answer, OperationHandler, OperationRequest, Principal } from '../../operations/handler.ts'
import type { BodyReader, RequestHead } from './request-body.ts'
import type { Found, PathParameters } from './router.ts'

/** How the body of a request is read. */
export interface BodyReading {
  readonly maxBytes: number
  /** Bounds what unfinished bodies hold; shared by endpoints. */
  readonly reader: BodyReader
  /** Problems of the parsed JSON. Default: none are looked for, because the handler validates. */
  readonly problemsOf?: ((value: unknown) => readonly FieldProblem[]) | undefined
}

/** The parameters of a request. */
export interface RequestParameters extends Pick<OperationRequest, 'params' | 'query'> {
  /** Whether there is a query: known without reading it. */
  readonly hasQuery: boolean
}

/** Everything that happens to the requests for one operation, in this order; what is undefined is left out. */
export interface Endpoint {
  /** `METHOD /path` of its operation: for logs. */
  readonly name: string
  /** Bounds how many are in flight. A request takes its slot when its body is complete: a slow client holds none. */
  readonly inFlightLimit: InFlight | undefined
  /** Who asks, or the answer to give whoever may not. */
  readonly admit: ((request: OperationRequest) => Principal | Answer | Promise<Principal | Answer>) | undefined
  /** The answer to parameters that are wrong; undefined when all are right. */
  readonly rejectParameters: ((request: RequestParameters) => Answer | undefined) | undefined
  readonly body: BodyReading | undefined
  readonly handle: OperationHandler
  /**
   * Whether requests that come in one turn of the event loop are handled together at its end: for handlers that answer at once,
   * and are asked tens of thousands of times in a second. Default: false.
   */
  readonly answersAtTurnEnd?: boolean
  /** Whether requests are answered whatever their Host header. Default: only those that the service answers to. */
  readonly takesAnyHost?: boolean
  /** Whether answers carry the id of the request; checks do not, because their decisions have ids of their own. */
  readonly hasRequestId: boolean
}

/**
 * One request and its answer, on their way. What handlers may ask for is made when it is asked for: a check needs neither the
 * query nor a signal, and there are tens of thousands of them in a second.
 */
export class Exchange implements OperationRequest, RequestParameters {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly head: RequestHead
  readonly endpoint: Endpoint
  readonly params: PathParameters
  body: unknown = undefined
  principal: Principal | undefined = undefined
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
export interface ExchangeParts {
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
 * Which requests are under way in which inFlightLimit. A request leaves when it is answered, or when its connection ends before: the
 * connection is listened to once, and not for each of its requests.
 */
export class InFlightRequests {
  readonly #begun = new WeakMap<Socket, Set<Exchange>>()

  /** Notes a request that has entered `inFlightLimit`. */
  enter(exchange: Exchange): void {
    const { socket } = exchange.request
    const begun = this.#begun.get(socket)
    if (begun !== undefined) {
      begun.add(exchange)
      return
    }
    const first = new Set([exchange])
    this.#begun.set(socket, first)
    socket.once('close', () => {
      for (const { endpoint } of first) endpoint.inFlightLimit?.leave()
      first.clear()
    })
  }

  /** Notes that a request was answered. One that has left already does not leave again. */
  leave(exchange: Exchange, inFlightLimit: InFlight): void {
    if (this.#begun.get(exchange.request.socket)?.delete(exchange) === true) inFlightLimit.leave()
  }
}
