import type { DecisionLike } from '@sluice/contract'
import { isLess } from '@sluice/core/internal'
import type { Denial } from './denial.ts'

/** The request may go on. */
export interface Admission {
  readonly allowed: true
  /** Undefined when it was not asked about, because `skip` said so. */
  readonly decision: DecisionLike | undefined
  /** To be set on the answer, whatever it will be. */
  readonly headers: Readonly<Record<string, string>>
  /** Milliseconds that it must wait for its turn first; 0 when it need not. */
  readonly delayMs: number
  /**
   * To be called once, when the answer has left or the connection has closed before that: `status` is that of the answer, 0 when
   * there was none. Undefined when nobody wants to know. Never throws or rejects.
   */
  readonly finish: ((status: number) => void) | undefined
}

/** What is to become of a request. */
export type HttpOutcome = Admission | Denial

/**
 * Of what two limiters decided on one request, what handlers are told: the denial, else the one with the least remaining.
 * Undefined is a limiter that was not asked.
 */
export function narrowestDecision(
  before: DecisionLike | undefined,
  decision: DecisionLike | undefined,
): DecisionLike | undefined {
  if (before === undefined || decision === undefined) return decision ?? before
  return before.allowed && (!decision.allowed || isLess(decision.remaining, before.remaining)) ? decision : before
}
