import type { Timers } from '@sluice/core'

/** Timers for work that nobody waits for: they do not keep the process alive. */
export const backgroundTimers: Timers = {
  schedule(delayMs, run) {
    const timer = setTimeout(run, delayMs)
    timer.unref()
    return () => clearTimeout(timer)
  },
}
