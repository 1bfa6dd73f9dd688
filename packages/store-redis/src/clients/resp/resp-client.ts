import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { connect as connectPlainly, isIP } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { systemMonotonicMs } from '@sluice/core/internal'
import type { RedisArgument, RedisConnection } from '../../connection/connection.ts'
import { notSent } from '../../connection/connection.ts'
import type { Reconnectable, ReconnectorOptions } from '../../connection/reconnector.ts'
import { Reconnector } from '../../connection/reconnector.ts'
import type { RedisAddress, UrlOptions } from '../../connection/redis-url.ts'
import type { RespReply } from './resp-protocol.ts'
import { encodeCommand, RespReader } from './resp-protocol.ts'

/** TCP keepalive probes start after this time without traffic. */
const KEEP_ALIVE_AFTER_MS = 5000

/** A connection that has not replied to any command for so long is considered dead. */
export const MAX_SILENCE_MS = 3000

/** A command that waits for its reply. */
interface PendingCommand {
  readonly resolve: (reply: RespReply) => void
  readonly reject: (error: Error) => void
}

/**
 * A client for one server that needs no package. It writes a command at once, with a single write, and matches replies
 * to commands by their order. It never queues or resends. When the connection breaks, all in-flight commands are
 * rejected: whether they were executed is unknown. It reconnects once {@link keepConnected} was called.
 */
export class RespClient
  extends EventEmitter<{ error: [Error]; end: [Error]; disconnect: [] }>
  implements Reconnectable, RedisConnection
{
  readonly client = 'the connection'
  readonly isCluster = false
  readonly #address: RedisAddress
  readonly #tls: UrlOptions['tls']
  readonly #monotonicMs: () => number
  #reconnector: Reconnector | undefined
  #socket: Socket | undefined
  #reader = new RespReader()
  #pending: PendingCommand[] = []
  #isReady = false
  /** When the last reply arrived, or the first command without a reply was sent. */
  #repliedAtMs = 0
  /** Why the last connection was lost. */
  #loss: Error | undefined

  constructor(address: RedisAddress, tls: UrlOptions['tls'], monotonicMs: () => number = systemMonotonicMs) {
    super()
    this.#address = address
    this.#tls = tls
    this.#monotonicMs = monotonicMs
  }

  /** Connects, and reconnects whenever the connection is lost, until {@link close}. */
  keepConnected(options: ReconnectorOptions): this {
    this.#reconnector = new Reconnector(this, options)
    return this
  }

  get isOpen(): boolean {
    return this.#socket !== undefined
  }

  /** Whether the handshake is complete, and the connection has not been lost since. */
  isReady(): boolean {
    return this.#isReady
  }

  obstacle(): Error | undefined {
    return this.#reconnector?.failure
  }

  async close(): Promise<void> {
    await this.#reconnector?.close()
  }

  /** Connects and authenticates. Rejects with the server's error reply, or with the connection error. */
  async connect(): Promise<void> {
    const socket = this.#open()
    await Promise.all(this.#handshake(socket))
    if (this.#socket !== socket) throw this.#loss
    this.#isReady = true
  }

  /** Writes a command. Rejects with the server's error reply, or with the reason why the connection broke. */
  send(command: readonly RedisArgument[]): Promise<RespReply> {
    const nowMs = this.#monotonicMs()
    if (this.#pending.length === 0) this.#repliedAtMs = nowMs
    // Checked when a command is sent, so it needs no timer.
    else if (nowMs - this.#repliedAtMs > MAX_SILENCE_MS) this.destroy()
    return this.#isReady ? this.#write(this.#socket!, command) : Promise.reject(notSent('the connection', 'it is lost'))
  }

  destroy(): void {
    this.#lose(new Error('the connection was given up'))
  }

  #handshake(socket: Socket): Promise<unknown>[] {
    const { username, password, database } = this.#address
    const replies: Promise<unknown>[] = []
    const send = (command: readonly string[], onError: (error: Error) => unknown): void => {
      replies.push(this.#write(socket, command).catch(onError))
    }
    if (username !== undefined) send(['AUTH', username, password ?? ''], throwWithoutArguments)
    else if (password !== undefined) send(['AUTH', password], throwWithoutArguments)
    if (database !== 0) {
      send(['SELECT', String(database)], (error) => {
        throw this.#socket === socket ? new Error(`${error.message} (to SELECT ${database})`) : error
      })
    }
    send(['TIME'], (error) => {
      // The server replies, and accepts the connection.
      if (!ACCEPTED.test(error.message)) throw error
    })
    return replies
  }

  #write(socket: Socket, command: readonly RedisArgument[]): Promise<RespReply> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ resolve, reject })
      socket.write(encodeCommand(command))
    })
  }

  #open(): Socket {
    const { host, port, tls: isSecure } = this.#address
    const where = { host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_AFTER_MS }
    const socket = isSecure
      ? connectSecurely({ ...where, ...(isIP(host) === 0 && { servername: host }), ...this.#tls })
      : connectPlainly(where)
    this.#socket = socket
    this.#reader = new RespReader()
    const lose = (error: Error): void => {
      if (this.#socket === socket) this.#lose(error)
    }
    socket.on('data', (chunk: Buffer) => {
      if (this.#socket === socket) this.#receive(chunk)
    })
    socket.on('error', (error) => lose(withMessage(error)))
    socket.on('end', () => lose(new Error('the server closed the connection')))
    socket.on('close', () => lose(new Error('the connection was closed')))
    return socket
  }

  #receive(chunk: Buffer): void {
    this.#reader.add(chunk)
    this.#repliedAtMs = this.#monotonicMs()
    try {
      for (let reply = this.#reader.next(); reply !== undefined; reply = this.#reader.next()) {
        const command = this.#pending.shift()
        if (command === undefined) throw new Error('the server sent a reply without a command')
        if (reply instanceof Error) command.reject(reply)
        else command.resolve(reply)
      }
    } catch (error) {
      this.#lose(error as Error)
    }
  }

  /** Ends the connection, and rejects all in-flight commands. */
  #lose(error: Error): void {
    const socket = this.#socket
    if (socket === undefined) return
    this.#socket = undefined
    this.#isReady = false
    this.#loss = error
    const pending = this.#pending
    this.#pending = []
    socket.destroy()
    for (const { reject } of pending) reject(error)
    this.emit('end', error)
  }
}

const ACCEPTED = /^(?:NOAUTH|NOPERM|LOADING|BUSY|MASTERDOWN) /

/** A server that does not know AUTH repeats its arguments in the error reply, including the password. */
function throwWithoutArguments(error: Error): never {
  throw new Error(error.message.replace(/,? with args beginning with:.*/s, ''))
}

/** An error with a message: the error for a host name with several addresses has none. */
function withMessage(error: Error): Error {
  if (!(error instanceof AggregateError) || error.message !== '') return error
  const message = error.errors.map((each: unknown) => (each instanceof Error ? each.message : String(each))).join(', ')
  return Object.assign(new Error(message, { cause: error }), { code: (error as { code?: unknown }).code })
}
