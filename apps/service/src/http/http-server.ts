import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import type { Sleep } from '@sluice/runtime'
import type { Answer } from './answer.ts'
import { answerClientError } from './client-error.ts'
import { readJsonBody } from './json-body.ts'
import type { ListenAddress } from './listen-error.ts'
import { listenError } from './listen-error.ts'
import { problemAnswer } from './problem-answer.ts'
import { discardBody } from './request-body.ts'
import type { Endpoint, Router } from './router.ts'

/** How long a client may take; each in milliseconds. */
export interface HttpTimeouts {
  /** From the beginning of a request to the end of its headers. */
  readonly headersMs: number
  /** From the beginning of a request to the end of its body. */
  readonly requestMs: number
  /** Between two requests on one connection. */
  readonly idleMs: number
  /** How often the two for requests are looked after: a request may take so much longer. */
  readonly checkEveryMs: number
}

/** Options of {@link HttpServer}. */
export interface HttpServerOptions extends ListenAddress {
  readonly route: Router
  /** Told of every exception of an endpoint; the client only learns that there was one. */
  readonly reportError: (error: unknown) => void
  readonly timeouts: HttpTimeouts
  readonly sleep: Sleep
  /** How long a stop waits for requests that have begun, in milliseconds; then their connections are cut. */
  readonly graceMs: number
}

const FAILED = problemAnswer('SLUICE_HTTP_INTERNAL', {
  detail: 'The request may have been counted or not. The log of the service says more; try again later.',
})
const NO_HOST = problemAnswer('SLUICE_HTTP_MALFORMED', { detail: 'Received no Host header. Send one.' })
const UNKNOWN_EXPECTATION = problemAnswer('SLUICE_HTTP_EXPECTATION_FAILED', {
  detail: 'The only expectation known is "100-continue". Leave the Expect header out.',
})

/**
 * An HTTP/1.1 server: listens, lets endpoints answer, and stops without breaking off what it has begun. It runs once:
 * new -> listening -> stopping -> stopped.
 */
export class HttpServer {
  readonly #options: HttpServerOptions
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #stopping = false

  constructor(options: HttpServerOptions) {
    this.#options = options
    const { headersMs, requestMs, idleMs, checkEveryMs } = options.timeouts
    this.#server = createServer({
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      keepAliveTimeout: idleMs,
      connectionsCheckingInterval: checkEveryMs,
      // A missing Host header is refused here and not by Node, so that it is a problem document like all others.
      requireHostHeader: false,
    })
    this.#server.on('request', (request, response) => this.#serve(request, response))
    this.#server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
      discardBody(request)
      this.#send(response, UNKNOWN_EXPECTATION)
    })
    this.#server.on('clientError', answerClientError)
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
  }

  /** The port it listens on; with port 0 in the options, the one that was found. Undefined unless it is listening. */
  get port(): number | undefined {
    const address = this.#server.address()
    return address === null || typeof address === 'string' ? undefined : address.port
  }

  /** Resolves when requests are accepted; rejects with a `SLUICE_SERVICE_*` error when they cannot be. */
  start(): Promise<void> {
    const { host, port } = this.#options
    return new Promise((resolve, reject) => {
      const onError = (error: NodeJS.ErrnoException): void => reject(listenError(error, { host, port }))
      this.#server.once('error', onError)
      this.#server.listen({ host, port }, () => {
        this.#server.off('error', onError)
        // Such as no file descriptors left for another connection: the server goes on with those it has.
        this.#server.on('error', this.#options.reportError)
        resolve()
      })
    })
  }

  /**
   * Accepts nothing more, answers what has begun, closes what is idle; resolves when no connection is left. Connections
   * that are not done after `graceMs` are cut.
   */
  async stop(): Promise<void> {
    this.#stopping = true
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    // Node closes connections between requests; one that never began a request it would wait for.
    for (const socket of this.#sockets) if (socket.bytesRead === 0) socket.destroy()
    const done = new AbortController()
    const graceOver = this.#options.sleep(this.#options.graceMs, done.signal).then(
      () => this.#server.closeAllConnections(),
      () => undefined,
    )
    await closed
    done.abort()
    await graceOver
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const found = isHostMissing(request) ? NO_HOST : this.#options.route(request)
    if ('status' in found) {
      discardBody(request)
      this.#send(response, found)
    } else if (found.body === 'none') {
      this.#answer(found, undefined, response)
    } else {
      readJsonBody(request, (body) =>
        body.ok ? this.#answer(found, body.value, response) : this.#send(response, body.answer),
      )
    }
  }

  #answer(endpoint: Endpoint, body: unknown, response: ServerResponse): void {
    try {
      const answer = endpoint.handle(body)
      if ('status' in answer) this.#send(response, answer)
      else answer.then((later) => this.#send(response, later)).catch((error) => this.#fail(response, error))
    } catch (error) {
      this.#fail(response, error)
    }
  }

  #fail(response: ServerResponse, error: unknown): void {
    this.#options.reportError(error)
    if (!response.headersSent) this.#send(response, FAILED)
  }

  #send(response: ServerResponse, { status, headers, body }: Answer): void {
    if (this.#stopping) response.shouldKeepAlive = false
    response.writeHead(status, headers)
    response.end(body)
  }
}

function isHostMissing(request: IncomingMessage): boolean {
  return request.headers.host === undefined && request.httpVersion === '1.1'
}
