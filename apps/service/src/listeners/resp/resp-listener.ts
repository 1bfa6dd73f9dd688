import { readFileSync } from 'node:fs'
import type { Server, Socket } from 'node:net'
import { createServer } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { LoopDelay, MetricRegistry, Sleep } from '@sluice/runtime'
import { InFlight, LagGuard } from '@sluice/runtime'
import type { Authenticator } from '../../auth/authenticator.ts'
import { errorFields } from '../../observability/error-fields.ts'
import { VERSION } from '../../operations/openapi.ts'
import { AdHocLimits } from '../../operations/throttle/ad-hoc-limits.ts'
import type { ServiceContext } from '../../service-context.ts'
import { ServiceError } from '../../service-error.ts'
import type { ListenerSettings, TlsSettings } from '../../settings.ts'
import type { ConnectionLimit } from '../connection-limit.ts'
import type { Listener } from '../listener.ts'
import { listen, listenerAccess, PORT_VARIABLES } from '../listener.ts'
import { CommandRunner } from './command-runner.ts'
import type { ConnectionParts } from './connection.ts'
import { RespConnection } from './connection.ts'
import type { LimitCommandParts } from './limit-commands.ts'
import { ReplyWriter } from './reply-writer.ts'
import type { SessionParts } from './session.ts'
import { RespSession } from './session.ts'

/** What the listener of one thread is made of. */
export interface RespListenerParts {
  readonly context: ServiceContext
  readonly settings: ListenerSettings
  readonly port: number
  /** Whether other threads listen on the same port. */
  readonly sharesPort: boolean
  readonly authenticator: Pick<Authenticator, 'authenticate'>
  readonly connectionLimit: ConnectionLimit
  readonly reset: LimitCommandParts['reset']
  readonly metrics: MetricRegistry
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
  readonly #parts: RespListenerParts
  readonly #server: Server
  readonly #open = new Set<RespConnection>()
  readonly #shared: ConnectionParts
  readonly #session: SessionParts
  readonly #stopping = new AbortController()

  constructor(parts: RespListenerParts) {
    this.#parts = parts
    const { context, authenticator, monotonicMs, atTurnEnd, loopDelay, reset, metrics } = parts
    const { clock, settings, store, log } = context
    const guard = new LagGuard({ delay: loopDelay, nowMs: () => clock.nowMicros() / 1000, lateFromMs: LATE_FROM_MS })
    const inFlightLimit = new InFlight({ most: settings.maxInFlight })
    const isOverloaded = (): boolean => guard.isLate()
    const limits = new AdHocLimits(store)
    const runner = new CommandRunner({
      context,
      reset,
      limits,
      metrics,
      log,
      version: VERSION,
      inFlightLimit,
      isOverloaded,
    })
    this.#shared = { runner, writer: new ReplyWriter(), atTurnEnd, monotonicMs }
    this.#session = { authenticator, monotonicMs, needsKey: listenerAccess('resp', settings) === 'key' }
    const accept = (socket: Socket): void => this.#accept(socket)
    const { tls } = parts.settings
    const options = { allowHalfOpen: true, noDelay: true }
    this.#server =
      tls === undefined ? createServer(options, accept) : createTlsServer({ ...options, ...tlsOf(tls) }, accept)
    // Of TLS: a client that speaks something else, or has no certificate. Its connection is closed.
    this.#server.on('tlsClientError', (_error: Error, socket: Socket) => socket.destroy())
  }

  get port(): number | undefined {
    const address = this.#server.address()
    return address === null || typeof address === 'string' ? undefined : address.port
  }

  get connections(): number {
    return this.#open.size
  }

  async start(): Promise<void> {
    const { port, sharesPort, context } = this.#parts
    const { settings, log, sleep } = context
    const attempt = { host: settings.host, port, variable: PORT_VARIABLES.resp }
    const onLater = (error: Error): void =>
      log.error('the Redis protocol listener failed', { error: errorFields(error) })
    await listen(this.#server, attempt, { sharesPort, onLater })
    void this.#sweep(sleep)
  }

  /** The protocol cannot tell clients to leave: they are served until the listener stops. */
  async drain(drainMs: number): Promise<void> {
    const { sleep } = this.#parts.context
    if (drainMs > 0 && this.#server.listening) await sleep(drainMs, this.#stopping.signal).catch(() => undefined)
  }

  async stop(): Promise<void> {
    const { sleep } = this.#parts.context
    this.#stopping.abort()
    const isListening = this.#server.listening
    const closed = new Promise<void>((resolve) => {
      if (isListening) this.#server.close(() => resolve())
      else resolve()
    })
    for (const connection of this.#open) connection.end()
    const done = new AbortController()
    const graceOver = sleep(GRACE_MS, done.signal).then(
      () => {
        for (const connection of this.#open) connection.destroy()
      },
      () => undefined,
    )
    await closed
    done.abort()
    await graceOver
  }

  #accept(socket: Socket): void {
    const remoteAddress = socket.remoteAddress ?? ''
    const closed = this.#parts.connectionLimit.open(remoteAddress)
    if (closed === undefined) {
      socket.on('error', () => undefined)
      socket.write(TOO_MANY_CONNECTIONS, () => socket.destroy())
      return
    }
    const connection = new RespConnection(socket, new RespSession(this.#session, remoteAddress), this.#shared)
    this.#open.add(connection)
    socket.once('close', () => {
      closed()
      this.#open.delete(connection)
    })
    if (this.#stopping.signal.aborted) connection.end()
  }

  /** Closes connections that let a command wait. */
  async #sweep(sleep: Sleep): Promise<void> {
    const { monotonicMs } = this.#parts
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await sleep(SWEEP_EVERY_MS, signal).catch(() => undefined)
      const nowMs = monotonicMs()
      for (const connection of this.#open) if (connection.isOverdue(nowMs, COMMAND_TIMEOUT_MS)) connection.destroy()
    }
  }
}

function tlsOf({ cert, key, clientCa }: TlsSettings): Readonly<Record<string, unknown>> {
  const files = { cert: readPem(cert, '--resp-tls-cert'), key: readPem(key, '--resp-tls-key') }
  if (clientCa === undefined) return files
  return { ...files, ca: readPem(clientCa, '--resp-tls-client-ca'), requestCert: true, rejectUnauthorized: true }
}

function readPem(path: string, flag: string): Buffer {
  try {
    return readFileSync(path)
  } catch (cause) {
    throw new ServiceError('SLUICE_SERVICE_INVALID_SETTING', {
      received: `${flag} ${path}, which cannot be read (${(cause as Error).message})`,
      expected: 'a readable PEM file',
      action: 'Correct the path, or the permissions of the file.',
      cause,
    })
  }
}
