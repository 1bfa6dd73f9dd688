/** Where waiting comes from. Only `acquire` waits; nothing else in the core holds a timer. */
export interface Timers {
  /**
   * Calls `run` once after `delayMs` (0 or more, any length). Returns a function that cancels it; cancelling after it ran
   * does nothing. A waiting timer keeps the process alive, because somebody awaits its result.
   */
  schedule(delayMs: number, run: () => void): () => void
}
