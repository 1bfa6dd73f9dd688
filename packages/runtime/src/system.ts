import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { LoopDelay } from './lag-guard.ts'
import { requireNumber } from './option-range.ts'

// The only file of this package that touches the real clock, the real timers and real randomness. Nothing here is a
// hidden default: a caller that wants the real thing passes it in by name.

/** The system's wall clock in milliseconds. It goes back when the system's time is corrected. */
export const systemNowMs = (): number => Date.now()

/** The system's random numbers, from 0 (included) to 1 (excluded). Not for secrets. */
export const systemRandom = (): number => Math.random()

// A longer timer overflows to 1 ms in Node and in browsers, so long waits are made of several.
const LONGEST_TIMER_MS = 2 ** 31 - 1

/**
 * Waits on a real timer, `delayMs` rounded up to whole milliseconds; any finite length, also beyond the 24.8 days of
 * one timer. Zero still gives way to other work. The timer keeps the process alive until it fires or is aborted.
 *
 * Rejects at once with `signal.reason` when `signal` aborts or already has, and leaves no timer and no listener.
 */
export function systemSleep(delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let remainingMs = Math.ceil(requireNumber('delayMs', delayMs, { min: 0, max: Number.MAX_SAFE_INTEGER }))
    if (signal?.aborted === true) {
      reject(signal.reason)
      return
    }
    let timer: NodeJS.Timeout
    const onAbort = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const schedule = (): void => {
      const partMs = Math.min(remainingMs, LONGEST_TIMER_MS)
      remainingMs -= partMs
      timer = setTimeout(remainingMs > 0 ? schedule : finish, partMs)
    }
    const finish = (): void => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    schedule()
  })
}

const LOOP_DELAY_RESOLUTION_MS = 10

/** The delay of this thread's event loop, looked at every 10 ms until `close`. Keeps no process alive. */
export function systemLoopDelay(): LoopDelay & { readonly close: () => void } {
  const histogram = monitorEventLoopDelay({ resolution: LOOP_DELAY_RESOLUTION_MS })
  histogram.enable()
  let readCount = 0
  let readSum = 0
  const readMs = (): number | undefined => {
    // Differences, and not reset(): that would lose the interval that is under way, which is the long one.
    const { count } = histogram
    const sum = count === 0 ? 0 : histogram.mean * count
    const intervals = count - readCount
    if (intervals === 0) return undefined
    const intervalMs = (sum - readSum) / intervals / 1e6
    readCount = count
    readSum = sum
    return Math.max(0, intervalMs - LOOP_DELAY_RESOLUTION_MS)
  }
  return { readMs, close: () => void histogram.disable() }
}
