import type { Wait } from '../command-line/command.ts'
import type { Finding } from './finding.ts'
import { failed, ok, warning } from './finding.ts'

const WARN_ABOVE_MS = 250
const FAIL_ABOVE_MS = 1000

/** A reading of another clock. All values are milliseconds since 1970. */
interface ClockReading {
  /** Our clock before the request. */
  readonly beforeMs: number
  /** The other clock. */
  readonly thereMs: number
  /** Our clock after the response. */
  readonly afterMs: number
}

/**
 * Compares another clock with ours. It was read between our two readings, so only the difference beyond that interval
 * counts as skew.
 */
export function clockFinding(check: string, reading: ClockReading): Finding {
  // Our clock may have millisecond precision only, so both are rounded down to that.
  const [beforeMs, thereMs, afterMs] = [reading.beforeMs, reading.thereMs, reading.afterMs].map(Math.floor) as [
    number,
    number,
    number,
  ]
  const aheadMs = Math.max(0, thereMs - afterMs)
  const behindMs = Math.max(0, beforeMs - thereMs)
  const skewMs = Math.max(aheadMs, behindMs)
  const side = behindMs > aheadMs ? 'behind' : 'ahead of'
  const found = `${skewMs} ms ${side} this machine, read within ${afterMs - beforeMs} ms`
  if (skewMs <= WARN_ABOVE_MS) return ok(check, found)
  const advice = 'Synchronize all machines with the same time servers (chrony, systemd-timesyncd).'
  return skewMs <= FAIL_ABOVE_MS ? warning(check, found, advice) : failed(check, found, advice)
}

/** A server to examine, with the clock and timer of the command. */
export interface ServerCheckOptions {
  readonly url: string
  readonly nowMs: () => number
  readonly wait: Wait
}

/** Result of `work`. Rejects if it takes longer than `ms`. */
export async function within<T>(ms: number, wait: Wait, work: Promise<T>): Promise<T> {
  const done = new AbortController()
  const expire = async (): Promise<never> => {
    await wait(ms, done.signal)
    throw new Error(`no answer within ${ms} ms`)
  }
  const expiry = expire()
  // The promise that loses the race must not become an unhandled rejection.
  expiry.catch(() => undefined)
  work.catch(() => undefined)
  try {
    return await Promise.race([work, expiry])
  } finally {
    done.abort()
  }
}
