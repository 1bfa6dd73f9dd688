import { requireNumber } from '../option-range.ts'
import type { NowMs } from '../system.ts'
import { SECOND_MS, SecondRing } from './second-ring.ts'

/** What a {@link SlidingCounter} remembers. */
export interface SlidingCounterOptions {
  /** The longest window that can be asked for: whole seconds, 1000 to 86400000 (a day). Takes 16 bytes a second. */
  readonly windowMs: number
  /** The clock. */
  readonly nowMs: NowMs
}

/**
 * Counts events over the last seconds, in one bucket per second of the clock: for metrics and alerts, where memory
 * must not grow with the number of events.
 *
 * `add` is O(1), also after an idle time of any length; `sum` is O(seconds of the window).
 *
 * When the clock goes back by less than `windowMs`, time stands still for the counter: events count in the newest
 * second until the clock has caught up. When it goes back by `windowMs` or more, the clock was wrong before, and the
 * counter begins anew.
 */
export class SlidingCounter {
  readonly #ring: SecondRing
  readonly #windowMs: number
  readonly #counts: Float64Array
  readonly #clear: (place: number) => void

  constructor(options: SlidingCounterOptions) {
    this.#ring = new SecondRing(options.windowMs, options.nowMs)
    this.#windowMs = options.windowMs
    this.#counts = new Float64Array(this.#ring.seconds)
    this.#clear = (place) => {
      this.#counts[place] = 0
    }
  }

  /** Counts `amount` events now; zero or more. Default 1. */
  add(amount = 1): void {
    requireNumber('amount', amount, { min: 0, max: Number.MAX_SAFE_INTEGER })
    const place = this.#ring.enter(this.#clear)
    this.#counts[place] = (this.#counts[place] as number) + amount
  }

  /**
   * The events of the last `windowMs` (whole seconds, up to the `windowMs` of the counter, which is the default): those
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
   * Events per second over the last `windowMs` (as for {@link SlidingCounter.sum}): the sum divided by the time it
   * covers, which is less than the window while the current second is not over, and while the counter is younger than
   * the window. A constant rate is therefore told as it is. The time is taken as at least one second, so that the
   * first event of a process is a rate of 1 and not of a thousand.
   */
  ratePerSecond(windowMs: number = this.#windowMs): number {
    const total = this.sum(windowMs)
    return (total * 1000) / Math.max(this.#ring.coveredMs(windowMs), SECOND_MS)
  }
}
