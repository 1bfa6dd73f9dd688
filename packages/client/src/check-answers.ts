import type { CheckAnswer, DecisionLike } from '@sluice/contract'
import { can } from '@sluice/core/options'
import { isClientError, lastErrorOf } from './errors/client-error.ts'
import { invalidOption } from './errors/client-option-check.ts'
import { isUntouched } from './retry/retry-safety.ts'

/**
 * Result of a check when the service is unavailable: an answer that allows (`open`) or denies (`closed`) and has a
 * `failure`, or an error (`throw`).
 */
export type ClientFailureMode = 'open' | 'closed' | 'throw'

/** Statuses with which the service, or a proxy in front of it, reports that it is temporarily unavailable. */
const TURNED_AWAY: ReadonlySet<number> = new Set([408, 429])
const FIRST_SERVER_ERROR = 500

/** The check that failed. */
export interface FailedCheck {
  readonly mode: ClientFailureMode
  /** Whether it would have charged tokens. */
  readonly takes: boolean
}

/**
 * The answer in place of a missing one. Throws `error` if that is the failure mode, or if it is not an outage: a
 * rejected request or key, or a call that its caller aborted.
 */
export function failureAnswer(error: unknown, { mode, takes }: FailedCheck): CheckAnswer {
  const lastError = lastErrorOf(error)
  const cause = causeOf(lastError)
  if (mode === 'throw' || cause === undefined) throw error
  const waitMs = isClientError(lastError) ? lastError.retryAfterMs : undefined
  return {
    allowed: mode === 'open',
    reason: mode === 'open' ? 'allowed' : 'unavailable',
    limit: null,
    remaining: null,
    resetAt: null,
    retryAfter: mode === 'open' || waitMs === undefined ? null : Math.ceil(waitMs / 1000),
    dimension: '',
    rule: '',
    failure: { mode, cause, charged: takes && !isUntouched(lastError) ? 'unknown' : 'no' },
  }
}

function causeOf(error: unknown): 'deadline' | 'unreachable' | 'refused' | undefined {
  if (!isClientError(error)) return undefined
  if (error.code === 'SLUICE_CLIENT_TIMEOUT') return 'deadline'
  if (error.code === 'SLUICE_CLIENT_UNREACHABLE') return 'unreachable'
  const { status = 0 } = error
  return status >= FIRST_SERVER_ERROR || TURNED_AWAY.has(status) ? 'refused' : undefined
}

/**
 * Converts an answer of the service into a decision of the library. Times have the resolution of the answer: whole
 * seconds. Throws if it is not an answer.
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
