import type { ConfigFollower } from '@sluice/config-store'
import type { FieldProblem, InvalidBody, ProblemCode, ProblemDetails } from '@sluice/contract'
import { PROBLEM_MEDIA_TYPE, PROBLEMS, problemDocument } from '@sluice/contract'
import type { SluiceError } from '@sluice/core'
import { isSluiceError } from '@sluice/core'
import type { RuleSetProblem } from '@sluice/core/policy'
import type { Answer, OperationHandler, OperationHandlers } from './handler.ts'
import { jsonAnswer } from './handler.ts'

/** Seconds after which a database or store that was away is worth another try. */
export const RETRY_AFTER_SECONDS = '2'

const NOT_KEPT = { 'Cache-Control': 'no-store' }

/** Ends a request with a problem. Thrown by handlers, and turned into its answer before it leaves them. */
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
  return new ProblemError(problemAnswer(code, { detail, headers: { ...headers, ...NOT_KEPT } }))
}

/** Ends a request with something in it that cannot be used. */
export function invalidRequest(...problems: readonly FieldProblem[]): ProblemError {
  return new ProblemError(invalidRequestAnswer(problems))
}

/** What is named does not exist. */
export function notFound(what: string): ProblemError {
  return problemError('SLUICE_HTTP_NOT_FOUND', `There is no ${what}.`)
}

/** Fixed texts where the message of the error may tell of things inside, such as addresses of servers. */
const OUTAGES: Partial<Readonly<Record<SluiceError['code'], readonly [ProblemCode, string]>>> = {
  SLUICE_CONFIG_UNAVAILABLE: [
    'SLUICE_HTTP_CONFIG_UNAVAILABLE',
    'The configuration database gives no usable answer. Limits go on with what was known last. Before you repeat a change, look whether it was made.',
  ],
  SLUICE_STORE_UNAVAILABLE: [
    'SLUICE_HTTP_STORE_UNAVAILABLE',
    'The store of the counters cannot be reached, and nothing was changed. Try again.',
  ],
  SLUICE_OUTCOME_UNKNOWN: [
    'SLUICE_HTTP_OUTCOME_UNKNOWN',
    'The store of the counters did not answer: it may have happened or not. Look, and repeat it where needed.',
  ],
}

const KINDS: Partial<Readonly<Record<SluiceError['code'], ProblemCode>>> = {
  SLUICE_CONFIG_NOT_WRITABLE: 'SLUICE_HTTP_CONFIG_NOT_WRITABLE',
  SLUICE_CONFLICT: 'SLUICE_HTTP_CONFLICT',
  SLUICE_NOT_FOUND: 'SLUICE_HTTP_NOT_FOUND',
  SLUICE_INVALID_OPTION: 'SLUICE_HTTP_INVALID_REQUEST',
  SLUICE_INVALID_DURATION: 'SLUICE_HTTP_INVALID_REQUEST',
  SLUICE_INVALID_COST: 'SLUICE_HTTP_INVALID_REQUEST',
  SLUICE_INVALID_KEY: 'SLUICE_HTTP_INVALID_REQUEST',
}

/** The answer to what a handler threw; undefined for what no client is at fault for. */
export function answerToError(error: unknown): Answer | undefined {
  if (error instanceof ProblemError) return error.answer
  if (!isSluiceError(error)) return undefined
  if (hasProblems(error)) return invalidRuleSet(error.problems).answer
  const outage = OUTAGES[error.code]
  if (outage !== undefined) {
    const [code, detail] = outage
    const headers = code === 'SLUICE_HTTP_OUTCOME_UNKNOWN' ? {} : { 'Retry-After': RETRY_AFTER_SECONDS }
    return problemOf(code, { detail, headers })
  }
  const kind = KINDS[error.code]
  return kind === undefined ? undefined : problemOf(kind, { detail: sentenceOf(error) })
}

/**
 * Does something, and if that finds fault with rules or entries, says where in the body of the request they stand: `placeOf`
 * turns a path in what was checked into one in the body.
 */
export async function placingProblems<T>(placeOf: PlaceOf, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!isSluiceError(error) || !hasProblems(error)) throw error
    throw invalidRuleSet(error.problems.map((problem) => placedProblem(problem, placeOf)))
  }
}

function problemOf(code: ProblemCode, { headers, ...details }: ProblemAnswerDetails): Answer {
  return problemAnswer(code, { ...details, headers: { ...headers, ...NOT_KEPT } })
}

function hasProblems(error: SluiceError): error is SluiceError & { readonly problems: readonly RuleSetProblem[] } {
  return error.code === 'SLUICE_INVALID_RULE_SET' && 'problems' in error && Array.isArray(error.problems)
}

/** Ends a request with rules or entries that cannot be used. */
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

/** A problem, and the headers that its answer needs besides. */
export interface ProblemAnswerDetails extends ProblemDetails {
  readonly headers?: Readonly<Record<string, string>>
}

/** The answer for a problem: its document, and the status of its kind. */
export function problemAnswer(code: ProblemCode, details: ProblemAnswerDetails): Answer {
  const { headers = {}, ...problem } = details
  const body = JSON.stringify(problemDocument(code, problem))
  return jsonAnswer(PROBLEMS[code].status, body, { headers, mediaType: PROBLEM_MEDIA_TYPE })
}

/** How many problems an answer lists. */
const MOST_LISTED = 64

/** The answer for a request of the wrong form: everything that is wrong with it, as far as anybody will read. */
export function invalidRequestAnswer(problems: readonly FieldProblem[]): Answer {
  const errors = problems.slice(0, MOST_LISTED)
  const places = errors.map(({ path }) => path || 'the body').join(', ')
  const more = problems.length > MOST_LISTED ? `, and ${problems.length - MOST_LISTED} more that are not listed` : ''
  const count = problems.length === 1 ? 'One thing is' : `${problems.length} things are`
  return problemAnswer('SLUICE_HTTP_INVALID_REQUEST', {
    detail: `${count} wrong: ${places}${more}. Nothing was done.`,
    errors,
  })
}

/** How soon to ask again what could not be done, in seconds: a breaker tries the store again after about as long. */
const RETRY_SECONDS = '1'

/** The answer to a body that cannot be understood. */
export function invalidBody({ problems, unlisted }: InvalidBody): Answer {
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
      return answer instanceof Promise ? answer.catch(storeProblem) : answer
    } catch (error) {
      return storeProblem(error)
    }
  }
}

function storeProblem(error: unknown): Answer {
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

/** The handlers, with what they throw answered as problems. What no client is at fault for is thrown on. */
export function answeringProblems(handlers: OperationHandlers): OperationHandlers {
  return Object.fromEntries(Object.entries(handlers).map(([name, handle]) => [name, answering(handle)]))
}

function answering(handle: OperationHandler): OperationHandler {
  return async (request) => {
    try {
      return await handle(request)
    } catch (error) {
      const answer = answerToError(error)
      if (answer === undefined) throw error
      return answer
    }
  }
}

/** Turns a place in a rule set or list into the one in the body of the request; undefined for what the body does not have. */
export type PlaceOf = (path: string) => string | undefined

/** A place in a rule set as the texts of problems name it; what is between quotes is somebody's resource or name. */
const PLACE = /(?<![\w"/.])\/(?:rules|tiers|exemptions|denyList|domains)\/\d+(?:\/\w+)*/g

/** A problem with all places in it as they are in the body. What the body does not have is said to be in the enforced rules. */
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
