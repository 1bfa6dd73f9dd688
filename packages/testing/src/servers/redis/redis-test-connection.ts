import type { Socket } from 'node:net'
import { connect as connectTcp } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Timers } from '@sluice/core'
import { systemTimers } from '@sluice/core'
import { LOOPBACK } from '../process/free-port.ts'
import { ServerError } from '../process/server-error.ts'
import type { Reply } from './reply-parser.ts'
import { RedisReplyError, ReplyParser } from './reply-parser.ts'

const LONGEST_WAIT_MS = 10_000

/** Target of a {@link RedisConnection}. */
export interface RedisConnectionOptions {
  readonly port: number
  /** Certificate authority to trust, in PEM: then the connection is encrypted. */
  readonly ca?: string
  readonly username?: string
  readonly password?: string
  /** Encoding of keys and values in both directions. Default: `utf8`; `latin1` preserves arbitrary bytes. */
  readonly encoding?: 'utf8' | 'latin1'
  /** Timeout of the connection, and of each reply, in milliseconds. Default: 10,000. */
  readonly replyWithinMs?: number
  readonly timers?: Timers
}

interface Waiting {
  resolve(reply: Reply): void
  reject(error: unknown): void
  cancel(): void
}

/** A plain connection to a Redis server on 127.0.0.1, without retries and reconnection, so that faults are visible. */
export class RedisConnection {
  readonly #options: RedisConnectionOptions
  readonly #socket: Socket
  readonly #waiting: Waiting[] = []
  readonly #ended: Promise<void>
  #failure: unknown

  private constructor(socket: Socket, options: RedisConnectionOptions) {
    this.#options = options
    this.#socket = socket
    const parser = new ReplyParser(options.encoding)
    socket.on('data', (piece: Buffer) => this.#receive(parser, piece))
    socket.on('error', (error) => {
      this.#failure = error
    })
    this.#ended = new Promise((resolve) => {
      socket.once('close', () => {
        for (const { reject, cancel } of this.#waiting.splice(0)) {
          cancel()
          reject(this.#lost())
        }
        resolve()
      })
    })
  }

  /**
   * Connects and, with a password, authenticates.
   *
   * @throws the error of the socket (`code` ECONNREFUSED when nothing listens), or of the server
   */
  static async open(options: RedisConnectionOptions): Promise<RedisConnection> {
    const { username, password } = options
    const connection = new RedisConnection(await openSocket(options), options)
    try {
      if (password !== undefined) await connection.send('AUTH', ...(username === undefined ? [] : [username]), password)
      return connection
    } catch (error) {
      await connection.close()
      throw error
    }
  }

  /** Whether the connection has ended, from either side. */
  get isClosed(): boolean {
    return this.#socket.destroyed
  }

  /**
   * Sends one command at once, even if earlier ones are pending; resolves with its reply.
   *
   * @throws RedisReplyError if the server answers with an error
   * @throws ServerError `SLUICE_TESTING_NO_REPLY` if the connection ends first, or at the timeout, which ends it
   */
  send(...parts: readonly (string | number)[]): Promise<Reply> {
    if (this.#socket.destroyed) return Promise.reject(this.#lost())
    return new Promise((resolve, reject) => {
      const cancel = endAfterSilence(this.#socket, this.#options)
      this.#waiting.push({ resolve, reject, cancel })
      this.#socket.write(this.#encode(parts))
    })
  }

  /** Ends the connection; pending commands reject. May be called more than once. */
  close(): Promise<void> {
    this.#socket.destroy()
    return this.#ended
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #encode(parts: readonly (string | number)[]): Buffer {
    const { encoding = 'utf8' } = this.#options
    const texts = parts.map((part) => Buffer.from(String(part), encoding))
    return Buffer.concat([
      Buffer.from(`*${texts.length}\r\n`),
      ...texts.flatMap((text) => [Buffer.from(`$${text.length}\r\n`), text, Buffer.from('\r\n')]),
    ])
  }

  #receive(parser: ReplyParser, piece: Buffer): void {
    let replies: readonly Reply[]
    try {
      replies = parser.push(piece)
    } catch (error) {
      this.#socket.destroy(error as Error)
      return
    }
    for (const reply of replies) {
      const waiting = this.#waiting.shift()
      waiting?.cancel()
      if (reply instanceof RedisReplyError) waiting?.reject(reply)
      else waiting?.resolve(reply)
    }
  }

  #lost(): ServerError {
    const message = `the connection to port ${this.#options.port} has ended; expected a reply. Look at what ended it.`
    return new ServerError('SLUICE_TESTING_NO_REPLY', message, this.#failure)
  }
}

async function openSocket(options: RedisConnectionOptions): Promise<Socket> {
  const { port, ca } = options
  const address = { host: LOOPBACK, port }
  const socket = ca === undefined ? connectTcp(address) : connectTls({ ...address, ca })
  const cancel = endAfterSilence(socket, options)
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once(ca === undefined ? 'connect' : 'secureConnect', resolve)
      socket.once('error', reject)
    })
    return socket
  } finally {
    cancel()
  }
}

/** Destroys a socket at the timeout, unless cancelled. */
function endAfterSilence(socket: Socket, options: RedisConnectionOptions): () => void {
  const { replyWithinMs = LONGEST_WAIT_MS, timers = systemTimers } = options
  return timers.schedule(replyWithinMs, () => void socket.destroy(new Error(`silent for ${replyWithinMs} ms`)))
}
