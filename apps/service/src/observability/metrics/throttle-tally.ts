import type { FailureMode } from '@sluice/core'

/** A decision on a limit that its caller named with its numbers. */
export interface ThrottleDecision {
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  /** -1 if allowed, and if the quantity can never fit. */
  readonly retryAfterSeconds: number
  /** How it was decided without the store; undefined if the store decided. */
  readonly failure: FailureMode | undefined
}

/** Numbers of decisions: allowed, those of them near the limit, denied by reason, and by failure mode. */
export type ThrottleCounts = Readonly<
  Record<'allowed' | 'near' | 'limit' | 'never' | 'unavailable' | FailureMode, number>
>

/** An allowed check with at most this share of the limit remaining is near the limit. */
const NEAR_SHARE = 5

/** Whether an allowed check was near its limit. */
export function isNear(remaining: number | null, limit: number): boolean {
  return remaining !== null && remaining * NEAR_SHARE <= limit && limit !== Number.POSITIVE_INFINITY
}

/**
 * Adds up decisions, so that they are reported together. `CL.THROTTLE` takes a microsecond in all: to report each
 * decision would be a part of it that can be measured.
 */
export class ThrottleTally {
  #counts = noCounts()
  #isEmpty = true

  add({ allowed, limit, remaining, retryAfterSeconds, failure }: ThrottleDecision): void {
    const counts = this.#counts
    this.#isEmpty = false
    if (failure !== undefined) counts[failure]++
    if (allowed) {
      counts.allowed++
      if (failure !== 'open' && isNear(remaining, limit)) counts.near++
    } else if (failure === 'closed') counts.unavailable++
    else if (retryAfterSeconds < 0) counts.never++
    else counts.limit++
  }

  /** What was added since the last call; undefined if nothing was. */
  take(): ThrottleCounts | undefined {
    if (this.#isEmpty) return undefined
    const counts = this.#counts
    this.#counts = noCounts()
    this.#isEmpty = true
    return counts
  }
}

function noCounts(): Record<keyof ThrottleCounts, number> {
  return { allowed: 0, near: 0, limit: 0, never: 0, unavailable: 0, open: 0, closed: 0, local: 0 }
}
