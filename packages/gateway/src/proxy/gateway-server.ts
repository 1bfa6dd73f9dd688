import type { IncomingMessage, Server, ServerOptions } from 'node:http'
import { createServer, ServerResponse } from 'node:http'
import type { Http2SecureServer, ServerHttp2Session } from 'node:http2'
import { createSecureServer } from 'node:http2'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Timers } from '@sluice/core'
import type { Cidr } from '@sluice/core/internal'
import type { Logger } from '@sluice/runtime'
import type { TlsConfig } from '../config/gateway-config.ts'
import { type GatewayAnswer, problemAnswer, rawAnswer } from '../http/problems.ts'
import type { GatewayMetrics, Rejection } from '../observability/gateway-metrics.ts'
import { type CertificatePair, Certificates } from '../tls/certificates.ts'
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
  /** Whether clients connect with TLS. Needs {@link GatewayServer.useCertificates} before the start. */
  readonly isTls: boolean
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
} as const

/** How long a client may take to read the answer to what was no request. */
const CLOSE_WITHIN_MS = 2000

/** Requests at once on one HTTP/2 connection. */
const MOST_STREAMS = 128

/** Time limits of requests are checked so often by the server. */
const CHECK_EVERY_MS = 1000

/** A server of either kind; with TLS it speaks HTTP/2 and HTTP/1.1. */
type AnyServer = Server | Http2SecureServer

/** Accepts connections and brings requests. It runs once: new, listening, draining, stopped. */
export class GatewayServer {
  readonly #options: GatewayServerOptions
  readonly #bounds: Required<ClientBounds>
  readonly #connections: ClientConnections
  readonly #sessions = new Set<ServerHttp2Session>()
  #server: AnyServer | undefined
  #certificates: Certificates | undefined
  #isDraining = false

  constructor(options: GatewayServerOptions) {
    this.#options = options
    this.#bounds = { ...DEFAULTS, ...options.bounds }
    const { connectionLimit, metrics, timers, proxyProtocolFrom } = options
    this.#connections = new ClientConnections({
      isTls: options.isTls,
      mostConnections: this.#bounds.connections,
      connectionLimit,
      proxyProtocolFrom,
      headerMs: this.#bounds.headersMs,
      timers,
      metrics,
    })
  }

  get port(): number | undefined {
    const address = this.#server?.address()
    return typeof address === 'object' && address !== null ? address.port : undefined
  }

  /** Number of open connections. */
  get connections(): number {
    return this.#connections.size
  }

  /**
   * Reads certificates, which replace those in use, and looks after them. Rejects if one of them cannot be used; then
   * nothing changes.
   */
  async useCertificates(config: TlsConfig): Promise<void> {
    const { timers, logger } = this.#options
    const onDefault = ({ cert, key }: CertificatePair): void => {
      ;(this.#server as Http2SecureServer | undefined)?.setSecureContext({ cert, key })
    }
    const certificates = new Certificates(config, { timers, logger, onDefault })
    await certificates.start()
    this.#certificates?.close()
    this.#certificates = certificates
    onDefault(certificates.first)
  }

  /** Resolves when clients can connect; rejects with the error of the system. */
  start(): Promise<void> {
    const { listen, logger } = this.#options
    const { host, port, sharesPort = false } = listen
    const server = this.#certificates === undefined ? this.#createPlain() : this.#createSecure()
    this.#server = server
    this.#attach(server)
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
    for (const session of this.#sessions) session.close()
  }

  /** Accepts nothing more, answers what has begun, cuts what is not done after the grace period. */
  async stop(): Promise<void> {
    this.drain()
    this.#certificates?.close()
    const server = this.#server!
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    if ('closeIdleConnections' in server) server.closeIdleConnections()
    // Node closes connections between requests. It would wait for one that never began a request.
    this.#connections.destroySilent()
    const cancel = this.#options.timers.schedule(this.#options.graceMs, () => this.#connections.destroyAll())
    await closed
    cancel()
  }

  #createPlain(): Server {
    const server = createServer(this.#http1Options())
    // Node would drop what is above the number, such as the `Connection` header. So it takes all, and we count.
    server.maxHeadersCount = 0
    return server
  }

  #createSecure(): Http2SecureServer {
    const { headersMs, requestMs, keepAliveMs, headerBytes, headers } = this.#bounds
    const { cert, key } = this.#certificates!.first
    const server = createSecureServer({
      allowHTTP1: true,
      cert,
      key,
      minVersion: 'TLSv1.2',
      SNICallback: (name, done) => done(null, this.#certificates!.contextOf(name)),
      handshakeTimeout: headersMs,
      maxHeaderListPairs: headers,
      settings: { maxConcurrentStreams: MOST_STREAMS, maxHeaderListSize: headerBytes, enablePush: false },
      http1Options: this.#http1Options() as never,
    })
    // They are not options of a server that speaks both.
    Object.assign(server, { headersTimeout: headersMs, requestTimeout: requestMs, maxHeadersCount: 0 })
    Object.assign(server, { keepAliveTimeout: keepAliveMs })
    server.prependListener('secureConnection', (socket) => this.#connections.secured(socket))
    server.on('tlsClientError', () => this.#options.metrics().rejected('tls'))
    server.on('sessionError', () => undefined)
    server.on('session', (session) => {
      this.#sessions.add(session)
      session.once('close', () => void this.#sessions.delete(session))
      session.setTimeout(keepAliveMs, () => session.close())
      if (this.#isDraining) session.close()
    })
    return server
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
      shouldUpgradeCallback: (request) => !this.#isDraining && isWebSocket(request),
    }
  }

  #attach(server: AnyServer): void {
    // Before the server itself: the PROXY protocol comes before its first byte.
    const handlers = server.listeners('connection')
    server.removeAllListeners('connection')
    server.on('connection', (socket: Socket) => {
      this.#connections.accept(socket, () => {
        for (const handler of handlers) handler.call(server, socket)
      })
    })
    // Both kinds bring the same events.
    const events = server as Server
    events.on('request', (request, response) => this.#receive(request, response, false))
    events.on('checkContinue', (request, response) => this.#receive(request, response, true))
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
