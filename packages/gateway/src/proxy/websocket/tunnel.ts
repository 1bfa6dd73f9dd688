import type { Duplex } from 'node:stream'
import { closeFrame, FrameReader } from './frame-reader.ts'
import { MessageLimit, type MessageRates } from './message-limit.ts'

/** Close codes of RFC 6455. */
const GOING_AWAY = 1001
const PROTOCOL_ERROR = 1002
const POLICY_VIOLATION = 1008

/** Longest wait for the end of a frame before a connection is cut without a close frame. */
const CLOSE_WITHIN_MS = 1000

/** What a tunnel is made of. */
export interface TunnelOptions {
  readonly client: Duplex
  readonly upstream: Duplex
  /** Limits of what the client sends; undefined without any. */
  readonly rates: MessageRates | undefined
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
  #progress = 0
  #seenProgress = -1
  #idleSinceMs = 0

  constructor(options: TunnelOptions) {
    this.#options = options
    const { client, upstream, rates, nowMs } = options
    this.#limit = rates === undefined ? undefined : new MessageLimit(rates, nowMs())
    join(client, upstream, () => this.#end())
    join(upstream, client, () => this.#end())
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

  /** Tells the client that the gateway stops, and closes. */
  leave(): void {
    this.#close(GOING_AWAY, 'the gateway stops')
  }

  readonly #onClientData = (chunk: Buffer): void => {
    const { upstream, client, nowMs, onBytes, onDenied } = this.#options
    this.#progress++
    onBytes(chunk.length, 0)
    if (this.#closing !== undefined) return
    const { messages } = this.#fromClient.read(chunk)
    if (this.#limit !== undefined) {
      if (this.#fromClient.isBroken) {
        this.#close(PROTOCOL_ERROR, 'not a frame')
        return
      }
      if (!this.#limit.take(messages, chunk.length, nowMs())) {
        onDenied()
        this.#close(POLICY_VIOLATION, 'too many messages')
        return
      }
    }
    if (!upstream.write(chunk)) client.pause()
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

/** Passes on that `from` has ended, and that `to` can take more. */
function join(from: Duplex, to: Duplex, onClose: () => void): void {
  from.on('end', () => void to.end())
  to.on('drain', () => void from.resume())
  from.on('error', ignore)
  from.on('close', onClose)
}

function ignore(): void {
  // `close` follows.
}
