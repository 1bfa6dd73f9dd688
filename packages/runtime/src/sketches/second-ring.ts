import { type NowMs, readClock } from '../clock-and-random.ts'
import { invalidOption, requireInteger } from '../option-range.ts'

/** The length of one bucket. */
export const SECOND_MS = 1000

const MAX_WINDOW_MS = 86_400_000

/**
 * A ring of buckets for the last seconds of the clock.
 *
 * If the clock goes back by less than the window, the ring's time stands still until the clock has caught up. If it
 * goes back by the window or more, all buckets are cleared.
 */
export class SecondRing {
  /** Number of buckets. */
  readonly seconds: number
  readonly #nowMs: NowMs
  /** The second of each bucket. A bucket of another second than expected is empty. */
  readonly #secondOf: Float64Array
  #latestMs: number
  #bornMs: number

  /** `windowMs` is whole seconds, 1000 to 86400000 (a day). */
  constructor(windowMs: number, nowMs: NowMs) {
    requireInteger('windowMs', windowMs, { min: SECOND_MS, max: MAX_WINDOW_MS })
    if (windowMs % SECOND_MS !== 0) throw invalidOption('windowMs', windowMs, 'a multiple of 1000')
    this.seconds = windowMs / SECOND_MS
    this.#nowMs = nowMs
    this.#secondOf = new Float64Array(this.seconds).fill(Number.NaN)
    this.#latestMs = readClock(nowMs)
    this.#bornMs = this.#latestMs
  }

  /** The bucket of the current second. Calls `clear` first if its content is outdated. */
  enter(clear: (place: number) => void): number {
    const second = Math.floor(this.#advance() / SECOND_MS)
    const place = this.#placeOf(second)
    if (this.#secondOf[place] !== second) {
      this.#secondOf[place] = second
      clear(place)
    }
    return place
  }

  /** Calls `visit` with each non-empty bucket of the last `windowMs`, including the current second. */
  visit(windowMs: number, visit: (place: number) => void): void {
    const seconds = this.#secondsOf(windowMs)
    const current = Math.floor(this.#advance() / SECOND_MS)
    for (let second = current - seconds + 1; second <= current; second++) {
      const place = this.#placeOf(second)
      if (this.#secondOf[place] === second) visit(place)
    }
  }

  /**
   * Time covered by the last `windowMs` when last visited: shorter than the window during the current second, and while
   * the ring is younger than the window.
   */
  coveredMs(windowMs: number): number {
    const intoSecondMs = this.#latestMs - Math.floor(this.#latestMs / SECOND_MS) * SECOND_MS
    return Math.min(windowMs - SECOND_MS + intoSecondMs, this.#latestMs - this.#bornMs)
  }

  #secondsOf(windowMs: number): number {
    const seconds = windowMs / SECOND_MS
    if (Number.isInteger(seconds) && seconds >= 1 && seconds <= this.seconds) return seconds
    throw invalidOption('windowMs', windowMs, `a multiple of 1000 from 1000 to ${this.seconds * SECOND_MS}`)
  }

  #placeOf(second: number): number {
    const rest = second % this.seconds
    return rest < 0 ? rest + this.seconds : rest
  }

  /** The time of the ring, which never goes back except by a restart. */
  #advance(): number {
    const now = readClock(this.#nowMs)
    if (now <= this.#latestMs - this.seconds * SECOND_MS) {
      this.#secondOf.fill(Number.NaN)
      this.#bornMs = now
      this.#latestMs = now
    } else if (now > this.#latestMs) {
      this.#latestMs = now
    }
    return this.#latestMs
  }
}
