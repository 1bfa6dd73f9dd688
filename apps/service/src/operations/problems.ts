import type { FieldProblem, ProblemCode, ProblemDetails } from '@sluice/contract'
import { PROBLEM_MEDIA_TYPE, PROBLEMS, problemDocument } from '@sluice/contract'
import type { SluiceError } from '@sluice/core'
import { isSluiceError } from '@sluice/core'
import type { RuleSetProblem } from '@sluice/core/policy'
import type { Answer } from './handler.ts'
import { jsonAnswer } from './handler.ts'

/** `Retry-After` in seconds if the database is unavailable. */
export const RETRY_AFTER_SECONDS = '2'

/** `Retry-After` in seconds if the store of the counters is unavailable: the breaker probes it after about as long. */
const STORE_RETRY_AFTER_SECONDS = '1'

const NOT_KEPT = { 'Cache-Control': 'no-store' }

/** Ends a request with a problem. Thrown by handlers. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError'
  readonly answer: Answer

  constructor(answer: Answer) {
    super(`the answer is ${answer.status}`)
    this.answer = answer
  }
}

/** Ends a request with a problem of this kind. */
export function problemError(
  code: ProblemCode,
  detail: string,
  headers: Readonly<Record<string, string>> = {},
): ProblemError {
  return new ProblemError(problemOf(code, { detail, headers }))
}

/** Ends a request with an invalid part. */
export function invalidRequest(...problems: readonly FieldProblem[]): ProblemError {
  return new ProblemError(invalidRequestAnswer({ problems }))
}

/** What is named does not exist. */
export function notFound(what: string): ProblemError {
  return problemError('SLUICE_HTTP_NOT_FOUND', `There is no ${what}.`)
}

/** The condition of `If-Match` or `If-None-Match` is not met. `what`: the existing state. */
export function changedMeanwhile(what: string): ProblemError {
  const action = 'Read it again, and repeat the change with the new ETag if it still applies.'
  return problemError(
    'SLUICE_HTTP_PRECONDITION_FAILED',
    `What If-Match or If-None-Match asks for does not hold: ${what}. ${action}`,
  )
}

/** The problem for an error of the library. */
interface ErrorAnswer {
  readonly problem: ProblemCode
  /** Default: the message of the error. Replaced if that may contain internals, such as addresses of servers. */
  readonly detail?: string
  /** `Retry-After` in seconds. Default: none. */
  readonly retryAfter?: string
}

/** Errors with a problem document. All others are 500; the log has the details. */
const ERROR_ANSWERS: Partial<Readonly<Record<SluiceError['code'], ErrorAnswer>>> = {
  SLUICE_CONFIG_UNAVAILABLE: {
    problem: 'SLUICE_HTTP_CONFIG_UNAVAILABLE',
    detail:
      'The configuration database gives no usable answer. Limits go on with what was known last. Before you repeat ' +
      'a change, look whether it was made.',
    retryAfter: RETRY_AFTER_SECONDS,
  },
  SLUICE_CONFIG_NOT_WRITABLE: { problem: 'SLUICE_HTTP_CONFIG_NOT_WRITABLE' },
  SLUICE_STORE_UNAVAILABLE: {
    problem: 'SLUICE_HTTP_STORE_UNAVAILABLE',
    detail: 'The store of the counters is unreachable, and nothing was changed. Try again.',
    retryAfter: STORE_RETRY_AFTER_SECONDS,
  },
  SLUICE_OUTCOME_UNKNOWN: {
    problem: 'SLUICE_HTTP_OUTCOME_UNKNOWN',
    detail:
      'The store of the counters was asked, and no answer came: it may have happened or not. Done again, it may ' +
      'count twice; a reservation that is left alone is given back by itself.',
  },
  SLUICE_STORE_FULL: {
    problem: 'SLUICE_HTTP_OVERLOADED',
    detail: 'Too many reservations are open. Settle or release some, or let them end sooner, and try again.',
    retryAfter: STORE_RETRY_AFTER_SECONDS,
  },
  SLUICE_CLOSED: {
    problem: 'SLUICE_HTTP_NOT_READY',
    detail: 'This node is stopping. Ask another one.',
    retryAfter: STORE_RETRY_AFTER_SECONDS,
  },
  SLUICE_CONFLICT: { problem: 'SLUICE_HTTP_CONFLICT' },
  SLUICE_NOT_FOUND: { problem: 'SLUICE_HTTP_NOT_FOUND' },
  SLUICE_INVALID_OPTION: { problem: 'SLUICE_HTTP_INVALID_REQUEST' },
  SLUICE_INVALID_DURATION: { problem: 'SLUICE_HTTP_INVALID_REQUEST' },
  SLUICE_INVALID_COST: { problem: 'SLUICE_HTTP_INVALID_REQUEST' },
  SLUICE_INVALID_KEY: { problem: 'SLUICE_HTTP_INVALID_REQUEST' },
}

/** The answer to an error of a handler; undefined if no client caused it. */
export function answerToError(error: unknown): Answer | undefined {
  if (error instanceof ProblemError) return error.answer
  if (!isSluiceError(error)) return undefined
  if (hasProblems(error)) return invalidRuleSet(error.problems).answer
  const known = ERROR_ANSWERS[error.code]
  if (known === undefined) return undefined
  const { problem, detail = sentenceOf(error), retryAfter } = known
  return problemOf(problem, { detail, headers: retryAfter === undefined ? {} : { 'Retry-After': retryAfter } })
}

/**
 * Locates an error about rules or entries in the body of the request. `placeOf` maps a path in what was checked to one
 * in the body. Other errors are returned unchanged.
 */
export function placedError(error: unknown, placeOf: PlaceOf): unknown {
  if (!isSluiceError(error) || !hasProblems(error)) return error
  return invalidRuleSet(error.problems.map((problem) => placedProblem(problem, placeOf)))
}

function problemOf(code: ProblemCode, { headers, ...details }: ProblemAnswerDetails): Answer {
  return problemAnswer(code, { ...details, headers: { ...headers, ...NOT_KEPT } })
}

function hasProblems(error: SluiceError): error is SluiceError & { readonly problems: readonly RuleSetProblem[] } {
  return error.code === 'SLUICE_INVALID_RULE_SET' && 'problems' in error && Array.isArray(error.problems)
}

/** Ends a request with invalid rules or entries. */
export function invalidRuleSet(errors: readonly RuleSetProblem[]): ProblemError {
  const what = errors.length === 1 ? 'One thing is wrong' : `${errors.length} things are wrong`
  const detail = `${what}; nothing was changed. Correct what "errors" lists, and send it again.`
  return new ProblemError(problemOf('SLUICE_HTTP_INVALID_RULE_SET', { detail, errors }))
}

/** The message of an error without its code. */
function sentenceOf({ message }: SluiceError): string {
  const text = message.replace(/^SLUICE_[A-Z_]+: /, '')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** A problem, and additional headers. */
export interface ProblemAnswerDetails extends ProblemDetails {
  readonly headers?: Readonly<Record<string, string>>
}

/** The answer for a problem: its document, and the status of its kind. */
export function problemAnswer(code: ProblemCode, details: ProblemAnswerDetails): Answer {
  const { headers = {}, ...problem } = details
  const body = JSON.stringify(problemDocument(code, problem))
  return jsonAnswer(PROBLEMS[code].status, body, { headers, mediaType: PROBLEM_MEDIA_TYPE })
}

/** Maximum number of problems in an answer. */
const MOST_LISTED = 64

/** The answer to invalid parameters or an invalid body: all problems, up to the maximum. */
export function invalidRequestAnswer({ problems, unlisted = 0 }: InvalidRequest): Answer {
  const errors = problems.slice(0, MOST_LISTED)
  const places = errors.map(({ path }) => path || 'the body').join(', ')
  const count = problems.length + unlisted
  const more = count > errors.length ? `, and ${count - errors.length} more that are not listed` : ''
  return problemAnswer('SLUICE_HTTP_INVALID_REQUEST', {
    detail: `${count === 1 ? 'One thing is' : `${count} things are`} wrong: ${places}${more}. Nothing was done.`,
    errors,
  })
}

/** What is wrong with a request. */
export interface InvalidRequest {
  readonly problems: readonly FieldProblem[]
  /** Number of further problems. Default: 0. */
  readonly unlisted?: number
}

/** Maps a path in a rule set or list to one in the body of the request; undefined if the body does not contain it. */
export type PlaceOf = (path: string) => string | undefined

/** A path in a rule set inside a message. Quoted parts are resources or names. */
const PLACE = /(?<![\w"/.])\/(?:rules|tiers|exemptions|denyList|domains)\/\d+(?:\/\w+)*/g

/**
 * A problem with all paths mapped to the body. Paths that the body does not contain are said to be in the enforced
 * rules.
 */
export function placedProblem(problem: RuleSetProblem, placeOf: PlaceOf): RuleSetProblem {
  const retold = (text: string): string => text.replaceAll(PLACE, (place) => placeOf(place) ?? elsewhere(place))
  const path = placeOf(problem.path)
  const received = retold(problem.received)
  return {
    ...problem,
    path: path ?? '',
    received: path === undefined ? `${received}, at ${elsewhere(problem.path)}` : received,
    expected: retold(problem.expected),
  }
}

function elsewhere(place: string): string {
  return `${place} of the enforced rules`
}
