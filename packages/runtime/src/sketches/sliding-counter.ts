import type { NowMs } from '../clock-and-random.ts'
import { requireKnown, requireNumber } from '../option-range.ts'
import { SECOND_MS, SecondRing } from './second-ring.ts'

/** Options of {@link SlidingCounter}. */
export interface SlidingCounterOptions {
  /** Maximum window: whole seconds, 1000 to 86400000 (a day). Uses 16 bytes per second. */
  readonly windowMs: number
  /** The clock. */
  readonly nowMs: NowMs
}

/**
 * Counts events over the last seconds, in one bucket per second: for metrics and alerts, with memory independent of the
 * number of events.
 *
 * `add` is O(1), even after long idle times; `sum` is O(seconds of the window).
 *
 * If the clock goes back by less than `windowMs`, events count in the newest second until the clock has caught up. If
 * it goes back by `windowMs` or more, the counter starts again.
 */
export class SlidingCounter {
  readonly #ring: SecondRing
  readonly #windowMs: number
  readonly #counts: Float64Array
  readonly #clear: (place: number) => void

  constructor(options: SlidingCounterOptions) {
    requireKnown(options, ['windowMs', 'nowMs'])
    this.#ring = new SecondRing(options.windowMs, options.nowMs)
    this.#windowMs = options.windowMs
    this.#counts = new Float64Array(this.#ring.seconds)
    this.#clear = (place) => {
      this.#counts[place] = 0
    }
  }

  /** Counts `amount` events now; 0 or more. Default: 1. */
  add(amount = 1): void {
    requireNumber('amount', amount, { min: 0, max: Number.MAX_SAFE_INTEGER })
    const place = this.#ring.enter(this.#clear)
    this.#counts[place] = (this.#counts[place] as number) + amount
  }

  /**
   * Events of the last `windowMs` (whole seconds, at most the `windowMs` of the counter, which is the default): those
   * of the current second and of the `windowMs / 1000 - 1` seconds before it. An event of age `windowMs` or more is
   * never counted; one of age `windowMs - 1000` or less always is.
   */
  sum(windowMs: number = this.#windowMs): number {
    let total = 0
    this.#ring.visit(windowMs, (place) => {
      total += this.#counts[place] as number
    })
    return total
  }

  /**
   * Events per second over the last `windowMs` (as for {@link SlidingCounter.sum}): the sum divided by the time
   * covered, which is shorter than the window during the current second and while the counter is younger than the
   * window. A constant rate is therefore reported as it is. The time is at least one second, so that the first event of
   * a process is a rate of 1 and not of a thousand.
   */
  ratePerSecond(windowMs: number = this.#windowMs): number {
    const total = this.sum(windowMs)
    return (total * 1000) / Math.max(this.#ring.coveredMs(windowMs), SECOND_MS)
  }
}
