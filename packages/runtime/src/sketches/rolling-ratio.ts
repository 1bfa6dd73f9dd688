import { requireNumber } from '../option-range.ts'
import { SecondRing } from './second-ring.ts'
import type { SlidingCounterOptions } from './sliding-counter.ts'

/** The events of a window, and how many of them were of the kind in question. */
export interface RatioCounts {
  readonly hits: number
  readonly total: number
}

/**
 * Which share of events is of one kind, over the last seconds: denials of checks, errors of calls. Window and clock are
 * as for {@link SlidingCounter}; takes 24 bytes a second.
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

  /** Counts `amount` events now (zero or more, default 1), all of the kind in question or none. */
  add(isHit: boolean, amount = 1): void {
    requireNumber('amount', amount, { min: 0, max: Number.MAX_SAFE_INTEGER })
    const place = this.#ring.enter(this.#clear)
    this.#totals[place] = (this.#totals[place] as number) + amount
    if (isHit) this.#hits[place] = (this.#hits[place] as number) + amount
  }

  /**
   * The events of the last `windowMs` (whole seconds, up to the `windowMs` given at first, which is the default). Those
   * of several threads can be added.
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

  /** The share of hits in the last `windowMs`, 0 to 1; undefined when nothing came, which is not a share of zero. */
  ratio(windowMs?: number): number | undefined {
    const { hits, total } = this.counts(windowMs)
    return total === 0 ? undefined : hits / total
  }
}
