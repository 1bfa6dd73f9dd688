/** So many requests in one turn of the event loop are a crowd; until there are fewer than the other number. */
const CROWD_FROM = 4
const CROWD_UNTIL = 2

/** So many go on together before the turn has ended: what belongs to more does not fit the caches of a processor. */
const MOST_TOGETHER = 64

/** Runs something at the end of this turn of the event loop: when everything that has arrived was read. */
export type TurnEnd = (run: () => void) => void

/**
 * Lets the requests of one turn of the event loop go on together, at its end, where many come in each: they are all read before the
 * first is answered. To answer each when it was read takes up to twice as long, because whoever waits for answers on the same
 * machine is woken for every single one, and because reading and answering push each other out of the caches of the processor.
 *
 * A request is held back for what is left of its turn, and only after a turn with a crowd: where few come at once, none is.
 * Each goes on in its own asynchronous context.
 */
export class RequestBatcher {
  readonly #turnEnd: TurnEnd
  readonly #close: () => void
  /** Requests of this turn, and those of them that wait now. */
  #count = 0
  #waiting = 0
  #isCrowd = false
  /** What they wait for. */
  #signal: Promise<void> | undefined
  #resolve: (() => void) | undefined
  /** Whether those who waited are going on now. */
  #areGoing = false

  constructor(turnEnd: TurnEnd) {
    this.#turnEnd = turnEnd
    this.#close = () => {
      this.#isCrowd = this.#count >= (this.#isCrowd ? CROWD_UNTIL : CROWD_FROM)
      this.#count = 0
      this.#letGo()
    }
  }

  /** Takes note of a request. When it is to go on; undefined for at once. Never rejects. */
  join(): Promise<void> | undefined {
    // Whoever has waited at one limiter does not wait at the next as well.
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
