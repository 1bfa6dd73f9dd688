/**
 * Where waiting comes from: `acquire` waits for its turn, a fallback store for an answer, a leased store to give back what it
 * does not need, a Redis store for its next heartbeat. Nothing else holds a timer.
 */
export interface Timers {
  /**
   * Calls `run` once after `delayMs` (0 or more, any length). Returns a function that cancels it; cancelling after it ran
   * does nothing. A waiting timer keeps the process alive, because somebody awaits its result.
   */
  schedule(delayMs: number, run: () => void): () => void
}
