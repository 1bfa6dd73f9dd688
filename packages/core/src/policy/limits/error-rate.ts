import { durationMs } from '../../rule/duration.ts'
import type { ErrorRateCut } from '../rule-set/rule-set.ts'

/** The counting window advances by this part of it. */
const SLICES = 10

/**
 * Measures the share of failed calls, and by how much limits are cut. Uses constant memory; every call takes the same
 * short time.
 *
 * While the share of failures in the window is above `cutAbove`, among at least `leastCalls` calls, limits are cut by
 * one step; while it is below `restoreBelow` they are restored by one. Between both nothing changes. Steps are at least
 * `hold` apart, and counting restarts after each, so one failure never leads to two cuts. For restoring, a whole window
 * since the last step is enough without `leastCalls`: a cut must not last because there are few calls. A whole window
 * without any call restores too, whatever `restoreBelow` is: nothing fails any more, and only calls can show whether
 * more would. Such steps are counted from the last call, not from the time of the lookup.
 */
export class ErrorRateGuard {
  /** The settings it was created with. */
  readonly settings: ErrorRateCut
  readonly #windowMs: number
  readonly #sliceMs: number
  readonly #holdMs: number
  /** Time between two restored steps without a call: a whole window each. */
  readonly #quietApartMs: number
  readonly #calls = new Float64Array(SLICES)
  readonly #failures = new Float64Array(SLICES)
  #callsInWindow = 0
  #failuresInWindow = 0
  #newestSlice = Number.NEGATIVE_INFINITY
  #lastCallMs = Number.NEGATIVE_INFINITY
  #lastStepMs = Number.NEGATIVE_INFINITY
  /** Before this time, time alone changes nothing. */
  #nextLookMs = Number.NEGATIVE_INFINITY
  #steps = 0
  #factor = 1

  constructor(settings: ErrorRateCut) {
    this.settings = settings
    this.#windowMs = durationMs(settings.window, 'window')
    this.#sliceMs = this.#windowMs / SLICES
    this.#holdMs = durationMs(settings.hold, 'hold')
    this.#quietApartMs = Math.max(this.#windowMs, this.#holdMs)
  }

  /** Counts the outcome of a call at `nowMs` (milliseconds since 1970). */
  report(failed: boolean, nowMs: number): void {
    if (nowMs >= this.#nextLookMs) this.#look(nowMs)
    // Time does not go back: a late report counts in the newest slice.
    const place = placeOf(this.#newestSlice)
    this.#calls[place] = this.#calls[place]! + 1
    this.#callsInWindow++
    this.#lastCallMs = Math.max(this.#lastCallMs, nowMs)
    if (failed) {
      this.#failures[place] = this.#failures[place]! + 1
      this.#failuresInWindow++
    }
    this.#judge(nowMs)
  }

  /**
   * The factor of limits at `nowMs`: 1, `step`, `step` squared and so on, never below `least`. One comparison unless
   * something may have changed.
   */
  factorAt(nowMs: number): number {
    if (nowMs >= this.#nextLookMs) {
      this.#look(nowMs)
      this.#judge(nowMs)
    }
    return this.#factor
  }

  #look(nowMs: number): void {
    if (this.#steps > 0) this.#giveBackQuietly(nowMs)
    const slice = Math.floor(nowMs / this.#sliceMs)
    if (slice - this.#newestSlice >= SLICES) this.#startAnew()
    else for (let passed = this.#newestSlice + 1; passed <= slice; passed++) this.#clear(placeOf(passed))
    this.#newestSlice = slice
    const sliceEndMs = (slice + 1) * this.#sliceMs
    this.#nextLookMs = this.#steps > 0 ? Math.min(sliceEndMs, this.#quietStepMs()) : sliceEndMs
  }

  /** When the next step is restored if there is no call until then. */
  #quietStepMs(): number {
    return Math.max(this.#lastCallMs + this.#windowMs, this.#lastStepMs + this.#quietApartMs)
  }

  /** Restores the steps that fell due without calls. */
  #giveBackQuietly(nowMs: number): void {
    const firstMs = this.#quietStepMs()
    if (nowMs < firstMs) return
    const count = Math.min(this.#steps, 1 + Math.floor((nowMs - firstMs) / this.#quietApartMs))
    this.#step(-count, firstMs + (count - 1) * this.#quietApartMs)
  }

  #judge(nowMs: number): void {
    const calls = this.#callsInWindow
    const failures = this.#failuresInWindow
    if ((this.#steps === 0 && failures === 0) || nowMs - this.#lastStepMs < this.#holdMs) return
    const { cutAbove, restoreBelow, leastCalls, least } = this.settings
    const isEnough = calls > 0 && calls >= leastCalls
    const isOver = isEnough && failures / calls > cutAbove
    const isUnder = calls > 0 && failures / calls < restoreBelow
    const isLong = nowMs - this.#lastStepMs >= this.#windowMs
    if (isOver && this.#factor > least) this.#step(1, nowMs)
    else if (this.#steps > 0 && isUnder && (isEnough || isLong)) this.#step(-1, nowMs)
  }

  #step(steps: number, atMs: number): void {
    this.#steps += steps
    this.#factor = Math.max(this.settings.least, this.settings.step ** this.#steps)
    this.#lastStepMs = atMs
    this.#startAnew()
  }

  #startAnew(): void {
    this.#calls.fill(0)
    this.#failures.fill(0)
    this.#callsInWindow = 0
    this.#failuresInWindow = 0
  }

  #clear(place: number): void {
    this.#callsInWindow -= this.#calls[place]!
    this.#failuresInWindow -= this.#failures[place]!
    this.#calls[place] = 0
    this.#failures[place] = 0
  }
}

function placeOf(slice: number): number {
  const place = slice % SLICES
  return place < 0 ? place + SLICES : place
}
