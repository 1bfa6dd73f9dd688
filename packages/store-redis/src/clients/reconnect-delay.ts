import type { Random } from '@sluice/core'

const FIRST_MS = 50
const LONGEST_MS = 500

/**
 * Milliseconds until the next try to connect, after so many that failed: 50, doubling up to 500, each a random quarter
 * longer or shorter, so that the clients of a server that comes back do not all come at once.
 */
export function reconnectDelayMs(failures: number, random: Random): number {
  const delayMs = Math.min(FIRST_MS * 2 ** Math.min(failures, 10), LONGEST_MS)
  return delayMs * (0.75 + random.nextUint32() / 2 ** 33)
}
