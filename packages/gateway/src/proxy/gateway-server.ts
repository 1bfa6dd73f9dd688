import type { IncomingMessage, Server } from 'node:http'
import { createServer, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Timers } from '@sluice/core'
import type { GatewayMetrics, Rejection } from '../observability/gateway-metrics.ts'
import type { ClientRequest, ClientResponse } from './client-response.ts'
import { type ClientSocket, connectionOf } from './connection.ts'
import { type GatewayAnswer, problemAnswer, rawAnswer } from './problems.ts'

/** Bounds the connections of clients. */
export interface ConnectionLimit {
  /** Counts a connection. Returns what to call when it closes; undefined if there are too many. */
  open(address: string): (() => void) | undefined
}

/** How long clients may take, and how much they may send before a route is known. */
export interface ClientBounds {
  /** From the first byte of a request to the end of its headers. Default: 10 s. */
  readonly headersMs?: number
  /** From the first byte of a request to the end of its body. Default: 300 s. */
  readonly requestMs?: number
  /** Between two requests on one connection. Default: 75 s. */
  readonly keepAliveMs?: number
  /** Of all headers of a request. Default: 16 KiB. */
  readonly headerBytes?: number
  /** Number of headers of a request. Default: 100. */
  readonly headers?: number
  /** Open connections in all. Default: 50,000. */
  readonly connections?: number
}

/** Where to listen. */
export interface ListenOptions {
  readonly host: string
  readonly port: number
  /** Whether other threads listen on the same port, each with a share of the connections. Default: false. */
  readonly sharesPort?: boolean
}

/** Options of {@link GatewayServer}. */
export interface GatewayServerOptions {
  readonly listen: ListenOptions
  readonly bounds: ClientBounds
  readonly connectionLimit: ConnectionLimit | undefined
  readonly metrics: () => GatewayMetrics
  readonly timers: Timers
  /** How long a stop waits for requests in flight; then their connections are cut. */
  readonly graceMs: number
  readonly serve: (request: ClientRequest, response: ClientResponse, expectsContinue: boolean) => void
  /** A request to open a WebSocket. The response closes the connection after it. */
  readonly serveUpgrade: (request: IncomingMessage, response: ServerResponse, socket: Socket) => void
  /** Told of failures that no client is at fault for. */
  readonly reportError: (error: unknown) => void
}

const MALFORMED = problemAnswer('malformed', 'The bytes received are not an HTTP/1.1 request.')
const LATE = problemAnswer('timeout', 'The request was not complete in time. Send it without pauses.')
const HEADERS_TOO_LARGE = problemAnswer('headers-too-large', 'There are more headers than are read. Send fewer.')
const UNKNOWN_EXPECTATION = problemAnswer(
  'expectation-failed',
  'The only expectation known is "100-continue". Leave the Expect header out.',
)
const NO_TUNNELS = problemAnswer('method-not-allowed', 'The gateway opens no tunnels. Send the request itself.')
const TOO_MANY_CONNECTIONS = problemAnswer(
  'too-many-connections',
  'Too many connections are open. Keep connections alive and reuse them.',
  ['Retry-After', '1'],
)

const DEFAULTS = {
  headersMs: 10_000,
  requestMs: 300_000,
  keepAliveMs: 75_000,
  headerBytes: 16_384,
  headers: 100,
  connections: 50_000,
} as const

/** Time limits of requests are checked so often by the server. */
const CHECK_EVERY_MS = 1000

/** Accepts connections and brings requests. It runs once: new, listening, draining, stopped. */
export class GatewayServer {
  readonly #options: GatewayServerOptions
  readonly #bounds: Required<ClientBounds>
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #isDraining = false

  constructor(options: GatewayServerOptions) {
    this.#options = options
    this.#bounds = { ...DEFAULTS, ...options.bounds }
    const { headersMs, requestMs, keepAliveMs, headerBytes } = this.#bounds
    this.#server = createServer({
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      keepAliveTimeout: keepAliveMs,
      connectionsCheckingInterval: CHECK_EVERY_MS,
      maxHeaderSize: headerBytes,
      optimizeEmptyRequests: true,
      // Answered by us, as a problem document.
      requireHostHeader: false,
      shouldUpgradeCallback: (request) => !this.#isDraining && isWebSocket(request),
    })
    // Node would drop what is above the number, such as the `Connection` header. So it takes all, and we count.
    this.#server.maxHeadersCount = 0
    this.#server.on('request', (request, response) => this.#receive(request, response, false))
    this.#server.on('checkContinue', (request, response) => this.#receive(request, response, true))
    this.#server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
      request.resume()
      this.#respond(response, UNKNOWN_EXPECTATION)
    })
    this.#server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket as Socket, head))
    this.#server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
      options.metrics().rejected('upgrade')
      socket.end(rawAnswer(NO_TUNNELS), () => socket.destroy())
    })
    this.#server.on('clientError', (error, socket) => this.#clientError(error, socket))
    this.#server.on('connection', (socket) => this.#connected(socket))
  }

  get port(): number | undefined {
    const address = this.#server.address()
    return address === null || typeof address === 'string' ? undefined : address.port
  }

  /** Number of open connections. */
  get connections(): number {
    return this.#sockets.size
  }

  /** Resolves when clients can connect; rejects with the error of the system. */
  start(): Promise<void> {
    const { listen, reportError } = this.#options
    const { host, port, sharesPort = false } = listen
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen({ host, port, reusePort: sharesPort }, () => {
        this.#server.off('error', reject)
        this.#server.on('error', reportError)
        resolve()
      })
    })
  }

  /** Serves on, and closes each connection after its answer, so that clients move on. */
  drain(): void {
    this.#isDraining = true
  }

  /** Accepts nothing more, answers what has begun, cuts what is not done after the grace period. */
  async stop(): Promise<void> {
    this.#isDraining = true
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    // Node closes connections between requests. It would wait for one that never began a request.
    for (const socket of this.#sockets) if (socket.bytesRead === 0) socket.destroy()
    const cancel = this.#options.timers.schedule(this.#options.graceMs, () => {
      for (const socket of this.#sockets) socket.destroy()
    })
    await closed
    cancel()
  }

  #receive(request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void {
    if (this.#isDraining) response.shouldKeepAlive = false
    if (request.rawHeaders.length > 2 * this.#bounds.headers) {
      request.resume()
      this.#options.metrics().rejected('headers')
      this.#respond(response, HEADERS_TOO_LARGE)
      return
    }
    this.#options.serve(request, response, expectsContinue)
  }

  #upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    // Frames that came together with the request are passed on when the upstream has agreed.
    if (head.length > 0) socket.unshift(head)
    const response = new ServerResponse(request)
    response.shouldKeepAlive = false
    response.assignSocket(socket)
    socket.on('error', () => socket.destroy())
    response.on('finish', () => {
      response.detachSocket(socket)
      socket.destroySoon()
      response.emit('close')
    })
    if (request.rawHeaders.length > 2 * this.#bounds.headers) this.#respond(response, HEADERS_TOO_LARGE)
    else this.#options.serveUpgrade(request, response, socket)
  }

  #respond(response: ServerResponse, { status, headers, body }: GatewayAnswer): void {
    const length = String(Buffer.byteLength(body))
    response.writeHead(status, [...headers, 'Content-Length', length, 'Connection', 'close'])
    response.end(body)
  }

  #connected(socket: ClientSocket): void {
    const address = connectionOf(socket).peerAddress ?? ''
    const { connectionLimit, metrics } = this.#options
    const isTooMany = this.#sockets.size >= this.#bounds.connections
    const release = isTooMany || connectionLimit === undefined ? undefined : connectionLimit.open(address)
    if (isTooMany || (connectionLimit !== undefined && release === undefined)) {
      metrics().rejected('connections')
      // Not `end`: what the client sends meanwhile must not become a request.
      socket.write(rawAnswer(TOO_MANY_CONNECTIONS), () => socket.destroy())
      return
    }
    this.#sockets.add(socket)
    socket.once('close', () => {
      release?.()
      this.#sockets.delete(socket)
    })
  }

  #clientError(error: NodeJS.ErrnoException, socket: Duplex): void {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    const [reason, answer] = answerTo(error.code)
    this.#options.metrics().rejected(reason)
    socket.end(rawAnswer(answer), () => socket.destroy())
  }
}

/**
 * Whether a connection may become a WebSocket. Every other upgrade is left out, as servers may: h2c would carry
 * requests past all checks, and a body before the change of protocol has two readings.
 */
function isWebSocket({ method, httpVersion, headers }: IncomingMessage): boolean {
  return (
    method === 'GET' &&
    httpVersion === '1.1' &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    headers['sec-websocket-key'] !== undefined &&
    headers['transfer-encoding'] === undefined &&
    (headers['content-length'] ?? '0') === '0'
  )
}

function answerTo(code: string | undefined): readonly [Rejection, GatewayAnswer] {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return ['timeout', LATE]
  return code === 'HPE_HEADER_OVERFLOW' ? ['headers', HEADERS_TOO_LARGE] : ['malformed', MALFORMED]
}
