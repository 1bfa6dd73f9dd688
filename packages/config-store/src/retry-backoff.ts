import type { Timers } from '@sluice/core'
import { type RetryDelay, retryDelayMs } from '@sluice/core/internal'

/** The delays of consecutive failures, see {@link retryDelayMs}. */
export class Backoff {
  readonly #options: RetryDelay
  #failures = 0

  constructor(options: RetryDelay) {
    this.#options = options
  }

  /** The next delay in milliseconds. */
  nextMs(): number {
    return retryDelayMs(this.#failures++, this.#options)
  }

  /** Call it after a success: the next delay is the first one again. */
  reset(): void {
    this.#failures = 0
  }
}

/** Resolves after `delayMs` milliseconds. */
export function pause(timers: Timers, delayMs: number): Promise<void> {
  return new Promise((resolve) => void timers.schedule(delayMs, resolve))
}
