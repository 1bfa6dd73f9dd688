import type { Server, Socket } from 'node:net'
import { connect, createServer } from 'node:net'
import type { Timers } from '@sluice/core'
import { SluiceError, systemTimers } from '@sluice/core'
import { LOOPBACK, onFreePorts } from '../process/free-port.ts'
import { ServerError } from '../process/server-error.ts'
import type { ByteTotals, Faults, Passage } from './faulty-connection.ts'
import { FaultyConnection } from './faulty-connection.ts'

/** What a {@link FaultyProxy} does with connections: see its methods of the same names. */
export type ProxyMode = 'pass' | 'blackhole' | 'drop-replies' | 'refuse'

const PASSAGES: Readonly<Record<ProxyMode, Passage>> = {
  pass: { requests: true, replies: true },
  blackhole: { requests: false, replies: false },
  'drop-replies': { requests: true, replies: false },
  refuse: { requests: true, replies: true },
}

/** The server behind a {@link FaultyProxy}. */
export interface FaultyProxyOptions {
  /** The port of the server on 127.0.0.1. It need not run: then clients are accepted and reset. */
  readonly port: number
  /** Timers that delay replies. */
  readonly timers?: Timers
}

/**
 * A TCP proxy in front of a server that simulates network faults. It forwards everything until told otherwise. A
 * connection that has lost bytes is never repaired; it is reset when they could flow again.
 */
export class FaultyProxy {
  readonly host: string = LOOPBACK
  /** Address for clients; it never changes. */
  readonly port: number
  readonly #serverPort: number
  readonly #connections = new Set<FaultyConnection>()
  readonly #faults: { -readonly [Name in keyof Faults]: Faults[Name] }
  #accepted = 0
  #listener: Server | undefined
  #mode: ProxyMode = 'pass'
  #isClosed = false

  private constructor(port: number, options: FaultyProxyOptions) {
    this.port = port
    this.#serverPort = options.port
    this.#faults = {
      passage: PASSAGES.pass,
      delayMs: 0,
      cutAfter: undefined,
      timers: options.timers ?? systemTimers,
      totals: { toServer: 0, toClients: 0, lost: 0 },
    }
  }

  /** Starts a proxy on a free port; resolves when it accepts connections. */
  static start(options: FaultyProxyOptions): Promise<FaultyProxy> {
    return onFreePorts(1, async ([port]) => {
      const proxy = new FaultyProxy(port!, options)
      await proxy.#listen()
      return proxy
    })
  }

  get mode(): ProxyMode {
    return this.#mode
  }

  /** Number of connected clients. */
  get connections(): number {
    return [...this.#connections].filter(({ isOpen }) => isOpen).length
  }

  /** Bytes, and accepted connections, since the start. */
  get totals(): Readonly<ByteTotals & { connections: number }> {
    return { ...this.#faults.totals, connections: this.#accepted }
  }

  /** Forwards everything. Undoes all other modes except a delay. */
  passThrough(): Promise<void> {
    return this.#become('pass')
  }

  /** Connections stay, new ones are accepted, and nothing is forwarded: no byte, no end, no reset. */
  blackHole(): Promise<void> {
    return this.#become('blackhole')
  }

  /** Requests reach the server, which processes them; its replies are lost. */
  dropReplies(): Promise<void> {
    return this.#become('drop-replies')
  }

  /** New connections are refused (ECONNREFUSED). Existing ones stay; {@link resetAll} ends them. */
  refuse(): Promise<void> {
    return this.#become('refuse')
  }

  /** Resets the connection with the next reply, both sides, after `bytes` bytes of it (0: before the first); once. */
  resetMidReply(bytes: number): void {
    this.#faults.cutAfter = requireCount('bytes', bytes)
  }

  /** Resets all connections (RST), both sides, now. New ones follow the current mode. */
  resetAll(): void {
    for (const connection of this.#connections) connection.reset()
  }

  /** From now on replies are delayed by `delayMs` milliseconds, in order; 0 for no delay. */
  delay(ms: number): void {
    this.#faults.delayMs = requireCount('ms', ms)
  }

  /** Ends all connections and stops listening. May be called more than once. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#stopListening()
    this.resetAll()
    await Promise.all([...this.#connections].map(({ closed }) => closed))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #become(mode: ProxyMode): Promise<void> {
    if (this.#isClosed) {
      const message = `the proxy on port ${this.port} is closed and cannot change to '${mode}'. Start a new one.`
      throw new ServerError('SLUICE_TESTING_NOT_RUNNING', message)
    }
    this.#mode = mode
    this.#faults.passage = PASSAGES[mode]
    for (const connection of this.#connections) connection.review()
    if (mode === 'refuse') this.#stopListening()
    else if (this.#listener === undefined) await this.#listen()
  }

  #stopListening(): void {
    // The port is free at once; the connections that came through it live on.
    this.#listener?.close()
    this.#listener = undefined
  }

  #listen(): Promise<void> {
    const listener = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#accept(client))
    this.#listener = listener
    return new Promise((resolve, reject) => {
      listener.once('error', (error) => reject(portTaken(this.port, error)))
      listener.listen(this.port, LOOPBACK, resolve)
    })
  }

  #accept(client: Socket): void {
    const server = connect({ host: LOOPBACK, port: this.#serverPort, allowHalfOpen: true, noDelay: true })
    const connection = new FaultyConnection(client, server, this.#faults)
    this.#accepted++
    this.#connections.add(connection)
    connection.closed.then(() => this.#connections.delete(connection))
  }
}

function portTaken(port: number, cause: Error): ServerError {
  const message = `a proxy cannot listen on port ${port} of ${LOOPBACK}: taken by another process. Start it once more.`
  return new ServerError('SLUICE_TESTING_PORT_TAKEN', message, cause)
}

function requireCount(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 0) return value
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: `${name} is out of range`,
    received: value,
    expected: 'a whole number, 0 or more',
  })
}
