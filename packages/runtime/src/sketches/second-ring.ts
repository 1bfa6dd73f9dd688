import { invalidOption, requireInteger } from '../option-range.ts'
import { type NowMs, readClock } from '../system.ts'

/** The length of time that is counted together. */
export const SECOND_MS = 1000

const MAX_WINDOW_MS = 86_400_000

/**
 * The places for the last seconds of the clock, used over and over: what a sliding count keeps its numbers by.
 *
 * When the clock goes back by less than the window, time stands still here until it has caught up. When it goes back by
 * the window or more, the clock was wrong before, and every place is empty again.
 */
export class SecondRing {
  /** How many seconds have a place. */
  readonly seconds: number
  readonly #nowMs: NowMs
  /** The second that each place is for; a place of another second than expected is empty. */
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

  /** The place of the current second. Calls `clear` first when what stands there is of an earlier time. */
  enter(clear: (place: number) => void): number {
    const second = Math.floor(this.#advance() / SECOND_MS)
    const place = this.#placeOf(second)
    if (this.#secondOf[place] !== second) {
      this.#secondOf[place] = second
      clear(place)
    }
    return place
  }

  /** Calls `visit` with the place of each of the last `windowMs` that has something, the current second included. */
  visit(windowMs: number, visit: (place: number) => void): void {
    const seconds = this.#secondsOf(windowMs)
    const current = Math.floor(this.#advance() / SECOND_MS)
    for (let second = current - seconds + 1; second <= current; second++) {
      const place = this.#placeOf(second)
      if (this.#secondOf[place] === second) visit(place)
    }
  }

  /**
   * How much time the last `windowMs` have covered when they were last visited: less than the window while the current
   * second is not over, and while the ring is younger than it.
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

  /** The time of the ring, which never goes back but by a new beginning. */
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
