import type { NowMs } from '../clock.ts'
import { readClock } from '../clock-reading.ts'
import { requireInteger } from '../option-range.ts'
import { mergeTopK, TopK, type TopKEntry, type TopKOptions, type TopKSnapshot } from './top-k.ts'

/** What a {@link RecentTopK} remembers. */
export interface RecentTopKOptions extends TopKOptions {
  /** How long a key is remembered at least: 1000 (a second) to 86400000 (a day). */
  readonly windowMs: number
  /** The clock. */
  readonly nowMs: NowMs
}

/** The keys of a {@link RecentTopK} at one moment. */
export interface RecentTopKSnapshot extends TopKSnapshot {
  /** What came before this instant is forgotten: `windowMs` to twice that ago. */
  readonly startedAt: number
}

/**
 * The keys that come most often lately, in the memory of two {@link TopK}: one for the current generation and one for
 * the generation before. A generation lasts `windowMs` and begins at a multiple of it on the clock, so those of several
 * threads or machines change together and can be merged.
 *
 * When the clock goes back by less than a generation, time stands still until it has caught up; when it goes back
 * further, the clock was wrong before, and everything is forgotten.
 */
export class RecentTopK {
  readonly #windowMs: number
  readonly #nowMs: NowMs
  #current: TopK
  #previous: TopK
  #generation: number

  constructor(options: RecentTopKOptions) {
    this.#windowMs = requireInteger('windowMs', options.windowMs, { min: 1000, max: 86_400_000 })
    this.#nowMs = options.nowMs
    this.#current = new TopK(options)
    this.#previous = new TopK(options)
    this.#generation = this.#readGeneration()
  }

  /** Counts `key` `amount` times now: a whole number, 1 or more. Default 1. */
  add(key: string, amount = 1): void {
    this.#turn()
    this.#current.add(key, amount)
  }

  /** The `most` keys that came most often, best first. */
  top(most: number): TopKEntry[] {
    requireInteger('most', most, { min: 0, max: Number.MAX_SAFE_INTEGER })
    return this.snapshot().entries.slice(0, most)
  }

  /** Everything that is known of both generations, to be sent and merged with {@link mergeTopK}. */
  snapshot(): RecentTopKSnapshot {
    this.#turn()
    const merged = mergeTopK([this.#current.snapshot(), this.#previous.snapshot()])
    return { ...merged, startedAt: (this.#generation - 1) * this.#windowMs }
  }

  #turn(): void {
    const generation = this.#readGeneration()
    if (generation === this.#generation || generation === this.#generation - 1) return
    const emptied = this.#previous
    this.#previous = this.#current
    this.#current = emptied
    this.#current.clear()
    if (generation !== this.#generation + 1) this.#previous.clear()
    this.#generation = generation
  }

  #readGeneration(): number {
    return Math.floor(readClock(this.#nowMs) / this.#windowMs)
  }
}
