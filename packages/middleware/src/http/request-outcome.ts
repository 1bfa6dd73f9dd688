import type { DecisionLike } from '@sluice/contract'
import { isLess } from '@sluice/core/internal'
import type { Denial } from './denial-response.ts'

/** The request may continue. */
export interface Admission {
  readonly allowed: true
  /** Undefined if `skip` excluded the request. */
  readonly decision: DecisionLike | undefined
  /** Headers to set on the response, whatever its status. */
  readonly headers: Readonly<Record<string, string>>
  /** Milliseconds to wait before the handler runs. 0: no wait. */
  readonly delayMs: number
  /**
   * Call it once when the response was sent or the connection closed. `status` is 0 without a response. Undefined if
   * the outcome does not matter. Never throws or rejects.
   */
  readonly finish: ((status: number) => void) | undefined
}

/** What the middleware does with a request. */
export type HttpOutcome = Admission | Denial

/**
 * The decision to report when several limiters decide one request: the denial, else the one with the fewest remaining
 * units. Undefined stands for a limiter that was not consulted.
 */
export function narrowestDecision(
  before: DecisionLike | undefined,
  decision: DecisionLike | undefined,
): DecisionLike | undefined {
  if (before === undefined || decision === undefined) return decision ?? before
  return before.allowed && (!decision.allowed || isLess(decision.remaining, before.remaining)) ? decision : before
}
