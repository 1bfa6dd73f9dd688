import { randomBytes } from 'node:crypto'
import { setImmediate } from 'node:timers'
import type { Timers } from '@sluice/core'
import { systemTimers } from '@sluice/core'

/** Where this package takes time and chance from. */
export interface Platform {
  /** Milliseconds since 1970. */
  nowMs(): number
  /** So many bytes that nobody can guess. */
  randomBytes(count: number): Uint8Array
  /** For waiting that somebody awaits. */
  readonly timers: Timers
  /** For work in the background: what waits here does not keep the process alive. */
  readonly backgroundTimers: Timers
  /** Resolves after everything else that is waiting in this process had its turn. */
  nextTurn(): Promise<void>
}

/** setTimeout fires at once beyond 2^31 - 1 ms. Nothing in the background waits for so long. */
const LONGEST_TIMER_MS = 2_147_483_647

/** The process's own, used wherever nothing else is given. */
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
