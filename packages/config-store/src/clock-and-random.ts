import { randomBytes } from 'node:crypto'
import { setImmediate } from 'node:timers'
import type { Timers } from '@sluice/core'
import { systemTimers } from '@sluice/core'

/** The sources of time, randomness and waiting of this package. */
export interface Platform {
  /** Milliseconds since 1970. */
  nowMs(): number
  /** Cryptographically random bytes. */
  randomBytes(count: number): Uint8Array
  /** Timers that keep the process alive: a caller awaits the result. */
  readonly timers: Timers
  /** Timers for background work. They do not keep the process alive. */
  readonly backgroundTimers: Timers
  /** Resolves in the next turn of the event loop. */
  nextTurn(): Promise<void>
}

/** setTimeout fires immediately for delays above 2^31 - 1 ms. No background work waits that long. */
const LONGEST_TIMER_MS = 2_147_483_647

/** The real platform: the default everywhere. */
export const platform: Platform = {
  nowMs: () => Date.now(),
  randomBytes: (count) => randomBytes(count),
  timers: systemTimers,
  backgroundTimers: {
    schedule(delayMs, run) {
      const timer = setTimeout(run, Math.min(Math.ceil(delayMs), LONGEST_TIMER_MS))
      timer.unref()
      return () => clearTimeout(timer)
    },
  },
  nextTurn: () => new Promise((resolve) => void setImmediate(resolve)),
}
