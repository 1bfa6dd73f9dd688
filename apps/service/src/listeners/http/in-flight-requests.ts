import type { Socket } from 'node:net'
import type { InFlight } from '@sluice/runtime'
import type { Exchange } from './exchange.ts'

/**
 * Which requests are under way in which lane. A request leaves when it is answered, or when its connection ends before: the
 * connection is listened to once, and not for each of its requests.
 */
export class LaneBook {
  readonly #begun = new WeakMap<Socket, Set<Exchange>>()

  /** Notes a request that has entered `lane`. */
  enter(exchange: Exchange): void {
    const { socket } = exchange.request
    const begun = this.#begun.get(socket)
    if (begun !== undefined) {
      begun.add(exchange)
      return
    }
    const first = new Set([exchange])
    this.#begun.set(socket, first)
    socket.once('close', () => {
      for (const { endpoint } of first) endpoint.lane?.leave()
      first.clear()
    })
  }

  /** Notes that a request was answered. One that has left already does not leave again. */
  leave(exchange: Exchange, lane: InFlight): void {
    if (this.#begun.get(exchange.request.socket)?.delete(exchange) === true) lane.leave()
  }
}
