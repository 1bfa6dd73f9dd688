import { type Clock, MICROS_PER_MS } from './clock.ts'

/**
 * A clock that never goes back. It follows the wall clock, to the millisecond; when that is set back, it goes on from where
 * it was at the usual pace, and stays ahead by the difference.
 */
export function createSystemClock(): Clock {
  let aheadMs = 0
  let lastMs = 0
  return {
    nowMicros() {
      let nowMs = Date.now() + aheadMs
      if (nowMs < lastMs) {
        aheadMs += lastMs - nowMs
        nowMs = lastMs
      }
      lastMs = nowMs
      return nowMs * MICROS_PER_MS
    },
  }
}

/** The process's clock, used wherever no other is given. */
export const systemClock: Clock = createSystemClock()
