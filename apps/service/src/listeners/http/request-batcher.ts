/** A request that waits for its answer. */
interface Answered {
  /** Destroyed when its client is gone. */
  readonly response: { readonly destroyed: boolean }
}

/** What a {@link RequestBatcher} works with. */
export interface RequestBatcherParts<Waiting, Decided> {
  /** Runs a callback at the end of this event loop iteration. */
  readonly atTurnEnd: (run: () => void) => void
  /** Finds the answer. Does not throw. */
  readonly decide: (exchange: Waiting) => Decided
  /** Sends it. */
  readonly send: (exchange: Waiting, decided: Decided) => void
}

/**
 * Batching starts after an iteration with this many requests, and stops after one with fewer than the second number.
 */
const BATCH_FROM = 4
const BATCH_UNTIL = 2

/**
 * After an iteration with few requests, this many are answered without counting those of their iterations: to be called
 * at the end of one takes as long as a decision. Batching starts that much later.
 */
const UNCOUNTED = 7

/** Maximum batch size: the data of more requests does not fit the processor caches. */
const MAX_BATCH_SIZE = 64

/**
 * Answers a request at once while few arrive. When many arrive per event loop iteration, it collects them, decides all,
 * and then sends the answers. One by one, each decision runs between two system calls that evict its data from the
 * processor caches, and takes three times as long; clients that are answered at once also send again at once, which
 * makes iterations shorter and more frequent. A request waits at most for the rest of its iteration.
 */
export class RequestBatcher<Waiting extends Answered, Decided> {
  readonly #parts: RequestBatcherParts<Waiting, Decided>
  /** Requests of this iteration, and those of them that wait. */
  #count = 0
  #waiting: Waiting[] = []
  #isBatching = false
  /** Requests that are not counted from now on. */
  #uncounted = 0

  readonly #endTurn = (): void => {
    this.#isBatching = this.#count >= (this.#isBatching ? BATCH_UNTIL : BATCH_FROM)
    this.#count = 0
    if (!this.#isBatching) this.#uncounted = UNCOUNTED
    if (this.#waiting.length > 0) this.#answer()
  }

  constructor(parts: RequestBatcherParts<Waiting, Decided>) {
    this.#parts = parts
  }

  /** Answers a request now or at the end of this iteration. One whose client has gone by then is not decided. */
  add(exchange: Waiting): void {
    if (this.#uncounted > 0) {
      this.#uncounted--
      this.#parts.send(exchange, this.#parts.decide(exchange))
      return
    }
    if (this.#count++ === 0) this.#parts.atTurnEnd(this.#endTurn)
    if (!this.#isBatching) {
      this.#parts.send(exchange, this.#parts.decide(exchange))
      return
    }
    if (this.#waiting.push(exchange) === MAX_BATCH_SIZE) this.#answer()
  }

  #answer(): void {
    const { decide, send } = this.#parts
    const waiting = this.#waiting
    this.#waiting = []
    const decided = waiting.map((exchange) => (exchange.response.destroyed ? undefined : decide(exchange)))
    for (const [index, answer] of decided.entries()) if (answer !== undefined) send(waiting[index]!, answer)
  }
}
