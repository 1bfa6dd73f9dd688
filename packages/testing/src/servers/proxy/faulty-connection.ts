import type { Socket } from 'node:net'
import type { Timers } from '@sluice/core'

/** Which bytes a connection forwards; all others are lost. */
export interface Passage {
  readonly requests: boolean
  readonly replies: boolean
}

/** Bytes since the start. */
export interface ByteTotals {
  /** Forwarded from clients to the server. */
  toServer: number
  /** Forwarded from the server to clients. */
  toClients: number
  /** Received and not forwarded, in either direction. */
  lost: number
}

/** The current faults of all connections of a proxy. */
export interface Faults {
  readonly passage: Passage
  readonly delayMs: number
  readonly timers: Timers
  readonly totals: ByteTotals
  /** Number of bytes after which the connection with the next reply is reset, once. */
  cutAfter: number | undefined
}

/**
 * A client and the server behind the proxy.
 *
 * TCP never loses bytes in the middle of a connection. So a connection that has lost some is reset as soon as it would
 * have to forward others in the same direction; until then it is silent.
 */
export class FaultyConnection {
  /** Resolves when both sides are closed. */
  readonly closed: Promise<unknown>
  readonly #client: Socket
  readonly #server: Socket
  readonly #faults: Faults
  readonly #late = new LateQueue()
  #hasLostRequests = false
  #hasLostReplies = false
  #cutAfter: number | undefined

  /** @param server - may still be connecting */
  constructor(client: Socket, server: Socket, faults: Faults) {
    this.#client = client
    this.#server = server
    this.#faults = faults
    client.on('data', (piece: Buffer) => this.#request(piece))
    client.on('end', () => this.#passRequest(() => server.end()))
    server.on('data', (piece: Buffer) => this.#reply(() => this.#passReply(piece)))
    server.on('end', () => this.#reply(() => this.#passEnd()))
    // An unclean end is passed on as such, and so is an unreachable server.
    client.on('error', () => this.#passRequest(() => this.reset()))
    server.on('error', () => this.#reply(() => this.#passReset()))
    this.closed = Promise.all([client, server].map((socket) => new Promise((resolve) => socket.once('close', resolve))))
  }

  /** Whether the client still holds its end of it. */
  get isOpen(): boolean {
    return !(this.#client.destroyed || this.#client.readableEnded)
  }

  /** Resets both sides (RST) at once; bytes in flight are lost. */
  reset(): void {
    this.#late.clear()
    for (const socket of [this.#client, this.#server]) resetSocket(socket)
  }

  /** Call it when the passage has changed. */
  review(): void {
    const { requests, replies } = this.#faults.passage
    if ((requests && this.#hasLostRequests) || (replies && this.#hasLostReplies)) this.reset()
  }

  #request(piece: Buffer): void {
    const { passage, totals } = this.#faults
    if (passage.requests) totals.toServer += piece.length
    else totals.lost += piece.length
    this.#passRequest(() => this.#server.write(piece))
  }

  #passRequest(pass: () => void): void {
    if (this.#faults.passage.requests) pass()
    else this.#hasLostRequests = true
  }

  /** Forwards a reply now or later, in order. */
  #reply(pass: () => void): void {
    this.#late.add(pass, this.#faults)
  }

  #passReply(piece: Buffer): void {
    const { passage, totals } = this.#faults
    if (!passage.replies) {
      this.#hasLostReplies = true
      totals.lost += piece.length
      return
    }
    this.#takeCut()
    const passing = piece.subarray(0, this.#cutAfter)
    totals.toClients += passing.length
    totals.lost += piece.length - passing.length
    if (this.#cutAfter === undefined) {
      this.#client.write(passing)
      return
    }
    this.#cutAfter -= passing.length
    // The reset would overtake what is not yet written.
    this.#client.write(passing, () => {
      if (this.#cutAfter === 0) this.reset()
    })
  }

  #takeCut(): void {
    if (this.#cutAfter !== undefined) return
    this.#cutAfter = this.#faults.cutAfter
    this.#faults.cutAfter = undefined
  }

  #passEnd(): void {
    if (this.#faults.passage.replies) this.#client.end()
    else this.#hasLostReplies = true
  }

  #passReset(): void {
    if (this.#faults.passage.replies) this.reset()
    else this.#hasLostReplies = true
  }
}

function resetSocket(socket: Socket): void {
  if (socket.destroyed) return
  // Node cannot reset a socket whose end is being sent, and would wait for one that is still connecting.
  const isEnding = socket.writableEnded && !socket.writableFinished
  if (isEnding || socket.connecting) socket.destroy()
  else socket.resetAndDestroy()
}

interface Late {
  readonly run: () => void
  isDue: boolean
  cancel(): void
}

/** Delayed actions, which run in order of arrival. */
class LateQueue {
  readonly #queue: Late[] = []

  add(run: () => void, { delayMs, timers }: Pick<Faults, 'delayMs' | 'timers'>): void {
    if (delayMs === 0 && this.#queue.length === 0) {
      run()
      return
    }
    const late: Late = { run, isDue: delayMs === 0, cancel: () => undefined }
    this.#queue.push(late)
    if (late.isDue) return
    late.cancel = timers.schedule(delayMs, () => {
      late.isDue = true
      while (this.#queue[0]?.isDue === true) this.#queue.shift()?.run()
    })
  }

  clear(): void {
    for (const { cancel } of this.#queue.splice(0)) cancel()
  }
}
