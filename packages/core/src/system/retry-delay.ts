import type { Random } from './random.ts'

/** Options of {@link retryDelayMs}. */
export interface RetryDelay {
  /** Delay after the first failure, before jitter. */
  readonly firstMs: number
  /** Maximum delay. */
  readonly longestMs: number
  readonly random: Random
}

/**
 * Exponential backoff: `min(longestMs, firstMs x 2^failures x jitter)`, with a jitter in [0.75, 1.25). `failures` is 0
 * after the first failure. The jitter keeps clients that failed at the same time from retrying all at once.
 */
export function retryDelayMs(failures: number, { firstMs, longestMs, random }: RetryDelay): number {
  const jitter = 0.75 + random.nextUint32() / 2 ** 33
  return Math.min(longestMs, firstMs * 2 ** failures * jitter)
}
