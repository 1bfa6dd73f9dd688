/** Batching starts at this many requests per event loop turn, and stops below the second number. */
const CROWD_FROM = 4
const CROWD_UNTIL = 2

/** Maximum batch size: the data of more requests does not fit the processor caches. */
const MOST_TOGETHER = 64

/** Schedules a callback for the end of the current event loop turn, after all pending input was read. */
export type TurnEnd = (run: () => void) => void

/**
 * Continues the requests of one event loop turn together at its end, when many arrive per turn: all are read before the
 * first is answered. Answering each request as it is read takes up to twice as long, because local clients wake for
 * every response, and because reading and answering evict each other from the processor caches.
 *
 * A request waits at most for the rest of its turn, and only after a crowded turn. Each request continues in its own
 * asynchronous context.
 */
export class RequestBatcher {
  readonly #turnEnd: TurnEnd
  readonly #close: () => void
  /** Requests of this turn, and those that wait. */
  #count = 0
  #waiting = 0
  #isCrowd = false
  /** Resolves when the waiting requests continue. */
  #signal: Promise<void> | undefined
  #resolve: (() => void) | undefined
  /** Whether the waiting requests are continuing now. */
  #areGoing = false

  constructor(turnEnd: TurnEnd) {
    this.#turnEnd = turnEnd
    this.#close = () => {
      this.#isCrowd = this.#count >= (this.#isCrowd ? CROWD_UNTIL : CROWD_FROM)
      this.#count = 0
      this.#letGo()
    }
  }

  /** Registers a request. Returns when to continue; undefined means at once. Never rejects. */
  join(): Promise<void> | undefined {
    // A request that has waited at one limiter does not wait at the next as well.
    if (this.#areGoing) return undefined
    if (this.#count++ === 0) this.#turnEnd(this.#close)
    if (!this.#isCrowd) return undefined
    if (this.#waiting === MOST_TOGETHER) this.#letGo()
    this.#waiting++
    this.#signal ??= this.#newSignal()
    return this.#signal
  }

  #newSignal(): Promise<void> {
    const signal = new Promise<void>((resolve) => {
      this.#resolve = resolve
    })
    // Before any of those who wait.
    void signal.then(() => {
      this.#areGoing = true
    })
    return signal
  }

  #letGo(): void {
    const resolve = this.#resolve
    if (resolve === undefined) return
    this.#waiting = 0
    this.#signal = undefined
    this.#resolve = undefined
    resolve()
    // After all of those who wait: they were there first.
    void Promise.resolve().then(() => {
      this.#areGoing = false
    })
  }
}
