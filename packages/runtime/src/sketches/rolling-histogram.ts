import { requireNumber } from '../option-range.ts'
import { bucketOf, bucketQuantile, requireBounds } from './bucket-bounds.ts'
import { SecondRing } from './second-ring.ts'
import type { SlidingCounterOptions } from './sliding-counter.ts'

/** Options of {@link RollingHistogram}. */
export interface RollingHistogramOptions extends SlidingCounterOptions {
  /** Upper bounds of the buckets, inclusive: 1 to 200 increasing numbers. One more bucket holds the rest. */
  readonly bounds: readonly number[]
}

/**
 * A histogram of the last seconds with fixed buckets: percentiles for alerts. Window and clock are as for {@link
 * SlidingCounter}. Uses 8 bytes per bucket and second of the window.
 */
export class RollingHistogram {
  readonly #ring: SecondRing
  readonly #windowMs: number
  readonly #bounds: Float64Array
  /** Bucket counts, second by second. */
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

  /** Records an observation now: a finite number, 0 or more, in the unit of the bounds. */
  observe(value: number): void {
    requireNumber('value', value, { min: 0, max: Number.MAX_VALUE })
    const place = this.#ring.enter(this.#clear)
    const index = place * (this.#bounds.length + 1) + bucketOf(this.#bounds, value)
    this.#counts[index] = (this.#counts[index] as number) + 1
  }

  /**
   * Observations of the last `windowMs` (whole seconds, at most the `windowMs` of the histogram, which is the default)
   * per bucket: one more than there are bounds. Counts of several threads can be added and passed to {@link
   * bucketQuantile}.
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

  /** A quantile (0 to 1) of the last `windowMs`; undefined without observations. See {@link bucketQuantile}. */
  quantile(quantile: number, windowMs?: number): number | undefined {
    return bucketQuantile(this.#bounds, this.counts(windowMs), quantile)
  }
}
