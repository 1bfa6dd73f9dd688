import type { Random } from '@sluice/core'

const FIRST_MS = 50
const LONGEST_MS = 500

/**
 * Milliseconds until the next connection attempt, after so many that failed: 50, doubling, each up to a quarter longer or
 * shorter at random, at most 500. The random part keeps clients of a restarted server from reconnecting all at once.
 */
export function reconnectDelayMs(failures: number, random: Random): number {
  const jitter = 0.75 + random.nextUint32() / 2 ** 33
  return Math.min(FIRST_MS * 2 ** Math.min(failures, 10) * jitter, LONGEST_MS)
}
