import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { LoopDelay } from './lag-guard.ts'

const LOOP_DELAY_RESOLUTION_MS = 10

/** Measures the event loop delay of this thread every 10 ms until `close`. Does not keep the process alive. */
export function systemLoopDelay(): LoopDelay & { readonly close: () => void } {
  const histogram = monitorEventLoopDelay({ resolution: LOOP_DELAY_RESOLUTION_MS })
  histogram.enable()
  let readCount = 0
  let readSum = 0
  const readMs = (): number | undefined => {
    // Differences instead of reset(), which would lose the interval in progress: the long one.
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
