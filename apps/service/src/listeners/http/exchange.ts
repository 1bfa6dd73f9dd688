import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { OperationRequest, Principal } from '../../operations/handler.ts'
import type { Endpoint, RequestParameters } from './endpoint.ts'
import type { RequestHead } from './request-head.ts'
import type { Found, PathParameters } from './router.ts'

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
