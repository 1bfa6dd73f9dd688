import type { Socket } from 'node:net'
import { CommandParser, ProtocolError } from './command-parser.ts'
import type { CommandRunner } from './command-runner.ts'
import type { ReplyWriter } from './reply-writer.ts'
import type { RespSession } from './resp-session.ts'

/** What all connections of a thread share. */
export interface ConnectionParts {
  readonly runner: CommandRunner
  /** Used while a connection runs commands, and empty in between. */
  readonly writer: ReplyWriter
  /** Runs a callback at the end of this event loop iteration. */
  readonly atTurnEnd: (run: () => void) => void
  readonly monotonicMs: () => number
}

/** Replies that wait for the store, and bytes that wait for the client: beyond these nothing more is read. */
const MAX_PENDING = 1024
const MAX_UNSENT_BYTES = 262_144

/** A reply whose turn has not come. */
interface PendingReply {
  bytes: Buffer | undefined
}

/** What browsers can be made to send here. */
const HTTP = /^(?:post|host:)$|\bhttp\/1\.[01]$/i

/**
 * One connection. Commands that arrive together are run together and answered in one write, in their order. Those whose
 * store answers later are all asked before the first answer is waited for.
 */
export class RespConnection {
  readonly session: RespSession
  readonly #socket: Socket
  readonly #parts: ConnectionParts
  readonly #parser = new CommandParser()
  #pending: PendingReply[] = []
  #isFlushPlanned = false
  #isPaused = false
  /** Whether the client has said that nothing more comes. */
  #hasEnded = false
  /** Since when a part of a command is here; undefined if there is none. */
  #waitingSinceMs: number | undefined

  constructor(socket: Socket, session: RespSession, parts: ConnectionParts) {
    this.#socket = socket
    this.session = session
    this.#parts = parts
    this.#waitingSinceMs = session.hasAccess ? undefined : parts.monotonicMs()
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
    socket.on('drain', () => this.#resume())
    socket.on('end', () => {
      this.#hasEnded = true
      this.#endIfDone()
    })
    // A connection that breaks is closed; there is no client to answer.
    socket.on('error', () => socket.destroy())
  }

  /** Whether the client has let a command, or its key, wait for longer than `maxMs`. */
  isOverdue(nowMs: number, maxMs: number): boolean {
    return this.#waitingSinceMs !== undefined && nowMs - this.#waitingSinceMs > maxMs
  }

  /** Answers what has come, and closes. */
  end(): void {
    this.session.isEnding = true
    this.#socket.pause()
    this.#endIfDone()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #read(chunk: Buffer): void {
    this.#parser.add(chunk)
    this.#run()
  }

  #run(): void {
    const { runner, writer } = this.#parts
    const { session } = this
    const parser = this.#parser
    session.refresh()
    runner.begin()
    let hasRun = false
    try {
      while (!session.isEnding && !this.#isFull()) {
        const count = parser.next()
        if (count < 0) break
        if (count === 0) continue
        if (parser.isInline && HTTP.test(this.#word(count))) {
          this.#socket.destroy()
          writer.take()
          return
        }
        hasRun = true
        const later = runner.run(session, parser, { count, writer })
        if (later !== undefined) this.#wait(later)
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      writer.error(`ERR Protocol error: ${error.message}`)
      session.isEnding = true
    }
    this.#noteWaiting(hasRun)
    this.#send()
    parser.keepRest()
  }

  /** The word that tells HTTP from inline commands: `POST`, `Host:`, or the end of a request line. */
  #word(count: number): string {
    const first = this.#parser.text(0)
    return /^(?:post|host:)$/i.test(first) || count === 1 ? first : this.#parser.text(count - 1)
  }

  #isFull(): boolean {
    const { writer } = this.#parts
    if (this.#pending.length < MAX_PENDING && writer.length + this.#socket.writableLength < MAX_UNSENT_BYTES)
      return false
    this.#isPaused = true
    this.#socket.pause()
    return true
  }

  /** Keeps the place of a reply that comes later. */
  #wait(later: Promise<(writer: ReplyWriter) => void>): void {
    const { writer, atTurnEnd } = this.#parts
    if (writer.length > 0) this.#pending.push({ bytes: writer.take() })
    const reply: PendingReply = { bytes: undefined }
    this.#pending.push(reply)
    void later.then((write) => {
      writer.protocol = this.session.protocol
      write(writer)
      reply.bytes = writer.take()
      if (this.#isFlushPlanned) return
      this.#isFlushPlanned = true
      atTurnEnd(() => this.#flush())
    })
  }

  /** Sends what was written by commands that were just run, unless others must be answered before. */
  #send(): void {
    const { writer } = this.#parts
    if (writer.length > 0) {
      const bytes = writer.take()
      if (this.#pending.length > 0) this.#pending.push({ bytes })
      else if (!this.#socket.destroyed) this.#socket.write(bytes)
    }
    this.#endIfDone()
  }

  /** Sends the replies whose turn has come. */
  #flush(): void {
    this.#isFlushPlanned = false
    const waiting = this.#pending.findIndex(({ bytes }) => bytes === undefined)
    const ready = waiting < 0 ? this.#pending : this.#pending.slice(0, waiting)
    this.#pending = waiting < 0 ? [] : this.#pending.slice(waiting)
    if (ready.length > 0 && !this.#socket.destroyed) {
      this.#socket.write(ready.length === 1 ? ready[0]!.bytes! : Buffer.concat(ready.map(({ bytes }) => bytes!)))
    }
    this.#resume()
    this.#endIfDone()
  }

  /** Goes on with what was received before reading stopped. */
  #resume(): void {
    if (!this.#isPaused || this.session.isEnding || this.#socket.writableLength >= MAX_UNSENT_BYTES) return
    this.#isPaused = false
    this.#run()
    if (!this.#isPaused) this.#socket.resume()
  }

  #endIfDone(): void {
    const isDone = this.session.isEnding || (this.#hasEnded && !this.#isPaused)
    if (!isDone || this.#pending.length > 0 || this.#socket.writableEnded) return
    this.#socket.end()
    this.#socket.once('finish', () => this.#socket.destroySoon())
  }

  #noteWaiting(hasRun: boolean): void {
    const { hasAccess } = this.session
    const isWaiting = !this.#isPaused && (this.#parser.isWaiting || !hasAccess)
    // After a command, what is left is the begin of another one, which has its own time. A key does not get more.
    if (!isWaiting || (hasRun && hasAccess)) this.#waitingSinceMs = undefined
    if (isWaiting) this.#waitingSinceMs ??= this.#parts.monotonicMs()
  }
}
