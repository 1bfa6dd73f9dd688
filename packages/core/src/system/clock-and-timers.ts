/**
 * Where time comes from. Every decision takes it from here, so that tests and simulations own it.
 */
export interface Clock {
  /**
   * Microseconds since 1970-01-01T00:00:00Z, a whole number. Should not go back; when it does, stores act as if it
   * stood still until it has caught up, so a step back never hands out units twice.
   */
  nowMicros(): number
}

/** Microseconds in a millisecond. */
export const MICROS_PER_MS = 1000

/** Microseconds in a second. */
export const MICROS_PER_SECOND = 1_000_000

declare const performance: { now(): number }

/** What a {@link SystemClock} is made from. */
interface ClockSource {
  /** Milliseconds since 1970, by the wall clock. */
  readWallMs(): number
  /** Whether the wall clock is a fake one, as in tests: it may jump at any time, also back. */
  isFake(): boolean
  /** Runs something as soon as the code that is running now has run to its end. */
  afterThisRun(run: () => void): void
}

/** This many readings within one millisecond are a tight loop. */
const TIGHT_AFTER_READINGS = 64

/** In a tight loop the wall clock is read once per this many calls. */
const TIGHT_STRIDE = 16

/**
 * A clock that never goes back. It follows the wall clock, to the millisecond; when that is set back, it goes on from
 * where it was at the usual pace, and stays ahead by the difference.
 *
 * Reading the wall clock costs as much as the rest of a decision. So a tight loop, one that asked 64 times within a
 * millisecond, is given the same instant for up to 15 calls more; never beyond the end of the code that is running,
 * because then everything may have changed. The clock lags by at most what those 15 calls and the work between them
 * take.
 *
 * A fake wall clock is read at every call and followed as it is, also back: tests set it to the instant that they want.
 */
export class SystemClock implements Clock {
  readonly #source: ClockSource
  readonly #leaveLoop: () => void
  // Fractions to begin with, so that the fields are made for doubles and changed in place.
  #aheadMs = 0.5
  #lastMs = 0.5
  #readings = 0
  #skips = 0

  constructor(source: ClockSource) {
    this.#source = source
    this.#aheadMs = 0
    this.#leaveLoop = () => {
      this.#skips = 0
      this.#readings = 0
    }
  }

  nowMicros(): number {
    if (this.#skips > 0 && !this.#source.isFake()) {
      this.#skips--
      return this.#lastMs * MICROS_PER_MS
    }
    return this.#read()
  }

  #read(): number {
    const wallMs = this.#source.readWallMs()
    if (this.#source.isFake()) return wallMs * MICROS_PER_MS
    let nowMs = wallMs + this.#aheadMs
    if (nowMs < this.#lastMs) {
      this.#aheadMs += this.#lastMs - nowMs
      nowMs = this.#lastMs
    }
    // Only readings of one and the same millisecond make a loop tight, and one that has slowed down is tight no longer.
    const movedMs = nowMs - this.#lastMs
    if (movedMs > 1 || (movedMs > 0 && this.#readings < TIGHT_AFTER_READINGS)) this.#readings = 0
    this.#lastMs = nowMs
    this.#readings++
    if (this.#readings >= TIGHT_AFTER_READINGS) this.#skip()
    return nowMs * MICROS_PER_MS
  }

  #skip(): void {
    if (this.#readings === TIGHT_AFTER_READINGS) this.#source.afterThisRun(this.#leaveLoop)
    this.#skips = TIGHT_STRIDE - 1
  }
}

/** The platform's own `Date.now`. Undefined when this module is loaded while time is already faked. */
const platformNow = Function.prototype.toString.call(Date.now).includes('[native code]') ? Date.now : undefined

const thisRun = Promise.resolve()

/**
 * The process's clock, used wherever no other is given. `Date` is looked up at each reading, so that fake timers of
 * test frameworks move it. The end of a run is a promise, because some of them replace `queueMicrotask`.
 */
export const systemClock: Clock = new SystemClock({
  readWallMs: () => Date.now(),
  isFake: () => Date.now !== platformNow,
  afterThisRun: (run) => void thisRun.then(run),
})

/**
 * Milliseconds, with fractions, since some instant: for measuring durations. Changes of the wall clock do not affect
 * it.
 */
export function systemMonotonicMs(): number {
  return performance.now()
}

/**
 * Where waiting comes from: `acquire` waits for its turn, a fallback store for an answer, a leased store to give back
 * what it does not need, a Redis store for its next heartbeat. Nothing else holds a timer.
 */
export interface Timers {
  /**
   * Calls `run` once after `delayMs` (0 or more, any length). Returns a function that cancels it; cancelling after it
   * ran does nothing. A waiting timer keeps the process alive, because a caller awaits its result.
   */
  schedule(delayMs: number, run: () => void): () => void
}

declare function setTimeout(run: () => void, delayMs: number): unknown
declare function clearTimeout(timer: unknown): void

/** setTimeout fires at once beyond 2^31 - 1 ms; longer waits are made of several. */
const LONGEST_TIMER_MS = 2_147_483_647

/** Timers of the platform. */
export const systemTimers: Timers = {
  schedule(delayMs, run) {
    let timer: unknown
    const arm = (leftMs: number): void => {
      const stepMs = Math.min(leftMs, LONGEST_TIMER_MS)
      timer = setTimeout(() => (leftMs > stepMs ? arm(leftMs - stepMs) : run()), Math.ceil(stepMs))
    }
    arm(delayMs)
    return () => clearTimeout(timer)
  },
}
