import type { Server, Socket } from 'node:net'
import { createServer } from 'node:net'
import type { Server as TlsServer } from 'node:tls'
import { createServer as createTlsServer } from 'node:tls'
import type { LoopDelay, MetricRegistry, Sleep } from '@sluice/runtime'
import { InFlight, LagGuard } from '@sluice/runtime'
import type { Authenticator } from '../../auth/authenticator.ts'
import { errorFields } from '../../observability/error-fields.ts'
import { VERSION } from '../../operations/openapi.ts'
import { AdHocLimits } from '../../operations/throttle/cl-throttle.ts'
import type { ServiceContext } from '../../service-context.ts'
import type { ListenerSettings } from '../../settings/settings.ts'
import type { ConnectionLimit } from '../connection-limit.ts'
import type { Listener } from '../listener.ts'
import { listen, listenAttempt, listenerAccess } from '../listener.ts'
import { ListenerTls } from '../tls-files.ts'
import type { ThrottleObserver } from './command-runner.ts'
import { CommandRunner } from './command-runner.ts'
import type { ConnectionParts } from './connection.ts'
import { RespConnection } from './connection.ts'
import { ReplyWriter } from './reply-writer.ts'
import type { SessionParts } from './resp-session.ts'
import { RespSession } from './resp-session.ts'
import type { SluiceCommandParts } from './sluice-commands.ts'

/** What the listener of one thread is made of. */
export interface RespListenerParts {
  readonly context: ServiceContext
  readonly settings: ListenerSettings
  readonly port: number
  /** Whether other threads listen on the same port. */
  readonly sharesPort: boolean
  readonly authenticator: Pick<Authenticator, 'authenticateKey'>
  readonly connectionLimit: ConnectionLimit
  readonly reset: SluiceCommandParts['reset']
  readonly metrics: MetricRegistry
  readonly observer: ThrottleObserver
  readonly loopDelay: LoopDelay
  readonly monotonicMs: () => number
  readonly atTurnEnd: (run: () => void) => void
}

/** Time for the rest of a command, and for a key where one is needed. */
const COMMAND_TIMEOUT_MS = 10_000

/** How often it is looked for connections that are overdue. */
const SWEEP_EVERY_MS = 1000

/** Longest wait of a stop for replies that wait for the store. */
const GRACE_MS = 10_000

/** See the HTTP listener. */
const LATE_FROM_MS = 1000

const TOO_MANY_CONNECTIONS = '-ERR max number of clients reached: too many connections from this address\r\n'

/** Serves the Redis protocol. */
export class RespListener implements Listener {
  readonly name = 'resp'
  readonly tls: ListenerTls | undefined
  readonly #parts: RespListenerParts
  readonly #server: Server
  readonly #open = new Set<RespConnection>()
  /** Those of `#open`; with TLS, also those whose handshake is not done. */
  readonly #sockets = new Set<Socket>()
  readonly #shared: ConnectionParts
  readonly #session: SessionParts
  readonly #runner: CommandRunner
  readonly #stopWatching: () => void
  readonly #stopping = new AbortController()

  constructor(parts: RespListenerParts) {
    this.#parts = parts
    const { context, authenticator, monotonicMs, atTurnEnd, loopDelay, reset, metrics, observer } = parts
    const { clock, settings, store, log } = context
    const guard = new LagGuard({ delay: loopDelay, nowMs: () => clock.nowMicros() / 1000, lateFromMs: LATE_FROM_MS })
    const inFlightLimit = new InFlight({ most: settings.maxInFlight })
    const isOverloaded = (): boolean => guard.isLate()
    const limits = new AdHocLimits(store, settings.maxAdHocLimits)
    const runner = new CommandRunner({
      context,
      reset,
      limits,
      observer,
      metrics,
      log,
      version: VERSION,
      inFlightLimit,
      isOverloaded,
    })
    this.#runner = runner
    this.#stopWatching = watchLimits(metrics, limits, runner)
    this.#shared = { runner, writer: new ReplyWriter(), atTurnEnd, monotonicMs }
    this.#session = { authenticator, monotonicMs, needsKey: listenerAccess('resp', settings) === 'key' }
    const { tls } = parts.settings
    this.tls = tls && new ListenerTls({ ...context, listener: 'resp', tls })
    this.#server =
      this.tls === undefined
        ? createServer({ allowHalfOpen: true, noDelay: true })
        : // Not half-open: a client that leaves during the handshake would keep its connection.
          createTlsServer({ ...this.tls.files, noDelay: true, handshakeTimeout: COMMAND_TIMEOUT_MS })
    // Before the server itself, which begins the handshake.
    this.#server.prependListener('connection', (socket: Socket) => this.#count(socket))
    this.#server.on(this.tls === undefined ? 'connection' : 'secureConnection', (socket: Socket) => this.#serve(socket))
    // Of TLS: a client that speaks something else, or has no certificate. Its connection is closed.
    this.#server.on('tlsClientError', (_error: Error, socket: Socket) => socket.destroy())
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
    const { settings, log, sleep } = context
    const onLater = (error: Error): void =>
      log.error('the Redis protocol listener failed', { error: errorFields(error) })
    await listen(this.#server, listenAttempt('resp', settings, port), { sharesPort, onLater })
    void this.#sweep(sleep)
    void this.tls?.follow(this.#server as TlsServer, this.#stopping.signal)
  }

  /** The protocol cannot tell clients to leave: they are served until the listener stops. */
  async drain(drainMs: number): Promise<void> {
    const { sleep } = this.#parts.context
    if (drainMs > 0 && this.#server.listening) await sleep(drainMs, this.#stopping.signal).catch(() => undefined)
  }

  async stop(): Promise<void> {
    const { sleep } = this.#parts.context
    this.#stopping.abort()
    this.#stopWatching()
    const isListening = this.#server.listening
    const closed = new Promise<void>((resolve) => {
      if (isListening) this.#server.close(() => resolve())
      else resolve()
    })
    for (const connection of this.#open) connection.end()
    if (this.#open.size === 0) this.#cut()
    const done = new AbortController()
    const graceOver = sleep(GRACE_MS, done.signal).then(
      () => this.#cut(),
      () => undefined,
    )
    await closed
    done.abort()
    await graceOver
  }

  /** Closes a connection that is one too many. */
  #count(socket: Socket): void {
    const closed = this.#parts.connectionLimit.open(socket.remoteAddress ?? '')
    if (closed === undefined) {
      socket.on('error', () => undefined)
      if (this.tls === undefined) socket.write(TOO_MANY_CONNECTIONS, () => socket.destroy())
      else socket.destroy()
      return
    }
    this.#sockets.add(socket)
    socket.once('close', () => {
      closed()
      this.#sockets.delete(socket)
    })
  }

  #serve(socket: Socket): void {
    if (this.tls === undefined && !this.#sockets.has(socket)) return
    const session = new RespSession(this.#session, socket.remoteAddress ?? '')
    const connection = new RespConnection(socket, session, this.#shared)
    this.#open.add(connection)
    socket.once('close', () => {
      this.#open.delete(connection)
      // Those that are left have not finished their handshake.
      if (this.#stopping.signal.aborted && this.#open.size === 0) this.#cut()
    })
    if (this.#stopping.signal.aborted) connection.end()
  }

  /** Closes all connections at once. */
  #cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  /** Closes connections that let a command wait, and reports decisions. */
  async #sweep(sleep: Sleep): Promise<void> {
    const { monotonicMs } = this.#parts
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await sleep(SWEEP_EVERY_MS, signal).catch(() => undefined)
      this.#runner.report()
      const nowMs = monotonicMs()
      for (const connection of this.#open) if (connection.isOverdue(nowMs, COMMAND_TIMEOUT_MS)) connection.destroy()
    }
  }
}

function watchLimits(metrics: MetricRegistry, limits: AdHocLimits, runner: CommandRunner): () => void {
  const inUse = metrics
    .gauge({
      name: 'sluice_ad_hoc_limits',
      help: 'Different limits that CL.THROTTLE has named, in the thread with most of them.',
      merge: 'max',
    })
    .labels()
  return metrics.beforeSnapshot(() => {
    runner.report()
    inUse.set(limits.size)
  })
}
