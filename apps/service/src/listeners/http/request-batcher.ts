import type { Exchange } from './endpoint.ts'

/** Who decides and sends what was gathered. */
export interface RequestBatcherParts<Decided> {
  /** Runs something at the end of this turn of the event loop. */
  readonly atTurnEnd: (run: () => void) => void
  /** Finds the answer. Does not throw. */
  readonly decide: (exchange: Exchange) => Decided
  /** Sends it. */
  readonly send: (exchange: Exchange, decided: Decided) => void
}

/** So many are read and decided before the first of them is sent: what belongs to more does not fit the caches either. */
const MOST_AT_ONCE = 64

/**
 * Gathers the requests that have come in one turn of the event loop, decides them one after the other, and then sends the answers.
 * One by one, each decision would be made between two calls of the system that throw everything it needs out of the caches of
 * the processor, and takes three times as long; and whoever is answered at once asks again at once, so that there are more and
 * shorter turns. Nobody waits for longer than what has come already takes.
 */
export class RequestBatcher<Decided> {
  readonly #parts: RequestBatcherParts<Decided>
  #gathered: Exchange[] = []

  constructor(parts: RequestBatcherParts<Decided>) {
    this.#parts = parts
  }

  /**
   * Lets a request be answered at the end of this turn, or when as many have come as are answered at once. One whose client has
   * gone by then is not decided.
   */
  add(exchange: Exchange): void {
    const count = this.#gathered.push(exchange)
    if (count === MOST_AT_ONCE) this.#answer()
    else if (count === 1) this.#parts.atTurnEnd(() => this.#answer())
  }

  #answer(): void {
    const { decide, send } = this.#parts
    const gathered = this.#gathered
    this.#gathered = []
    const decided = gathered.map((exchange) => (exchange.response.destroyed ? undefined : decide(exchange)))
    for (const [index, answer] of decided.entries()) if (answer !== undefined) send(gathered[index]!, answer)
  }
}
