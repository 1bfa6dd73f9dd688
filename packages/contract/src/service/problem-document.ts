import type { ProblemCode } from './problem.ts'
import { PROBLEMS } from './problem.ts'
import type { ProblemDocument } from './service-bodies.ts'

/** What one occurrence of a problem adds to its kind. */
export interface ProblemDetails extends Pick<ProblemDocument, 'detail' | 'errors' | 'checks' | 'reasons'> {}

/** The document for a problem of kind `code`. */
export function problemDocument(code: ProblemCode, details: ProblemDetails): ProblemDocument {
  const { detail, errors, checks, reasons } = details
  const { status, name, title } = PROBLEMS[code]
  return {
    type: `urn:sluice:problem:${name}`,
    title,
    status,
    detail,
    code,
    ...(errors === undefined ? {} : { errors }),
    ...(checks === undefined ? {} : { checks }),
    ...(reasons === undefined ? {} : { reasons }),
  }
}
