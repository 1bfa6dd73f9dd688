import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { connect as connectPlainly, isIP } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { notSent } from '../../connection/client-failure.ts'
import type { RedisArgument } from '../../connection/connection.ts'
import type { Reconnectable } from '../../connection/connection-keeper.ts'
import type { RedisAddress } from '../../connection/redis-url.ts'
import type { UrlOptions } from '../../connection/url-options.ts'
import { respCommand } from './resp-command.ts'
import type { RespReply } from './resp-reader.ts'
import { RespReader } from './resp-reader.ts'

/** After so long without traffic the network is asked whether the other side is still there. */
const KEEP_ALIVE_AFTER_MS = 5000

/** Whoever waits for a reply. */
interface Waiter {
  readonly resolve: (reply: RespReply) => void
  readonly reject: (error: Error) => void
}

/**
 * A connection to one server, made without a package. A command is written at once, by a single write, in the turn of the event
 * loop it was given in. Replies belong to commands in the order they were written. Nothing is kept for later, written twice or
 * connected again by itself. When it breaks, everything under way is rejected: nobody knows what has been done of it.
 */
export class RespClient
  extends EventEmitter<{ error: [Error]; end: [Error]; disconnect: [] }>
  implements Reconnectable
{
  readonly #address: RedisAddress
  readonly #tls: UrlOptions['tls']
  #socket: Socket | undefined
  #reader = new RespReader()
  #waiting: Waiter[] = []
  #isReady = false
  /** Why it was lost last. */
  #loss: Error | undefined

  constructor(address: RedisAddress, tls: UrlOptions['tls']) {
    super()
    this.#address = address
    this.#tls = tls
  }

  get isOpen(): boolean {
    return this.#socket !== undefined
  }

  /** Whether the server has answered the greeting, and the connection has not been lost since. */
  get isReady(): boolean {
    return this.#isReady
  }

  /** Connects and greets. Rejects with why not: the answer of the server when it turns us away. Ended by {@link destroy}. */
  async connect(): Promise<void> {
    const socket = this.#open()
    await Promise.all(this.#greet(socket))
    if (this.#socket !== socket) throw this.#loss
    this.#isReady = true
  }

  /** Writes a command. Rejects with the answer of the server, or with why the connection broke. */
  send(command: readonly RedisArgument[]): Promise<RespReply> {
    return this.#isReady ? this.#write(this.#socket!, command) : Promise.reject(notSent('the connection', 'it is lost'))
  }

  destroy(): void {
    this.#lose(new Error('the connection was given up'))
  }

  #greet(socket: Socket): Promise<unknown>[] {
    const { username, password, database } = this.#address
    const greetings: Promise<unknown>[] = []
    const greet = (command: readonly string[], whenRefused: (error: Error) => unknown): void => {
      greetings.push(this.#write(socket, command).catch(whenRefused))
    }
    if (username !== undefined) greet(['AUTH', username, password ?? ''], refuseAuth)
    else if (password !== undefined) greet(['AUTH', password], refuseAuth)
    if (database !== 0) {
      greet(['SELECT', String(database)], (error) => {
        throw this.#socket === socket ? new Error(`${error.message} (to SELECT ${database})`) : error
      })
    }
    greet(['TIME'], (error) => {
      // These are of a server that lets us in, and answers.
      if (!LETS_IN.test(error.message)) throw error
    })
    return greetings
  }

  #write(socket: Socket, command: readonly RedisArgument[]): Promise<RespReply> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
      socket.write(respCommand(command))
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
    socket.on('error', (error) => lose(told(error)))
    socket.on('end', () => lose(new Error('the server closed the connection')))
    socket.on('close', () => lose(new Error('the connection was closed')))
    return socket
  }

  #receive(chunk: Buffer): void {
    this.#reader.add(chunk)
    try {
      for (let reply = this.#reader.next(); reply !== undefined; reply = this.#reader.next()) {
        const waiter = this.#waiting.shift()
        if (waiter === undefined) throw new Error('the server sent a reply that nobody has asked for')
        if (reply instanceof Error) waiter.reject(reply)
        else waiter.resolve(reply)
      }
    } catch (error) {
      this.#lose(error as Error)
    }
  }

  /** Ends the connection, and everything that waits for a reply with the error. */
  #lose(error: Error): void {
    const socket = this.#socket
    if (socket === undefined) return
    this.#socket = undefined
    this.#isReady = false
    this.#loss = error
    const waiting = this.#waiting
    this.#waiting = []
    socket.destroy()
    for (const { reject } of waiting) reject(error)
    this.emit('end', error)
  }
}

const LETS_IN = /^(?:NOAUTH|NOPERM|LOADING|BUSY|MASTERDOWN) /

/** A server that does not know the command repeats what it was given, the password included. */
function refuseAuth(error: Error): never {
  throw new Error(error.message.replace(/,? with args beginning with:.*/s, ''))
}

/** An error with something to read in it: that of a name with several addresses has none of its own. */
function told(error: Error): Error {
  if (!(error instanceof AggregateError) || error.message !== '') return error
  const message = error.errors.map((each: unknown) => (each instanceof Error ? each.message : String(each))).join(', ')
  return Object.assign(new Error(message, { cause: error }), { code: (error as { code?: unknown }).code })
}
