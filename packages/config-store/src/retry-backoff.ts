import type { Random, Timers } from '@sluice/core'

const TWO_TO_32 = 4_294_967_296

/** Options of {@link Backoff}. */
export interface BackoffOptions {
  /** The first delay, before jitter. */
  readonly firstMs: number
  /** Maximum delay. */
  readonly longestMs: number
  readonly random: Random
}

/**
 * Exponential backoff: `min(longestMs, firstMs x 2^attempt x jitter)`, with a jitter in [0.75, 1.25]. The jitter
 * spreads the retries of nodes that failed at the same time.
 */
export class Backoff {
  readonly #options: BackoffOptions
  #nextMs: number

  constructor(options: BackoffOptions) {
    this.#options = options
    this.#nextMs = options.firstMs
  }

  /** The next delay in milliseconds. */
  nextMs(): number {
    const { longestMs, random } = this.#options
    const waitMs = Math.min(longestMs, this.#nextMs * (0.75 + random.nextUint32() / TWO_TO_32 / 2))
    // Twice the maximum exceeds it for any jitter.
    this.#nextMs = Math.min(2 * longestMs, this.#nextMs * 2)
    return waitMs
  }

  /** Call it after a success: the next delay is the first one again. */
  reset(): void {
    this.#nextMs = this.#options.firstMs
  }
}

/** Resolves after `delayMs` milliseconds. */
export function pause(timers: Timers, delayMs: number): Promise<void> {
  return new Promise((resolve) => void timers.schedule(delayMs, resolve))
}
