import type {
  Http2SecureServer,
  Http2Server,
  IncomingHttpHeaders,
  ServerHttp2Session,
  ServerHttp2Stream,
} from 'node:http2'
import { createSecureServer, createServer } from 'node:http2'
import type { Socket } from 'node:net'
import { OPERATIONS } from '@sluice/contract'
import type { LoopDelay, MetricRegistry } from '@sluice/runtime'
import { InFlight, LagGuard } from '@sluice/runtime'
import type { Authenticator } from '../../auth/authenticator.ts'
import { narrowingOf, notForTenants } from '../../auth/tenant-scope.ts'
import { errorFields } from '../../observability/error-fields.ts'
import type { Readiness } from '../../operations/health.ts'
import type { ServiceContext } from '../../service-context.ts'
import type { GrpcSettings } from '../../settings/settings.ts'
import type { ConnectionLimit } from '../connection-limit.ts'
import type { Listener } from '../listener.ts'
import { listen, listenAttempt, listenerAccess } from '../listener.ts'
import { ListenerTls } from '../tls-files.ts'
import type { GrpcCallHandler } from './grpc-call.ts'
import { GrpcCall, httpStatusOf, MessageMemory } from './grpc-call.ts'
import { GrpcMetrics } from './grpc-metrics.ts'
import type { GrpcStatus } from './grpc-status.ts'
import { GrpcError, grpcErrorOf, grpcErrorOfAnswer } from './grpc-status.ts'
import { HealthService } from './health-service.ts'
import { RateLimitService } from './rate-limit-service.ts'

/** What the listener of one thread is made of. */
export interface GrpcListenerParts {
  readonly context: ServiceContext
  readonly settings: GrpcSettings
  readonly port: number
  /** Whether other threads listen on the same port. */
  readonly sharesPort: boolean
  readonly authenticator: Pick<Authenticator, 'authenticate'>
  readonly connectionLimit: ConnectionLimit
  readonly readiness: Readiness
  readonly metrics: MetricRegistry
  readonly loopDelay: LoopDelay
  readonly monotonicMs: () => number
}

/** Time for the preface of a connection and for the message of a call. */
const CLIENT_TIMEOUT_MS = 10_000

/** How often it is looked for clients that are overdue. */
const SWEEP_EVERY_MS = 1000

/** Longest wait of a stop for calls that wait for the store. */
const GRACE_MS = 10_000

/** See the HTTP listener. */
const LATE_FROM_MS = 1000

/** Calls in flight on one connection. Clients wait, or open another connection. */
const MAX_STREAMS = 1000

/**
 * Streams that a connection may reset at once, and in each second. Envoy resets every call that takes longer than its
 * timeout: a slow store must not cost it the connection, as Node's default of 1000 would. A reset costs this thread
 * less than the call itself.
 */
const RESETS = { streamResetBurst: 10_000, streamResetRate: 10_000 }

/** As bodies of the check API. */
const MAX_UNFINISHED_BYTES = 33_554_432

/** What clients can call. */
interface GrpcMethod {
  readonly name: string
  /** Health needs no key, like `/readyz`. */
  readonly needsAccess: boolean
  readonly isUnary: boolean
  readonly handle: (message: Buffer, call: GrpcCall) => void | Promise<void>
}

/** A call of one of them; of none if the client named another. */
type MethodCall = GrpcCall<GrpcMethod | undefined>

/** Serves the rate limit protocol of Envoy, and the gRPC health service. */
export class GrpcListener implements Listener {
  readonly name = 'grpc'
  readonly tls: ListenerTls | undefined
  readonly #parts: GrpcListenerParts
  readonly #server: Http2Server
  readonly #sockets = new Set<Socket>()
  /** With the time that they were opened at, or `Infinity` once the client has sent its preface. */
  readonly #sessions = new Map<ServerHttp2Session, number>()
  /**
   * Calls whose streams are open, each with its place. A `Set` would keep calls that have ended: V8 replaces its table
   * as members come and go, and an old table refers to the next one.
   */
  readonly #calls: MethodCall[] = []
  readonly #methods: ReadonlyMap<string, GrpcMethod>
  readonly #health: HealthService
  readonly #metrics: GrpcMetrics
  readonly #needsKey: boolean
  readonly #stopping = new AbortController()
  readonly #handler: GrpcCallHandler<GrpcMethod | undefined> = {
    memory: new MessageMemory(MAX_UNFINISHED_BYTES),
    onMessage: (message, call) => this.#handle(message, call),
    onEnd: (status, call) => this.#ended(status, call),
    onClose: (call) => this.#remove(call),
    errorOf: (error) => this.#errorOf(error),
  }

  constructor(parts: GrpcListenerParts) {
    this.#parts = parts
    const { context, settings, readiness, metrics, loopDelay } = parts
    const { clock, sleep } = context
    const guard = new LagGuard({ delay: loopDelay, nowMs: () => clock.nowMicros() / 1000, lateFromMs: LATE_FROM_MS })
    const inFlightLimit = new InFlight({ most: context.settings.maxInFlight, isOverloaded: () => guard.isLate() })
    const rateLimits = new RateLimitService({ context, settings, inFlightLimit })
    this.#health = new HealthService(readiness, sleep)
    this.#methods = new Map<string, GrpcMethod>([
      [
        '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
        {
          name: 'ShouldRateLimit',
          needsAccess: true,
          isUnary: true,
          handle: (...call) => rateLimits.shouldRateLimit(...call),
        },
      ],
      [
        '/grpc.health.v1.Health/Check',
        { name: 'Check', needsAccess: false, isUnary: true, handle: (...call) => this.#health.check(...call) },
      ],
      [
        '/grpc.health.v1.Health/Watch',
        { name: 'Watch', needsAccess: false, isUnary: false, handle: (...call) => this.#health.watch(...call) },
      ],
    ])
    this.#metrics = new GrpcMetrics(
      metrics,
      [...this.#methods.values()].map(({ name }) => name),
    )
    this.#needsKey = listenerAccess('grpc', context.settings) === 'key'
    this.tls = settings.tls && new ListenerTls({ ...context, listener: 'grpc', tls: settings.tls })
    this.#server = this.#createServer()
  }

  get port(): number | undefined {
    const address = this.#server.address()
    return address === null || typeof address === 'string' ? undefined : address.port
  }

  get connections(): number {
    return this.#sockets.size
  }

  async start(): Promise<void> {
    const { port, sharesPort, context } = this.#parts
    const { settings, log } = context
    const onLater = (error: Error): void => log.error('the gRPC listener failed', { error: errorFields(error) })
    await listen(this.#server, listenAttempt('grpc', settings, port), { sharesPort, onLater })
    void this.#sweep()
    void this.tls?.follow(this.#server as unknown as Http2SecureServer, this.#stopping.signal)
  }

  /** Watches get the new status at once. Every connection gets GOAWAY, so that clients connect to other nodes. */
  async drain(drainMs: number): Promise<void> {
    await this.#health.look()
    for (const session of this.#sessions.keys()) session.close()
    const { sleep } = this.#parts.context
    if (drainMs > 0 && this.#server.listening) await sleep(drainMs, this.#stopping.signal).catch(() => undefined)
  }

  async stop(): Promise<void> {
    const { sleep } = this.#parts.context
    this.#stopping.abort()
    const closed = new Promise<void>((resolve) => {
      if (this.#server.listening) this.#server.close(() => resolve())
      else resolve()
    })
    this.#health.stop()
    for (const session of this.#sessions.keys()) session.close()
    if (this.#sessions.size === 0) this.#cut()
    const done = new AbortController()
    const graceOver = sleep(GRACE_MS, done.signal).then(
      () => this.#cut(),
      () => undefined,
    )
    await closed
    done.abort()
    await graceOver
  }

  #createServer(): Http2Server {
    const options = { ...RESETS, settings: { maxConcurrentStreams: MAX_STREAMS } }
    const server =
      this.tls === undefined
        ? createServer(options)
        : createSecureServer({ ...options, ...this.tls.files, handshakeTimeout: CLIENT_TIMEOUT_MS })
    // Before the server itself, which makes a session of the connection.
    server.prependListener('connection', (socket: Socket) => this.#accept(socket))
    server.on('session', (session) => this.#open(session))
    server.on('stream', (stream, headers) => this.#serve(stream, headers))
    // A client that speaks something else, breaks off, or has no certificate: its connection is closed.
    server.on('sessionError', (_error, session) => session.destroy())
    server.on('tlsClientError', (_error: Error, socket: Socket) => socket.destroy())
    return server
  }

  #accept(socket: Socket): void {
    const closed = this.#parts.connectionLimit.open(socket.remoteAddress ?? '')
    if (closed === undefined) {
      socket.destroy()
      return
    }
    socket.setNoDelay(true)
    this.#sockets.add(socket)
    socket.once('close', () => {
      closed()
      this.#sockets.delete(socket)
    })
  }

  #open(session: ServerHttp2Session): void {
    this.#sessions.set(session, this.#parts.monotonicMs())
    session.once('remoteSettings', () => this.#sessions.set(session, Number.POSITIVE_INFINITY))
    session.once('close', () => {
      this.#sessions.delete(session)
      // Those that are left never became a session.
      if (this.#stopping.signal.aborted && this.#sessions.size === 0) this.#cut()
    })
    if (this.#stopping.signal.aborted) session.close()
  }

  #serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    // The stream of a client that is gone; its call ends when it is closed.
    stream.on('error', IGNORED)
    const status = httpStatusOf(headers)
    if (status !== undefined) {
      this.#metrics.count(undefined, 'UNIMPLEMENTED')
      stream.respond({ ':status': status }, { endStream: true })
      stream.close()
      return
    }
    const method = this.#methods.get(headers[':path'] ?? '')
    const call = new GrpcCall(stream, headers, {
      method,
      startedMs: this.#parts.monotonicMs(),
      handler: this.#handler,
    })
    call.openAt = this.#calls.push(call) - 1
    try {
      if (method === undefined) throw new GrpcError('UNIMPLEMENTED', 'The method is unknown')
      requireIdentity(headers)
      if (method.needsAccess && this.#needsKey) this.#requireKey(call)
    } catch (error) {
      call.fail(this.#errorOf(error))
    }
  }

  #requireKey({ headers, remoteAddress }: GrpcCall): void {
    const { authenticator } = this.#parts
    const { id, role } = OPERATIONS.shouldRateLimit
    const who = authenticator.authenticate({ headers, remoteAddress }, role)
    if ('status' in who) throw grpcErrorOfAnswer(who)
    if (who.tenant !== undefined && narrowingOf(id) === undefined) throw grpcErrorOfAnswer(notForTenants(role))
  }

  #handle(message: Buffer, call: MethodCall): void {
    // Calls of unknown methods have failed already.
    const answering = call.method!.handle(message, call)
    answering?.catch((error: unknown) => call.fail(this.#errorOf(error)))
  }

  #ended(status: GrpcStatus, call: MethodCall): void {
    const { method } = call
    if (method?.isUnary === false) this.#health.forget(call)
    this.#metrics.count(method?.name, status)
    if (method?.isUnary === true) this.#metrics.time(method.name, this.#parts.monotonicMs() - call.startedMs)
  }

  #remove({ openAt }: MethodCall): void {
    const last = this.#calls.pop()!
    if (last.openAt === openAt) return
    this.#calls[openAt] = last
    last.openAt = openAt
  }

  #errorOf(error: unknown): GrpcError {
    const known = grpcErrorOf(error)
    if (known !== undefined) return known
    this.#parts.context.log.error('a gRPC call failed', { error: errorFields(error) })
    return new GrpcError('INTERNAL', 'The service failed. Its log says why.')
  }

  /** Closes all connections at once. */
  #cut(): void {
    for (const session of this.#sessions.keys()) session.destroy()
    for (const socket of this.#sockets) socket.destroy()
  }

  /** Ends what clients let wait: connections without a preface, calls without their message, and sides left open. */
  async #sweep(): Promise<void> {
    const { monotonicMs, context } = this.#parts
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await context.sleep(SWEEP_EVERY_MS, signal).catch(() => undefined)
      const overdueMs = monotonicMs() - CLIENT_TIMEOUT_MS
      for (const [session, openedMs] of this.#sessions) if (openedMs < overdueMs) session.destroy()
      for (const call of [...this.#calls]) {
        if (call.startedMs >= overdueMs) continue
        if (call.isReading) call.fail(new GrpcError('DEADLINE_EXCEEDED', 'The message did not come in time'))
        else if (call.hasEnded) call.endReading()
      }
    }
  }
}

const IGNORED = (): void => undefined

function requireIdentity(headers: IncomingHttpHeaders): void {
  const encoding = headers['grpc-encoding']
  if (encoding === undefined || encoding === 'identity') return
  throw new GrpcError('UNIMPLEMENTED', 'The grpc-encoding is unknown: expected identity')
}
