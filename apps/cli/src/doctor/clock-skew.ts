import type { Finding } from './finding.ts'
import { failed, ok, warning } from './finding.ts'

const NOTICEABLE_MS = 250
const HARMFUL_MS = 1000

/** When another clock was read, in milliseconds since 1970 each. */
export interface ClockReading {
  /** By our clock, before it was asked. */
  readonly beforeMs: number
  /** What it said. */
  readonly thereMs: number
  /** By our clock, when the answer was here. */
  readonly afterMs: number
}

/**
 * How far another clock is from ours. It was read at some instant between two of ours: only what cannot be explained by the time
 * of the way counts.
 */
export function clockFinding(check: string, reading: ClockReading): Finding {
  // Our clock may show whole milliseconds only, so others are read no more exactly.
  const [beforeMs, thereMs, afterMs] = [reading.beforeMs, reading.thereMs, reading.afterMs].map(Math.floor) as [
    number,
    number,
    number,
  ]
  const aheadMs = Math.max(0, thereMs - afterMs)
  const behindMs = Math.max(0, beforeMs - thereMs)
  const skewMs = Math.max(aheadMs, behindMs)
  const found = `${skewMs} ms ${behindMs > aheadMs ? 'behind' : 'ahead of'} this machine, read within ${afterMs - beforeMs} ms`
  if (skewMs <= NOTICEABLE_MS) return ok(check, found)
  const advice = 'Let the clocks of all machines follow the same time servers (chrony, systemd-timesyncd).'
  return skewMs <= HARMFUL_MS ? warning(check, found, advice) : failed(check, found, advice)
}
