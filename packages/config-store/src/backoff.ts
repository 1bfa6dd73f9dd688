import type { Random, Timers } from '@sluice/core'

const HIGHEST = 0x1_0000_0000

/** How long to wait before each further try. */
export interface BackoffOptions {
  /** Longest wait before the second try. */
  readonly firstMs: number
  /** Longest wait at all. */
  readonly longestMs: number
  readonly random: Random
}

/** Waits that double from try to try, each somewhere in the upper half of its length: many who wait do not come at once. */
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
    const waitMs = this.#nextMs * (0.5 + random.nextUint32() / HIGHEST / 2)
    this.#nextMs = Math.min(longestMs, this.#nextMs * 2)
    return waitMs
  }

  /** What was tried has come to be: the next wait is a first one. */
  reset(): void {
    this.#nextMs = this.#options.firstMs
  }
}

/** Resolves after so many milliseconds. */
export function pause(timers: Timers, delayMs: number): Promise<void> {
  return new Promise((resolve) => void timers.schedule(delayMs, resolve))
}
