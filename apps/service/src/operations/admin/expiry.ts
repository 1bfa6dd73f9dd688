import type { Clock } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import { invalidRequest } from '../problems.ts'

/** When something ends that a request asks for. */
export interface Expiry {
  /** Where in the body it stands. */
  readonly path: string
  /** Milliseconds since 1970; undefined when it does not end by itself. */
  readonly at: number | undefined
}

/** Refuses what would have ended before it begins: nobody means that, and mostly it is an instant in seconds. */
export function refuseEnded(clock: Clock, expiries: readonly Expiry[]): void {
  const nowMs = clock.nowMicros() / MICROS_PER_MS
  const ended = expiries.filter(({ at }) => at !== undefined && at <= nowMs)
  if (ended.length === 0) return
  throw invalidRequest(
    ...ended.map(({ path, at }) => ({
      path,
      received: `${at}, which is ${new Date(at!).toISOString()}`,
      expected: 'an instant in the future, in milliseconds since 1970',
    })),
  )
}
