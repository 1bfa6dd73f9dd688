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
