import { requireNumber } from '../option-range.ts'
import { bucketOf, bucketQuantile, requireBounds } from './bucket-bounds.ts'
import { SecondRing } from './second-ring.ts'
import type { SlidingCounterOptions } from './sliding-counter.ts'

/** What a {@link RollingHistogram} remembers. */
export interface RollingHistogramOptions extends SlidingCounterOptions {
  /** The upper ends of the buckets, which belong to them: 1 to 200 rising numbers. One bucket more is for the rest. */
  readonly bounds: readonly number[]
}

/**
 * How observations were spread over the last seconds, in fixed buckets: percentiles for alerts. Window and clock are as
 * for {@link SlidingCounter}; takes 8 bytes for each bucket of each second of the window, whatever is observed.
 */
export class RollingHistogram {
  readonly #ring: SecondRing
  readonly #windowMs: number
  readonly #bounds: Float64Array
  /** The buckets of one second after those of another. */
  readonly #counts: Float64Array
  readonly #clear: (place: number) => void

  constructor(options: RollingHistogramOptions) {
    this.#bounds = requireBounds(options.bounds)
    this.#ring = new SecondRing(options.windowMs, options.nowMs)
    this.#windowMs = options.windowMs
    const buckets = this.#bounds.length + 1
    this.#counts = new Float64Array(this.#ring.seconds * buckets)
    this.#clear = (place) => void this.#counts.fill(0, place * buckets, (place + 1) * buckets)
  }

  /** Counts one observation now: a finite number, zero or more, in the unit of the bounds. */
  observe(value: number): void {
    requireNumber('value', value, { min: 0, max: Number.MAX_VALUE })
    const place = this.#ring.enter(this.#clear)
    const index = place * (this.#bounds.length + 1) + bucketOf(this.#bounds, value)
    this.#counts[index] = (this.#counts[index] as number) + 1
  }

  /**
   * The observations of the last `windowMs` (whole seconds, up to the `windowMs` of the histogram, which is the default)
   * in each bucket: one number more than there are bounds. Those of several threads are added one by one and given to
   * {@link bucketQuantile}.
   */
  counts(windowMs: number = this.#windowMs): Float64Array {
    const buckets = this.#bounds.length + 1
    const sums = new Float64Array(buckets)
    this.#ring.visit(windowMs, (place) => {
      for (let bucket = 0; bucket < buckets; bucket++) {
        sums[bucket] = (sums[bucket] as number) + (this.#counts[place * buckets + bucket] as number)
      }
    })
    return sums
  }

  /** A quantile (0 to 1) of the last `windowMs`, undefined when nothing was observed; see {@link bucketQuantile}. */
  quantile(quantile: number, windowMs?: number): number | undefined {
    return bucketQuantile(this.#bounds, this.counts(windowMs), quantile)
  }
}
