import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import type { Sleep } from '@sluice/runtime'
import type { Answer } from '../../operations/answer.ts'
import { NO_SNIFF } from '../../operations/answer.ts'
import { problemAnswer } from '../../operations/problem-answer.ts'
import { answerClientError, rejectConnection } from './client-error.ts'
import type { ConnectionLimit } from './connection-limit.ts'
import type { ListenAddress } from './listen-error.ts'
import { listenError } from './listen-error.ts'
import { discardBody } from './request-body.ts'

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

/** Answers requests; {@link HttpServer} brings them. */
export interface RequestServer {
  /** Answers `request` by `response`, now or later. */
  serve(request: IncomingMessage, response: ServerResponse): void
  /** From now on connections end with their answer. */
  leave(): void
  /** Ends answers that would go on by themselves. */
  endStreams(): void
}

/** Options of {@link HttpServer}. */
export interface HttpServerOptions extends ListenAddress {
  readonly requests: RequestServer
  /** Told of every answer to what could not be made a request of. */
  readonly observeRefusal?: (status: number, remoteAddress: string) => void
  /** Told of failures that no client is at fault for. */
  readonly reportError: (error: unknown) => void
  readonly timeouts: HttpTimeouts
  readonly sleep: Sleep
  /** How long a stop waits for requests that have begun, in milliseconds; then their connections are cut. */
  readonly graceMs: number
  readonly connectionLimit: ConnectionLimit
  /** Whether other threads listen on the same port, each with a share of the connections. */
  readonly sharesPort?: boolean
}

const UNKNOWN_EXPECTATION = problemAnswer('SLUICE_HTTP_EXPECTATION_FAILED', {
  detail: 'The only expectation known is "100-continue". Leave the Expect header out.',
})

/**
 * An HTTP/1.1 server: listens, brings requests to be answered, and stops without breaking off what it has begun. It runs once:
 * new -> listening -> draining -> stopping -> stopped.
 */
export class HttpServer {
  readonly #options: HttpServerOptions
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #stopping = new AbortController()

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
    const { requests, observeRefusal, connectionLimit } = options
    this.#server.on('request', (request, response) => requests.serve(request, response))
    this.#server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
      observeRefusal?.(UNKNOWN_EXPECTATION.status, request.socket.remoteAddress ?? '')
      discardBody(request)
      writeAnswer(response, UNKNOWN_EXPECTATION)
    })
    this.#server.on('clientError', (error, socket) => {
      const remoteAddress = 'remoteAddress' in socket ? String(socket.remoteAddress) : ''
      const status = answerClientError(error, socket)
      if (status !== undefined) observeRefusal?.(status, remoteAddress)
    })
    this.#server.on('connection', (socket) => {
      const remoteAddress = socket.remoteAddress ?? ''
      const closed = connectionLimit.open(remoteAddress)
      if (closed === undefined) {
        observeRefusal?.(rejectConnection(socket), remoteAddress)
        return
      }
      this.#sockets.add(socket)
      socket.once('close', () => {
        closed()
        this.#sockets.delete(socket)
      })
    })
  }

  /** The port it listens on; with port 0 in the options, the one that was found. Undefined unless it is listening. */
  get port(): number | undefined {
    const address = this.#server.address()
    return address === null || typeof address === 'string' ? undefined : address.port
  }

  /** Connections that are open. */
  get connections(): number {
    return this.#sockets.size
  }

  /** Resolves when requests are accepted; rejects with a `SLUICE_SERVICE_*` error when they cannot be. */
  start(): Promise<void> {
    const { host, port, sharesPort = false } = this.#options
    return new Promise((resolve, reject) => {
      const onError = (error: NodeJS.ErrnoException): void => reject(listenError(error, { host, port }))
      this.#server.once('error', onError)
      this.#server.listen({ host, port, reusePort: sharesPort }, () => {
        this.#server.off('error', onError)
        // Such as no file descriptors left for another connection: the server goes on with those it has.
        this.#server.on('error', this.#options.reportError)
        resolve()
      })
    })
  }

  /**
   * Lets clients go elsewhere: everything is answered as before, and every connection ends with its answer. Resolves after
   * `drainMs`, or at once when it does not listen or is stopped. That no connection is open ends nothing: whoever sends requests
   * here may not have learnt yet that it leaves, and opens another.
   */
  async drain(drainMs: number): Promise<void> {
    const { requests, sleep } = this.#options
    requests.leave()
    if (drainMs > 0 && this.#server.listening) await sleep(drainMs, this.#stopping.signal).catch(() => undefined)
  }

  /**
   * Accepts nothing more, answers what has begun, closes what is idle; resolves when no connection is left. Connections
   * that are not done after `graceMs` are cut.
   */
  async stop(): Promise<void> {
    const { requests, sleep, graceMs } = this.#options
    this.#stopping.abort()
    requests.leave()
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    requests.endStreams()
    // Node closes connections between requests; one that never began a request it would wait for.
    for (const socket of this.#sockets) if (socket.bytesRead === 0) socket.destroy()
    const done = new AbortController()
    const graceOver = sleep(graceMs, done.signal).then(
      () => this.#server.closeAllConnections(),
      () => undefined,
    )
    await closed
    done.abort()
    await graceOver
  }
}

/** Sends an answer that is whole. */
export function writeAnswer(response: ServerResponse, { status, headers, body }: Answer): void {
  response.writeHead(status, { ...headers, ...NO_SNIFF })
  response.end(body)
}
