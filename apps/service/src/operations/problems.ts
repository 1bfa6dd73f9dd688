import type { FieldProblem, ProblemCode } from '@sluice/contract'
import type { RuleSetProblem, SluiceError } from '@sluice/core'
import { isSluiceError } from '@sluice/core'
import type { Answer } from './answer.ts'
import type { ProblemAnswerDetails } from './problem-answer.ts'
import { invalidRequest as invalidRequestAnswer, problemAnswer } from './problem-answer.ts'
import type { PlaceOf } from './problem-path.ts'
import { placedProblem } from './problem-path.ts'

/** Seconds after which a database or store that was away is worth another try. */
export const RETRY_AFTER_SECONDS = '2'

const NOT_KEPT = { 'Cache-Control': 'no-store' }

/** Ends a request with a problem. Thrown by handlers, and turned into its answer before it leaves them. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly answer: Answer

  constructor(answer: Answer) {
    super(`the answer is ${answer.status}`)
    this.answer = answer
  }
}

/** Ends a request with a problem of this kind. */
export function refusal(code: ProblemCode, detail: string, headers: Readonly<Record<string, string>> = {}): Refusal {
  return new Refusal(problemAnswer(code, { detail, headers: { ...headers, ...NOT_KEPT } }))
}

/** Ends a request with something in it that cannot be used. */
export function invalidRequest(...problems: readonly FieldProblem[]): Refusal {
  return new Refusal(invalidRequestAnswer(problems))
}

/** What is named does not exist. */
export function notFound(what: string): Refusal {
  return refusal('SLUICE_HTTP_NOT_FOUND', `There is no ${what}.`)
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
export function refusalAnswer(error: unknown): Answer | undefined {
  if (error instanceof Refusal) return error.answer
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
export function invalidRuleSet(errors: readonly RuleSetProblem[]): Refusal {
  const what = errors.length === 1 ? 'One thing is wrong' : `${errors.length} things are wrong`
  const detail = `${what}; nothing was changed. Correct what "errors" lists, and send it again.`
  return new Refusal(problemOf('SLUICE_HTTP_INVALID_RULE_SET', { detail, errors }))
}

/** The message of an error without its code. */
function sentenceOf({ message }: SluiceError): string {
  const text = message.replace(/^SLUICE_[A-Z_]+: /, '')
  return text.charAt(0).toUpperCase() + text.slice(1)
}
