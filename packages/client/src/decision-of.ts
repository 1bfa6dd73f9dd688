import type { CheckAnswer, DecisionLike } from '@sluice/contract'
import { can } from '@sluice/core/options'
import { invalidOption } from './option-check.ts'

/**
 * The decision that an answer of the service tells, in the form in which the library and its middleware have decisions. Times
 * are in the whole seconds of the answer. Throws when it is no answer.
 */
export function decisionOf(answer: CheckAnswer): DecisionLike {
  if (typeof answer?.allowed !== 'boolean') throw noAnswer(answer)
  const { allowed, reason, rule, limit, remaining, resetAt, retryAfter, version, delayMs, failure } = answer
  return {
    allowed,
    reason,
    rule,
    limit: limit ?? Number.POSITIVE_INFINITY,
    remaining: limit === null ? Number.POSITIVE_INFINITY : remaining,
    resetAt: resetAt === null ? 0 : Date.parse(resetAt),
    retryAfterMs: allowed ? 0 : (retryAfter ?? Number.POSITIVE_INFINITY) * 1000,
    ...(delayMs === undefined ? {} : { delayMs }),
    ...(version === undefined ? {} : { version }),
    ...(failure === undefined ? {} : { failure }),
  }
}

function noAnswer(received: unknown): Error {
  return invalidOption({
    problem: 'there is no decision in it',
    received,
    expected: 'the answer to a check',
    ...(can(received, 'then') ? { action: 'It is a promise: await it first.' } : {}),
  })
}
