import { requireNumber } from '../option-range.ts'
import { SecondRing } from './second-ring.ts'
import type { SlidingCounterOptions } from './sliding-counter.ts'

/** Events in a window, and how many of them were hits. */
export interface RatioCounts {
  readonly hits: number
  readonly total: number
}

/**
 * Share of hits among events over the last seconds: denials of checks, errors of calls. Window and clock are as for
 * {@link SlidingCounter}. Uses 24 bytes per second.
 */
export class RollingRatio {
  readonly #ring: SecondRing
  readonly #windowMs: number
  readonly #hits: Float64Array
  readonly #totals: Float64Array
  readonly #clear: (place: number) => void

  constructor(options: SlidingCounterOptions) {
    this.#ring = new SecondRing(options.windowMs, options.nowMs)
    this.#windowMs = options.windowMs
    this.#hits = new Float64Array(this.#ring.seconds)
    this.#totals = new Float64Array(this.#ring.seconds)
    this.#clear = (place) => {
      this.#hits[place] = 0
      this.#totals[place] = 0
    }
  }

  /** Counts `amount` events now (0 or more, default: 1), as hits or not. */
  add(isHit: boolean, amount = 1): void {
    requireNumber('amount', amount, { min: 0, max: Number.MAX_SAFE_INTEGER })
    const place = this.#ring.enter(this.#clear)
    this.#totals[place] = (this.#totals[place] as number) + amount
    if (isHit) this.#hits[place] = (this.#hits[place] as number) + amount
  }

  /**
   * Events of the last `windowMs` (whole seconds, at most the `windowMs` of the constructor, which is the default).
   * Counts of several threads can be added.
   */
  counts(windowMs: number = this.#windowMs): RatioCounts {
    let hits = 0
    let total = 0
    this.#ring.visit(windowMs, (place) => {
      hits += this.#hits[place] as number
      total += this.#totals[place] as number
    })
    return { hits, total }
  }

  /** Share of hits in the last `windowMs`, 0 to 1; undefined without events, which is not a share of 0. */
  ratio(windowMs?: number): number | undefined {
    const { hits, total } = this.counts(windowMs)
    return total === 0 ? undefined : hits / total
  }
}
