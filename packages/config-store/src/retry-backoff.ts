import type { Random, Timers } from '@sluice/core'

const TWO_TO_32 = 4_294_967_296

/** How long to wait before each further attempt. */
export interface BackoffOptions {
  /** The first wait, before jitter. */
  readonly firstMs: number
  /** No wait is longer than this. */
  readonly longestMs: number
  readonly random: Random
}

/**
 * Waits that double from attempt to attempt: `min(longestMs, firstMs x 2^attempt x jitter)`, with a jitter in
 * [0.75, 1.25]. The jitter keeps nodes that failed together from coming back together.
 */
export class Backoff {
  readonly #options: BackoffOptions
  #nextMs: number

  constructor(options: BackoffOptions) {
    this.#options = options
    this.#nextMs = options.firstMs
  }

  /** Milliseconds to wait now. */
  nextMs(): number {
    const { longestMs, random } = this.#options
    const waitMs = Math.min(longestMs, this.#nextMs * (0.75 + random.nextUint32() / TWO_TO_32 / 2))
    // Twice the longest is beyond it whatever the jitter.
    this.#nextMs = Math.min(2 * longestMs, this.#nextMs * 2)
    return waitMs
  }

  /** The attempt succeeded: the next wait is a first one. */
  reset(): void {
    this.#nextMs = this.#options.firstMs
  }
}

/** Resolves after so many milliseconds. */
export function pause(timers: Timers, delayMs: number): Promise<void> {
  return new Promise((resolve) => void timers.schedule(delayMs, resolve))
}
