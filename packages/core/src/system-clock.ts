import type { Clock } from './clock.ts'
import { MICROS_PER_MS } from './clock.ts'

/**
 * A clock that never goes back. It follows the wall clock, to the millisecond; when that is set back, it goes on from where
 * it was at the usual pace, and stays ahead by the difference.
 */
class SystemClock implements Clock {
  // Fractions to begin with, so that the fields are made for doubles and changed in place.
  #aheadMs = 0.5
  #lastMs = 0.5

  constructor() {
    this.#aheadMs = 0
  }

  nowMicros(): number {
    let nowMs = Date.now() + this.#aheadMs
    if (nowMs < this.#lastMs) {
      this.#aheadMs += this.#lastMs - nowMs
      nowMs = this.#lastMs
    }
    this.#lastMs = nowMs
    return nowMs * MICROS_PER_MS
  }
}

/** The process's clock, used wherever no other is given. */
export const systemClock: Clock = new SystemClock()
