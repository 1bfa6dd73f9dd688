import type { FieldProblem, ProblemCode, ProblemDetails } from '@sluice/contract'
import { PROBLEM_MEDIA_TYPE, PROBLEMS, problemDocument } from '@sluice/contract'
import type { Answer } from './answer.ts'
import { jsonAnswer } from './answer.ts'

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
export function invalidRequest(problems: readonly FieldProblem[]): Answer {
  const errors = problems.slice(0, MOST_LISTED)
  const places = errors.map(({ path }) => path || 'the body').join(', ')
  const more = problems.length > MOST_LISTED ? `, and ${problems.length - MOST_LISTED} more that are not listed` : ''
  const count = problems.length === 1 ? 'One thing is' : `${problems.length} things are`
  return problemAnswer('SLUICE_HTTP_INVALID_REQUEST', {
    detail: `${count} wrong: ${places}${more}. Nothing was done.`,
    errors,
  })
}
