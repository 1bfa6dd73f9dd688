import type { NowMs } from './clock.ts'
import { describeValue, RuntimeError } from './errors.ts'
import { invalidOption, requireInteger, requireNumber } from './option-range.ts'

/** What a {@link SlidingCounter} remembers. */
export interface SlidingCounterOptions {
  /** The longest window that can be asked for: whole seconds, 1000 to 86400000 (a day). Takes 16 bytes a second. */
  readonly windowMs: number
  /** The clock. */
  readonly nowMs: NowMs
}

const BUCKET_MS = 1000
const MAX_WINDOW_MS = 86_400_000

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
  readonly #nowMs: NowMs
  readonly #buckets: number
  readonly #counts: Float64Array
  /** The second that each bucket counts; a bucket of another second than expected is empty. */
  readonly #seconds: Float64Array
  #latestMs: number
  #bornMs: number

  constructor(options: SlidingCounterOptions) {
    this.#buckets = requireInteger('windowMs', options.windowMs, { min: BUCKET_MS, max: MAX_WINDOW_MS }) / BUCKET_MS
    if (!Number.isInteger(this.#buckets)) throw invalidOption('windowMs', options.windowMs, 'a multiple of 1000')
    this.#nowMs = options.nowMs
    this.#counts = new Float64Array(this.#buckets)
    this.#seconds = new Float64Array(this.#buckets).fill(Number.NaN)
    this.#latestMs = readClock(options.nowMs)
    this.#bornMs = this.#latestMs
  }

  /** Counts `amount` events now; zero or more. Default 1. */
  add(amount = 1): void {
    requireNumber('amount', amount, { min: 0, max: Number.MAX_SAFE_INTEGER })
    const second = Math.floor(this.#readMs() / BUCKET_MS)
    const index = this.#indexOf(second)
    if (this.#seconds[index] !== second) {
      this.#seconds[index] = second
      this.#counts[index] = 0
    }
    this.#counts[index] = (this.#counts[index] as number) + amount
  }

  /**
   * The events of the last `windowMs` (whole seconds, up to the `windowMs` of the counter, which is the default): those
   * of the current second and of the `windowMs / 1000 - 1` seconds before it. An event of age `windowMs` or more is
   * never counted; one of age `windowMs - 1000` or less always is.
   */
  sum(windowMs: number = this.#buckets * BUCKET_MS): number {
    const buckets = this.#bucketsOf(windowMs)
    const current = Math.floor(this.#readMs() / BUCKET_MS)
    let total = 0
    for (let second = current - buckets + 1; second <= current; second++) {
      const index = this.#indexOf(second)
      if (this.#seconds[index] === second) total += this.#counts[index] as number
    }
    return total
  }

  /**
   * Events per second over the last `windowMs` (as for {@link SlidingCounter.sum}): the sum divided by the time it
   * covers, which is less than the window while the current second is not over, and while the counter is younger than
   * the window. A constant rate is therefore told as it is. The time is taken as at least one second, so that the
   * first event of a process is a rate of 1 and not of a thousand.
   */
  ratePerSecond(windowMs: number = this.#buckets * BUCKET_MS): number {
    const total = this.sum(windowMs)
    const startOfSecondMs = Math.floor(this.#latestMs / BUCKET_MS) * BUCKET_MS
    const coveredMs = Math.min(windowMs - BUCKET_MS + (this.#latestMs - startOfSecondMs), this.#latestMs - this.#bornMs)
    return (total * 1000) / Math.max(coveredMs, BUCKET_MS)
  }

  #bucketsOf(windowMs: number): number {
    const buckets = windowMs / BUCKET_MS
    if (Number.isInteger(buckets) && buckets >= 1 && buckets <= this.#buckets) return buckets
    throw invalidOption('windowMs', windowMs, `a multiple of 1000 from 1000 to ${this.#buckets * BUCKET_MS}`)
  }

  #indexOf(second: number): number {
    const rest = second % this.#buckets
    return rest < 0 ? rest + this.#buckets : rest
  }

  /** The time of the counter, which never goes back but by a new beginning. */
  #readMs(): number {
    const now = readClock(this.#nowMs)
    if (now <= this.#latestMs - this.#buckets * BUCKET_MS) {
      this.#seconds.fill(Number.NaN)
      this.#bornMs = now
      this.#latestMs = now
    } else if (now > this.#latestMs) {
      this.#latestMs = now
    }
    return this.#latestMs
  }
}

function readClock(nowMs: NowMs): number {
  const now = nowMs()
  if (Number.isFinite(now)) return now
  throw new RuntimeError('SLUICE_RUNTIME_INVALID_PORT', {
    received: `${describeValue(now)} from nowMs()`,
    expected: 'a finite number of milliseconds',
    action: 'Pass systemNowMs, or correct the clock that is passed in.',
  })
}
