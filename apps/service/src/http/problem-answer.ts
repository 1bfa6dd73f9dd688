import type { ProblemCode, ProblemDetails } from '@sluice/contract'
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
