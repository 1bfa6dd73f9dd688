import type { Duplex } from 'node:stream'
import type { MessageRates } from '../../config/compiled-config.ts'
import { closeFrame, FrameReader } from './frame-reader.ts'
import { MessageLimit } from './message-limit.ts'

/** Close codes of RFC 6455. */
const GOING_AWAY = 1001
const PROTOCOL_ERROR = 1002
const POLICY_VIOLATION = 1008
const INTERNAL_ERROR = 1011

/** Longest wait for the end of a frame before a connection is cut without a close frame. */
const CLOSE_WITHIN_MS = 1000

/** What a tunnel is made of. */
export interface TunnelOptions {
  readonly client: Duplex
  readonly upstream: Duplex
  /** Limits of what the client sends on this connection; undefined without any. */
  readonly rates: MessageRates | undefined
  /**
   * Counts messages and bytes by the rules of the caller: whether they may pass. Undefined without such rules.
   * They wait for the answer, and so does all that follows.
   */
  readonly admit: ((messages: number, bytes: number) => boolean | Promise<boolean>) | undefined
  readonly idleMs: number
  readonly nowMs: () => number
  /** Told of bytes, for the access log. */
  readonly onBytes: (fromClient: number, fromUpstream: number) => void
  /** Told once when the client sent more than it may. */
  readonly onDenied: () => void
  /** Told once when both connections are closed or being closed. */
  readonly onEnd: () => void
}

/**
 * Passes the bytes of a WebSocket on, both ways. A slow side pauses the other. Frame headers are read along the way, to
 * count messages and to find where a close frame can be put; payloads are not looked at.
 */
export class Tunnel {
  readonly #options: TunnelOptions
  readonly #limit: MessageLimit | undefined
  readonly #fromClient = new FrameReader(true)
  readonly #fromUpstream = new FrameReader(false)
  #closing: Buffer | undefined
  #closeByMs: number = Number.POSITIVE_INFINITY
  #isOver = false
  /** Whether a chunk of the client waits for the answer of `admit`. */
  #isDeciding = false
  #progress = 0
  #seenProgress = -1
  #idleSinceMs = 0

  constructor(options: TunnelOptions) {
    this.#options = options
    const { client, upstream, rates, nowMs } = options
    this.#limit = rates === undefined ? undefined : new MessageLimit(rates, nowMs())
    join(client, upstream, { onClose: () => this.#end(), mayResume: () => !this.#isDeciding })
    join(upstream, client, { onClose: () => this.#end(), mayResume: () => true })
    client.on('data', this.#onClientData)
    upstream.on('data', this.#onUpstreamData)
  }

  /** Ends the tunnel when nothing moves, or when a close frame found no place in time. */
  check(nowMs: number): void {
    if (nowMs >= this.#closeByMs) this.#end()
    else if (this.#progress !== this.#seenProgress) {
      this.#seenProgress = this.#progress
      this.#idleSinceMs = nowMs
    } else if (nowMs - this.#idleSinceMs >= this.#options.idleMs) this.#end()
  }

  /** Tells the client to go, and closes. `reason`: at most 123 bytes. */
  leave(reason: string): void {
    this.#close(GOING_AWAY, reason)
  }

  readonly #onClientData = (chunk: Buffer): void => {
    const { nowMs, onBytes, admit } = this.#options
    this.#progress++
    onBytes(chunk.length, 0)
    if (this.#closing !== undefined) return
    const { messages } = this.#fromClient.read(chunk)
    if ((this.#limit !== undefined || admit !== undefined) && this.#fromClient.isBroken) {
      this.#close(PROTOCOL_ERROR, 'not a frame')
    } else if (this.#limit?.take(messages, chunk.length, nowMs()) === false) this.#deny()
    else if (admit === undefined) this.#passOn(chunk)
    else this.#decide(chunk, messages, admit)
  }

  /** Passes a chunk on if the rules of the caller allow it. The client is not read until that is known. */
  #decide(chunk: Buffer, messages: number, admit: NonNullable<TunnelOptions['admit']>): void {
    const { client } = this.#options
    try {
      const answer = admit(messages, chunk.length)
      if (answer instanceof Promise) {
        this.#isDeciding = true
        client.pause()
        answer.then(
          (isAllowed) => this.#decided(chunk, isAllowed),
          () => this.#close(INTERNAL_ERROR, 'limits could not be checked'),
        )
      } else this.#decided(chunk, answer)
    } catch {
      this.#close(INTERNAL_ERROR, 'limits could not be checked')
    }
  }

  #decided(chunk: Buffer, isAllowed: boolean): void {
    const { client } = this.#options
    if (this.#isOver || this.#closing !== undefined) return
    const isResumed = this.#isDeciding
    this.#isDeciding = false
    if (!isAllowed) this.#deny()
    else if (this.#passOn(chunk) && isResumed) client.resume()
  }

  /** False if the upstream has to read first. */
  #passOn(chunk: Buffer): boolean {
    const { upstream, client } = this.#options
    if (upstream.write(chunk)) return true
    client.pause()
    return false
  }

  #deny(): void {
    this.#options.onDenied()
    this.#close(POLICY_VIOLATION, 'too many messages')
  }

  readonly #onUpstreamData = (chunk: Buffer): void => {
    const { upstream, client, onBytes } = this.#options
    this.#progress++
    onBytes(0, chunk.length)
    const { firstEnd } = this.#fromUpstream.read(chunk)
    if (this.#closing !== undefined) {
      // The frame that was on its way is completed; then the close frame comes.
      if (firstEnd < 0) client.write(chunk)
      else {
        client.write(chunk.subarray(0, firstEnd))
        this.#finishClose()
      }
      return
    }
    if (!client.write(chunk)) upstream.pause()
  }

  /** Closes with a code as soon as no frame is under way. */
  #close(code: number, reason: string): void {
    if (this.#isOver || this.#closing !== undefined) return
    this.#closing = closeFrame(code, reason)
    this.#closeByMs = this.#options.nowMs() + CLOSE_WITHIN_MS
    if (this.#fromUpstream.isBroken) this.#end()
    else if (this.#fromUpstream.isAtBoundary) this.#finishClose()
  }

  #finishClose(): void {
    const { client, upstream } = this.#options
    this.#isOver = true
    upstream.destroy()
    client.end(this.#closing, () => client.destroy())
    this.#options.onEnd()
  }

  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    const { client, upstream } = this.#options
    client.destroy()
    upstream.destroy()
    this.#options.onEnd()
  }
}

interface JoinOptions {
  readonly onClose: () => void
  /** Whether `from` may be read. */
  readonly mayResume: () => boolean
}

/** Passes on that `from` has ended, and that `to` can take more. */
function join(from: Duplex, to: Duplex, { onClose, mayResume }: JoinOptions): void {
  from.on('end', () => void to.end())
  to.on('drain', () => void (mayResume() && from.resume()))
  from.on('error', ignore)
  from.on('close', onClose)
}

function ignore(): void {
  // `close` follows.
}
