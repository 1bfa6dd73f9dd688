import type { NowMs } from './clock.ts'
import { describeValue, RuntimeError } from './errors.ts'

/** What the clock shows; throws `SLUICE_RUNTIME_INVALID_PORT` when that is not a finite number. */
export function readClock(nowMs: NowMs): number {
  const now = nowMs()
  if (Number.isFinite(now)) return now
  throw new RuntimeError('SLUICE_RUNTIME_INVALID_PORT', {
    received: `${describeValue(now)} from nowMs()`,
    expected: 'a finite number of milliseconds',
    action: 'Pass systemNowMs, or correct the clock that is passed in.',
  })
}
