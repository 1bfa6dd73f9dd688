import type { CheckAnswer, DecisionLike } from '@sluice/contract'

/**
 * The decision that an answer of the service tells, in the form in which the library and its middleware have decisions. Times
 * are in the whole seconds of the answer.
 */
export function decisionOf(answer: CheckAnswer): DecisionLike {
  const { allowed, reason, rule, limit, remaining, resetAt, retryAfter, version, delayMs, failure } = answer
  return {
    allowed,
    reason,
    rule,
    limit: limit ?? Number.POSITIVE_INFINITY,
    remaining: remaining ?? Number.POSITIVE_INFINITY,
    resetAt: resetAt === null ? 0 : Date.parse(resetAt),
    retryAfterMs: allowed ? 0 : (retryAfter ?? Number.POSITIVE_INFINITY) * 1000,
    ...(delayMs === undefined ? {} : { delayMs }),
    ...(version === undefined ? {} : { version }),
    ...(failure === undefined ? {} : { failure }),
  }
}
