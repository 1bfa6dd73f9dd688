import type { Server, ServerOptions } from 'node:http'
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import type { CertificatePair, Certificates } from './certificates.ts'

/** Options of {@link SecureServer}. Durations in milliseconds. */
export interface SecureServerOptions {
  readonly headersMs: number
  readonly requestMs: number
  readonly keepAliveMs: number
  /** Of all headers of a request. */
  readonly headerBytes: number
  /** Number of headers of a request. */
  readonly headers: number
  /** Requests in flight on one connection. */
  readonly requestsAtOnce: number
  readonly http1: ServerOptions
  /** Told of each connection after its handshake, before requests are read. */
  readonly onSecured: (socket: Socket) => void
  /** Told of each handshake that failed. */
  readonly onFailedHandshake: () => void
}

/**
 * Speaks TLS, with HTTP/2 or HTTP/1.1 inside, on connections that another server has accepted. So TLS can be added and
 * removed while the listening socket stays open.
 */
export class SecureServer {
  /** Brings the requests. It never listens. */
  readonly server: Http2SecureServer
  readonly #sessions = new Set<ServerHttp2Session>()
  readonly #keepAliveMs: number
  #certificates: Certificates
  #isClosing = false

  constructor(certificates: Certificates, options: SecureServerOptions) {
    const { headersMs, requestMs, keepAliveMs, headerBytes, headers, requestsAtOnce } = options
    const { http1, onSecured, onFailedHandshake } = options
    this.#certificates = certificates
    this.#keepAliveMs = keepAliveMs
    const { cert, key } = certificates.first
    const server = createSecureServer({
      allowHTTP1: true,
      cert,
      key,
      minVersion: 'TLSv1.2',
      SNICallback: (name, done) => done(null, this.#certificates.contextOf(name)),
      handshakeTimeout: headersMs,
      maxHeaderListPairs: headers,
      settings: { maxConcurrentStreams: requestsAtOnce, maxHeaderListSize: headerBytes, enablePush: false },
      http1Options: http1 as never,
    })
    this.server = server
    // They are not options of a server that speaks both.
    Object.assign(server, { headersTimeout: headersMs, requestTimeout: requestMs, maxHeadersCount: 0 })
    Object.assign(server, { keepAliveTimeout: keepAliveMs })
    server.prependListener('secureConnection', onSecured)
    server.on('tlsClientError', onFailedHandshake)
    server.on('sessionError', () => undefined)
    server.on('session', (session) => this.#opened(session))
    // Node begins to check the time limits of HTTP/1.1 requests with this event.
    server.emit('listening')
    certificates.onFirst = this.#useFirst
  }

  /** Takes a connection that no byte was read of. */
  accept(socket: Socket): void {
    // The other side of a TLS connection cannot be half closed.
    socket.allowHalfOpen = false
    this.server.emit('connection', socket)
  }

  /** Uses other certificates for new connections. */
  use(certificates: Certificates): void {
    const before = this.#certificates
    this.#certificates = certificates
    certificates.onFirst = this.#useFirst
    this.#useFirst(certificates.first)
    before.close()
  }

  /** Lets clients of HTTP/2 go: their connections end after the requests in flight. */
  drain(): void {
    this.#isClosing = true
    for (const session of this.#sessions) session.close()
  }

  /** Closes connections of HTTP/1.1 that are between two requests. */
  closeIdle(): void {
    // Its types do not have what the server has.
    ;(this.server as unknown as Server).closeIdleConnections()
  }

  /** Stops looking after certificates and time limits. Call it when no connection is left or all are being cut. */
  close(): void {
    this.#certificates.close()
    // Without a callback, because it reports that the server does not listen.
    this.server.close()
  }

  readonly #useFirst = ({ cert, key }: CertificatePair): void => this.server.setSecureContext({ cert, key })

  #opened(session: ServerHttp2Session): void {
    this.#sessions.add(session)
    session.once('close', () => void this.#sessions.delete(session))
    session.setTimeout(this.#keepAliveMs, () => session.close())
    if (this.#isClosing) session.close()
  }
}
