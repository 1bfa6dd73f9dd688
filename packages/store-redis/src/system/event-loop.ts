// Imported, because fake timers of test frameworks replace the global ones: calls would wait until the test advances
// time, and a test that advances it by a year would send a year of heartbeats.
import { clearTimeout, setImmediate, setTimeout } from 'node:timers'
import type { Timers } from '@sluice/core'

/**
 * Runs a callback in this iteration of the event loop, after the callbacks of all input that has arrived: everything
 * they request leaves in one call.
 */
export function runAfterIo(run: () => void): void {
  setImmediate(run)
}

/** Timers for background work: they do not keep the process alive. */
export const backgroundTimers: Timers = {
  schedule(delayMs, run) {
    const timer = setTimeout(run, delayMs)
    timer.unref()
    return () => clearTimeout(timer)
  },
}

/**
 * Its callbacks are microtasks. Some fake timers replace `queueMicrotask`, and the cached time would never be dropped.
 */
const resolved = Promise.resolve()

/**
 * Caches a clock until the code that runs now, and the microtasks queued so far, have finished. A burst of checks would
 * otherwise read the clock twice per check.
 */
export function cachedClock(readMs: () => number): () => number {
  let nowMs = 0
  let isFresh = false
  const drop = (): void => {
    isFresh = false
  }
  return () => {
    if (!isFresh) {
      nowMs = readMs()
      isFresh = true
      void resolved.then(drop)
    }
    return nowMs
  }
}
