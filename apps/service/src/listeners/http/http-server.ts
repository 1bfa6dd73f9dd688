import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer, STATUS_CODES } from 'node:http'
import type { Server as SecureServer } from 'node:https'
import { createServer as createSecureServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Sleep } from '@sluice/runtime'
import type { Answer } from '../../operations/handler.ts'
import { NO_SNIFF } from '../../operations/handler.ts'
import { problemAnswer } from '../../operations/problems.ts'
import type { ConnectionLimit } from '../connection-limit.ts'
import type { ListenAttempt, Listener, ListenerName } from '../listener.ts'
import { listen } from '../listener.ts'
import type { ListenerTls } from '../tls-files.ts'
import { discardBody } from './request-body.ts'
import type { RequestServer } from './request-server.ts'
import { writeAnswer } from './request-server.ts'

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
export interface HttpServerOptions {
  readonly name: ListenerName
  readonly attempt: ListenAttempt
  /** Default: plain text. */
  readonly tls?: ListenerTls | undefined
  /** Answers the requests that this server brings. */
  readonly requests: Pick<RequestServer, 'serve' | 'leave' | 'endStreams'>
  /** Told of every answer to what could not be made a request of. */
  readonly observeRejection?: (status: number, remoteAddress: string) => void
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
 * An HTTP/1.1 server: listens, brings requests to be answered, and stops without breaking off what it has begun. It
 * runs once: new -> listening -> draining -> stopping -> stopped.
 */
export class HttpServer implements Listener {
  readonly name: ListenerName
  readonly tls: ListenerTls | undefined
  readonly #options: HttpServerOptions
  readonly #server: Server | SecureServer
  readonly #sockets = new Set<Socket>()
  /** Those that requests can come on: all of them, or with TLS those whose handshake is done. */
  readonly #ready = new Set<Socket>()
  readonly #stopping = new AbortController()

  constructor(options: HttpServerOptions) {
    this.#options = options
    this.name = options.name
    this.tls = options.tls
    const { headersMs, requestMs, idleMs, checkEveryMs } = options.timeouts
    const http = {
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      keepAliveTimeout: idleMs,
      connectionsCheckingInterval: checkEveryMs,
      // A missing Host header is rejected here and not by Node, so that it is a problem document like all others.
      requireHostHeader: false,
    }
    this.#server =
      this.tls === undefined
        ? createServer(http)
        : createSecureServer({ ...http, ...this.tls.files, handshakeTimeout: headersMs })
    const { requests, observeRejection, connectionLimit } = options
    this.#server.on('request', requests.serve)
    this.#server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
      observeRejection?.(UNKNOWN_EXPECTATION.status, request.socket.remoteAddress ?? '')
      discardBody(request)
      writeAnswer(response, UNKNOWN_EXPECTATION)
    })
    this.#server.on('clientError', (error, socket) => {
      const remoteAddress = 'remoteAddress' in socket ? String(socket.remoteAddress) : ''
      const status = answerClientError(error, socket)
      if (status !== undefined) observeRejection?.(status, remoteAddress)
    })
    this.#server.on('connection', (socket: Socket) => {
      const remoteAddress = socket.remoteAddress ?? ''
      const closed = connectionLimit.open(remoteAddress)
      if (closed === undefined) {
        observeRejection?.(rejectConnection(socket, this.tls !== undefined), remoteAddress)
        return
      }
      this.#sockets.add(socket)
      socket.once('close', () => {
        closed()
        this.#sockets.delete(socket)
      })
    })
    this.#server.on(this.tls === undefined ? 'connection' : 'secureConnection', (socket: Socket) => {
      this.#ready.add(socket)
      socket.once('close', () => {
        this.#ready.delete(socket)
        if (this.#stopping.signal.aborted) this.#cutHandshakes()
      })
    })
  }

  get port(): number | undefined {
    const address = this.#server.address()
    return address === null || typeof address === 'string' ? undefined : address.port
  }

  get connections(): number {
    return this.#sockets.size
  }

  /** Resolves when requests are accepted; rejects with a `SLUICE_SERVICE_*` error when they cannot be. */
  async start(): Promise<void> {
    const { attempt, sharesPort = false, reportError } = this.#options
    await listen(this.#server, attempt, { sharesPort, onLater: reportError })
    void this.tls?.follow(this.#server as SecureServer, this.#stopping.signal)
  }

  /**
   * Lets clients move to other nodes: requests are answered as before, and each connection closes after its answer.
   * Resolves after `drainMs`, or at once when the server does not listen or is stopped. It does not resolve early
   * without connections: a client that has not noticed the drain yet may open another.
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
    for (const socket of this.#ready) if (socket.bytesRead === 0) socket.destroy()
    this.#cutHandshakes()
    const done = new AbortController()
    const graceOver = sleep(graceMs, done.signal).then(
      () => this.#server.closeAllConnections(),
      () => undefined,
    )
    await closed
    done.abort()
    await graceOver
  }

  /** Once no request can come any more: closes connections whose handshake is not done. */
  #cutHandshakes(): void {
    if (this.#ready.size === 0) for (const socket of this.#sockets) socket.destroy()
  }
}

const MALFORMED = problemAnswer('SLUICE_HTTP_MALFORMED', {
  detail: 'The bytes received are not an HTTP/1.1 request. Send one.',
})
const TIMEOUT = problemAnswer('SLUICE_HTTP_TIMEOUT', {
  detail: 'The request was not complete in time. Send it without pauses.',
})
const HEADERS_TOO_LARGE = problemAnswer('SLUICE_HTTP_HEADERS_TOO_LARGE', {
  detail: 'The headers are longer than is read. Send fewer.',
})

const TOO_MANY_CONNECTIONS = problemAnswer('SLUICE_HTTP_TOO_MANY_CONNECTIONS', {
  detail:
    'Too many connections from this address are open. Keep connections alive and reuse them; ' +
    '--max-connections-per-address and --trusted-proxies of the service raise the limit.',
  headers: { 'Retry-After': '1' },
})

/**
 * Answers a connection that is one too many before it has sent anything, and closes it. Returns the status of the
 * answer. With TLS it is closed without one: there was no handshake.
 */
function rejectConnection(socket: Duplex, isTls: boolean): number {
  // Not `end`: what the client sends meanwhile must not become a request.
  if (isTls) socket.destroy()
  else socket.write(rawAnswer(TOO_MANY_CONNECTIONS), () => socket.destroy())
  return TOO_MANY_CONNECTIONS.status
}

/**
 * Answers bytes that Node could not parse as a request, and closes the connection: the start of the next request is
 * unknown. Returns the status of the answer, or undefined when the client is gone.
 */
function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): number | undefined {
  const isHandshake = error.code?.startsWith('ERR_SSL') === true || error.code?.startsWith('ERR_TLS') === true
  if (error.code === 'ECONNRESET' || isHandshake || !socket.writable) {
    socket.destroy()
    return undefined
  }
  const answer = answerFor(error.code)
  socket.end(rawAnswer(answer), () => socket.destroy())
  return answer.status
}

function answerFor(code: string | undefined): Answer {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return TIMEOUT
  return code === 'HPE_HEADER_OVERFLOW' ? HEADERS_TOO_LARGE : MALFORMED
}

/** The bytes of an answer, for a connection that has no response object. */
function rawAnswer({ status, headers, body }: Answer): string {
  const lines = Object.entries({ ...headers, ...NO_SNIFF, Connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`
}
