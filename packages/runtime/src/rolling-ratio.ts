import { SlidingCounter, type SlidingCounterOptions } from './sliding-counter.ts'

/** What came in a window, and which part of it was hit. */
export interface RatioCounts {
  readonly hits: number
  readonly total: number
}

/**
 * Which share of events is of one kind, over the last seconds: denials of checks, errors of calls. The window, the clock
 * and the memory are those of two {@link SlidingCounter}s.
 */
export class RollingRatio {
  readonly #hits: SlidingCounter
  readonly #total: SlidingCounter

  constructor(options: SlidingCounterOptions) {
    this.#hits = new SlidingCounter(options)
    this.#total = new SlidingCounter(options)
  }

  /** Counts `amount` events (zero or more, default 1), of the kind in question or not. */
  add(isHit: boolean, amount = 1): void {
    this.#total.add(amount)
    if (isHit) this.#hits.add(amount)
  }

  /** The events of the last `windowMs` (as for {@link SlidingCounter.sum}), to be added to those of other threads. */
  counts(windowMs?: number): RatioCounts {
    return { hits: this.#hits.sum(windowMs), total: this.#total.sum(windowMs) }
  }

  /** The share of hits in the last `windowMs`, 0 to 1; undefined when nothing came: that is not a share of zero. */
  ratio(windowMs?: number): number | undefined {
    const { hits, total } = this.counts(windowMs)
    return total === 0 ? undefined : hits / total
  }
}
