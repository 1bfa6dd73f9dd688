import type { ConfigFollower } from '@sluice/config-store'
import type { RefusedBody } from '@sluice/contract'
import { isSluiceError } from '@sluice/core'
import type { Answer } from './answer.ts'
import type { OperationHandler } from './handler.ts'
import { problemAnswer } from './problem-answer.ts'

/** How soon to ask again what could not be done, in seconds: a breaker tries the store again after about as long. */
const RETRY_SECONDS = '1'

/** The answer to a body that cannot be understood. */
export function invalidBody({ problems, unlisted }: RefusedBody): Answer {
  const count = problems.length + unlisted
  const places = problems.map(({ path }) => path || 'the body').join(', ')
  const more = unlisted === 0 ? '' : `, and ${unlisted} more that are not listed`
  return problemAnswer('SLUICE_HTTP_INVALID_REQUEST', {
    detail: `${count === 1 ? 'One thing is' : `${count} things are`} wrong: ${places}${more}. Nothing was counted.`,
    errors: problems,
  })
}

const NO_RULES = problemAnswer('SLUICE_HTTP_NOT_READY', {
  detail: 'This node has no rules yet. Nothing was counted. Ask another node, or try again; GET /readyz says why.',
  headers: { 'Retry-After': RETRY_SECONDS },
})

/**
 * The handler, which is not called while no rules are known: the answer is 503 then. Without rules every call would be unlimited, and
 * no failure mode is known either, because that is part of a rule. A caller that is answered 503 applies its own failure mode.
 */
export function whenReady(follower: Pick<ConfigFollower, 'hasRules'>, handle: OperationHandler): OperationHandler {
  return (request) => (follower.hasRules ? handle(request) : NO_RULES)
}

/** The handler, with failures of the store answered as problems. What is nobody's but ours to know is thrown on. */
export function withStoreProblems(handle: OperationHandler): OperationHandler {
  return (request) => {
    try {
      const answer = handle(request)
      return answer instanceof Promise ? answer.catch(problemOf) : answer
    } catch (error) {
      return problemOf(error)
    }
  }
}

function problemOf(error: unknown): Answer {
  if (!isSluiceError(error)) throw error
  switch (error.code) {
    case 'SLUICE_STORE_UNAVAILABLE':
      return problemAnswer('SLUICE_HTTP_STORE_UNAVAILABLE', {
        detail: 'The store of the counters did not do it. Nothing has changed: try again later.',
        headers: { 'Retry-After': RETRY_SECONDS },
      })
    case 'SLUICE_OUTCOME_UNKNOWN':
      return problemAnswer('SLUICE_HTTP_OUTCOME_UNKNOWN', {
        detail:
          'The store of the counters was asked, and no answer came: it may have happened. Done again, it may count twice; left alone, what was reserved is given back by itself.',
      })
    case 'SLUICE_STORE_FULL':
      return problemAnswer('SLUICE_HTTP_OVERLOADED', {
        detail: 'Too many reservations are open. Settle or release some, or let them end sooner, and try again.',
        headers: { 'Retry-After': RETRY_SECONDS },
      })
    case 'SLUICE_CLOSED':
      return problemAnswer('SLUICE_HTTP_NOT_READY', {
        detail: 'This node is stopping. Ask another one.',
        headers: { 'Retry-After': RETRY_SECONDS },
      })
    default:
      throw error
  }
}
