import type { Clock } from './clock.ts'
import { MICROS_PER_MS } from './clock.ts'

declare const performance: { readonly timeOrigin: number; now(): number }

/** How far the wall clock must run ahead of the monotonic one before it is followed (a suspended machine, a clock set right). */
const FOLLOW_AFTER_MS = 1000

/**
 * A clock that never goes back. It runs on the monotonic clock, and once a second it looks at the wall clock: when that is
 * more than a second ahead, it is followed; when it is behind (somebody set it back), it is not.
 */
export function createSystemClock(): Clock {
  let origin = performance.timeOrigin
  let nextLookAt = 0
  return {
    nowMicros() {
      let now = origin + performance.now()
      if (now >= nextLookAt) {
        const ahead = Date.now() - now
        if (ahead > FOLLOW_AFTER_MS) {
          origin += ahead
          now += ahead
        }
        nextLookAt = now + FOLLOW_AFTER_MS
      }
      return Math.floor(now * MICROS_PER_MS)
    },
  }
}

/** The process's clock, used wherever no other is given. */
export const systemClock: Clock = createSystemClock()
