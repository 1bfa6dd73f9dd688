import type { CheckAnswer, DecisionLike } from '@sluice/contract'
import { can } from '@sluice/core/options'
import { isClientError, lastErrorOf } from './errors/client-error.ts'
import { invalidOption } from './errors/client-option-check.ts'
import { isUntouched } from './retry/retry-safety.ts'

/**
 * What a check returns when the service is unavailable: an answer that allows (`open`) or denies (`closed`) and says in
 * `failure` that it is not the service's, or an error (`throw`).
 */
export type ClientFailureMode = 'open' | 'closed' | 'throw'

/** Statuses by which the service, or what stands before it, says that it does not answer now. */
const TURNED_AWAY: ReadonlySet<number> = new Set([408, 429])
const FIRST_SERVER_ERROR = 500

/** What a failed check is about. */
export interface FailedCheck {
  readonly mode: ClientFailureMode
  /** Whether it would have taken tokens. */
  readonly takes: boolean
}

/**
 * The answer in the place of one that the service did not give. Throws `error` where it is wanted, and where it is not
 * an outage: a request or a key that the service does not accept, or a call that its caller ended.
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
 * The decision that an answer of the service tells, in the form in which the library and its middleware have decisions.
 * Times are in the whole seconds of the answer. Throws when it is no answer.
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
