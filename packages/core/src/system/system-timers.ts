import type { Timers } from './timers.ts'

declare function setTimeout(run: () => void, delayMs: number): unknown
declare function clearTimeout(timer: unknown): void

/** setTimeout fires at once beyond 2^31 - 1 ms; longer waits are made of several. */
const LONGEST_TIMER_MS = 2_147_483_647

/** Timers of the platform. */
export const systemTimers: Timers = {
  schedule(delayMs, run) {
    let timer: unknown
    const arm = (leftMs: number): void => {
      const stepMs = Math.min(leftMs, LONGEST_TIMER_MS)
      timer = setTimeout(() => (leftMs > stepMs ? arm(leftMs - stepMs) : run()), Math.ceil(stepMs))
    }
    arm(delayMs)
    return () => clearTimeout(timer)
  },
}
