import type { DecisionLike } from '@sluice/contract'
import { isLess } from '@sluice/core/internal'

/**
 * Of what two limiters decided on one request, what handlers are told: the refusal, else the one with the least remaining.
 * Undefined is a limiter that was not asked.
 */
export function narrowestDecision(
  before: DecisionLike | undefined,
  decision: DecisionLike | undefined,
): DecisionLike | undefined {
  if (before === undefined || decision === undefined) return decision ?? before
  return before.allowed && (!decision.allowed || isLess(decision.remaining, before.remaining)) ? decision : before
}
