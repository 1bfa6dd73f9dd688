import type { IncomingMessage, Server, ServerOptions } from 'node:http'
import { createServer, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Timers } from '@sluice/core'
import type { Cidr } from '@sluice/core/internal'
import type { Logger } from '@sluice/runtime'
import type { TlsConfig } from '../config/gateway-config.ts'
import { type ClientSocket, connectionOf } from '../http/connection.ts'
import { type GatewayAnswer, problemAnswer, rawAnswer } from '../http/problems.ts'
import type { GatewayMetrics, Rejection } from '../observability/gateway-metrics.ts'
import { Certificates } from '../tls/certificates.ts'
import { SecureServer } from '../tls/secure-server.ts'
import { ClientConnections, type ConnectionLimit } from './client-connections.ts'
import type { ClientRequest, ClientResponse } from './client-response.ts'

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
  /** Requests in flight on one connection. Default: 128. */
  readonly requestsAtOnce?: number
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
  /** Networks whose connections begin with a header of the PROXY protocol. */
  readonly proxyProtocolFrom: () => readonly Cidr[]
  readonly connectionLimit: ConnectionLimit | undefined
  readonly metrics: () => GatewayMetrics
  readonly timers: Timers
  /** How long a stop waits for requests in flight; then their connections are cut. */
  readonly graceMs: number
  readonly serve: (request: ClientRequest, response: ClientResponse, expectsContinue: boolean) => void
  /** A request to open a WebSocket. The response closes the connection after it. */
  readonly serveUpgrade: (request: IncomingMessage, response: ServerResponse, socket: Socket) => void
  readonly logger: Logger
}

const MALFORMED = problemAnswer('malformed', 'The bytes received are not an HTTP/1.1 request.')
const LATE = problemAnswer('timeout', 'The request was not complete in time. Send it without pauses.')
const HEADERS_TOO_LARGE = problemAnswer('headers-too-large', 'There are more headers than are read. Send fewer.')
const UNKNOWN_EXPECTATION = problemAnswer(
  'expectation-failed',
  'The only expectation known is "100-continue". Leave the Expect header out.',
)
const NO_TUNNELS = problemAnswer('method-not-allowed', 'The gateway opens no tunnels. Send the request itself.')

const DEFAULTS = {
  headersMs: 10_000,
  requestMs: 300_000,
  keepAliveMs: 75_000,
  headerBytes: 16_384,
  headers: 100,
  connections: 50_000,
  requestsAtOnce: 128,
} as const

/** How long a client may take to read the answer to what was no request. */
const CLOSE_WITHIN_MS = 2000

/** Time limits of requests are checked so often by the server. */
const CHECK_EVERY_MS = 1000

/**
 * Accepts connections and brings requests. It runs once: new, listening, draining, stopped.
 *
 * Invariant: one socket listens from the start to the stop, whether clients speak TLS or not. A connection keeps the
 * protocol that was configured when it was accepted.
 */
export class GatewayServer {
  readonly #options: GatewayServerOptions
  readonly #bounds: Required<ClientBounds>
  readonly #connections: ClientConnections
  /** Listens, and speaks HTTP/1.1 unless there is TLS. */
  readonly #server: Server
  /** Speaks TLS on accepted connections. Undefined without TLS. */
  #secure: SecureServer | undefined
  /** Of TLS that was configured before; their last connections may be open. */
  readonly #retired: SecureServer[] = []
  #isDraining = false
  #isStopping = false

  constructor(options: GatewayServerOptions) {
    this.#options = options
    this.#bounds = { ...DEFAULTS, ...options.bounds }
    const { connectionLimit, metrics, timers, proxyProtocolFrom } = options
    this.#connections = new ClientConnections({
      mostConnections: this.#bounds.connections,
      connectionLimit,
      proxyProtocolFrom,
      headerMs: this.#bounds.headersMs,
      timers,
      metrics,
    })
    this.#server = this.#createPlain()
  }

  get port(): number | undefined {
    const address = this.#server.address()
    return typeof address === 'object' && address !== null ? address.port : undefined
  }

  /** Number of open connections. */
  get connections(): number {
    return this.#connections.size
  }

  /** Reads certificates for {@link useCertificates}. Rejects if one of them cannot be used. */
  async readCertificates(config: TlsConfig): Promise<Certificates> {
    const { timers, logger } = this.#options
    const certificates = new Certificates(config, { timers, logger })
    await certificates.start()
    return certificates
  }

  /**
   * Speaks TLS with these certificates on new connections; undefined: no TLS. Where that adds or removes TLS, open
   * connections end after their next answer. Idle ones are not closed at once: a request may be on its way.
   */
  useCertificates(certificates: Certificates | undefined): void {
    const secure = this.#secure
    if (certificates === undefined) {
      if (secure === undefined) return
      this.#secure = undefined
      this.#retired.push(secure)
      secure.drain()
    } else if (secure === undefined) this.#secure = this.#createSecure(certificates)
    else secure.use(certificates)
  }

  /** Resolves when clients can connect; rejects with the error of the system. */
  start(): Promise<void> {
    const { listen, logger } = this.#options
    const { host, port, sharesPort = false } = listen
    const server = this.#server
    return new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen({ host, port, reusePort: sharesPort }, () => {
        server.off('error', reject)
        // Such as no file descriptors left for another connection: the server goes on with those it has.
        server.on('error', (error: Error) =>
          logger.error('the listener of the gateway failed', { error: String(error) }),
        )
        resolve()
      })
    })
  }

  /** Serves on, and closes each connection after its answer, so that clients move on. */
  drain(): void {
    this.#isDraining = true
    this.#secure?.drain()
  }

  /** Accepts nothing more, answers what has begun, cuts what is not done after the grace period. */
  async stop(): Promise<void> {
    this.#isStopping = true
    this.drain()
    const server = this.#server
    // Waits for the connections of all servers, because this one has accepted them.
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    server.closeIdleConnections()
    const secured = [...this.#retired, ...(this.#secure === undefined ? [] : [this.#secure])]
    for (const secure of secured) secure.closeIdle()
    // Node closes connections between requests. It would wait for one that never began a request.
    this.#connections.destroySilent()
    const cancel = this.#options.timers.schedule(this.#options.graceMs, () => this.#connections.destroyAll())
    await closed
    cancel()
    for (const secure of secured) secure.close()
  }

  #createPlain(): Server {
    const server = createServer(this.#http1Options())
    // Node would drop what is above the number, such as the `Connection` header. So it takes all, and we count.
    server.maxHeadersCount = 0
    this.#accept(server)
    this.#attach(server, () => this.#secure !== undefined)
    return server
  }

  #createSecure(certificates: Certificates): SecureServer {
    const secure: SecureServer = new SecureServer(certificates, {
      ...this.#bounds,
      http1: this.#http1Options(),
      onSecured: (socket) => this.#connections.secured(socket),
      onFailedHandshake: () => this.#options.metrics().rejected('tls'),
    })
    // Both kinds bring the same events.
    this.#attach(secure.server as unknown as Server, () => this.#secure !== secure)
    return secure
  }

  #http1Options(): ServerOptions {
    const { headersMs, requestMs, keepAliveMs, headerBytes } = this.#bounds
    return {
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      keepAliveTimeout: keepAliveMs,
      connectionsCheckingInterval: Math.min(CHECK_EVERY_MS, headersMs),
      maxHeaderSize: headerBytes,
      optimizeEmptyRequests: true,
      // Answered by us, as a problem document.
      requireHostHeader: false,
      shouldUpgradeCallback: (request) => !this.#isStopping && isWebSocket(request),
    }
  }

  /** Hands accepted connections to the server that speaks with them. */
  #accept(server: Server): void {
    // Before the server itself: the PROXY protocol comes before its first byte.
    const handlers = server.listeners('connection')
    server.removeAllListeners('connection')
    server.on('connection', (socket: Socket) => {
      const secure = this.#secure
      this.#connections.accept(socket, secure !== undefined, () => {
        if (secure !== undefined) secure.accept(socket)
        else for (const handler of handlers) handler.call(server, socket)
      })
    })
  }

  /** `isRetired`: whether TLS was added or removed, so that connections of this server are closed after an answer. */
  #attach(events: Server, isRetired: () => boolean): void {
    events.on('request', (request, response) => {
      if (isRetired()) response.shouldKeepAlive = false
      this.#receive(request, response, false)
    })
    events.on('checkContinue', (request, response) => {
      if (isRetired()) response.shouldKeepAlive = false
      this.#receive(request, response, true)
    })
    events.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
      request.resume()
      this.#respond(response, UNKNOWN_EXPECTATION)
    })
    events.on('upgrade', (request, socket, head) => this.#upgrade(request, socket as Socket, head))
    events.on('connect', (_request: IncomingMessage, target: Duplex | ServerResponse) => {
      this.#options.metrics().rejected('upgrade')
      // HTTP/2 brings a response, HTTP/1.1 the connection.
      if ('writeHead' in target) {
        target.writeHead(NO_TUNNELS.status)
        target.end()
      } else this.#closeWith(target, rawAnswer(NO_TUNNELS))
    })
    events.on('clientError', (error, socket) => this.#clientError(error, socket))
  }

  #receive(request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void {
    if (this.#isDraining) response.shouldKeepAlive = false
    if (request.httpVersionMajor === 1 && this.#isPipelineFull(request)) return
    if (!this.#hasTooManyHeaders(request, response)) this.#options.serve(request, response, expectsContinue)
  }

  #hasTooManyHeaders(request: IncomingMessage, response: ServerResponse): boolean {
    if (request.rawHeaders.length <= 2 * this.#bounds.headers) return false
    request.resume()
    this.#options.metrics().rejected('headers')
    this.#respond(response, HEADERS_TOO_LARGE)
    return true
  }

  /**
   * Closes a connection whose client sends too many requests without waiting for answers. Answers come in the order of
   * requests, so that this one could not be answered before all others, and further ones would pile up meanwhile.
   */
  #isPipelineFull({ socket }: IncomingMessage): boolean {
    if (connectionOf(socket as ClientSocket).inFlight < this.#bounds.requestsAtOnce) return false
    // What was read together with this request may bring further ones.
    if (!socket.destroyed) this.#options.metrics().rejected('pipeline')
    socket.destroy()
    return true
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
    if (!this.#hasTooManyHeaders(request, response)) this.#options.serveUpgrade(request, response, socket)
  }

  #respond(response: ServerResponse, { status, headers, body }: GatewayAnswer): void {
    const length = String(Buffer.byteLength(body))
    response.writeHead(status, [...headers, 'Content-Length', length, 'Connection', 'close'])
    response.end(body)
  }

  #clientError(error: NodeJS.ErrnoException, socket: Duplex): void {
    // Before the end of a handshake nothing can be said; `tlsClientError` counts it.
    const isHandshake = 'secureConnecting' in socket && socket.secureConnecting === true
    if (error.code === 'ECONNRESET' || !socket.writable || isHandshake) {
      socket.destroy()
      return
    }
    const [reason, answer] = answerTo(error.code)
    this.#options.metrics().rejected(reason)
    this.#closeWith(socket, rawAnswer(answer))
  }

  /** Answers and closes, also if the client does not read. */
  #closeWith(socket: Duplex, answer: string): void {
    socket.once(
      'close',
      this.#options.timers.schedule(CLOSE_WITHIN_MS, () => socket.destroy()),
    )
    socket.end(answer, () => socket.destroy())
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
