import type { BodyForm, Field, Parsed } from '../schema/body-parser.ts'
import {
  entryProblems,
  FLAG_FIELD,
  formProblems,
  hasForm,
  listField,
  METHOD_FIELD,
  RESOURCE_FIELD,
} from '../schema/body-parser.ts'
import type { CheckRequest } from './check-request.ts'

/** Most reports in one request. */
export const MOST_REPORTS = 1000

/** How a call ended that was let through. Who made it does not matter: failures are counted for all callers together. */
export interface CallReport extends Pick<CheckRequest, 'resource' | 'method'> {
  /** Whether what was called failed, such as by an answer of 500 or above, or by none in time. A mistake of the caller is no failure. */
  readonly failed: boolean
}

/** The body that tells how calls ended: 1 to {@link MOST_REPORTS} of them. */
export interface ReportRequest {
  readonly reports: readonly CallReport[]
}

/** What became of reports. */
export interface ReportAnswer {
  /** How many were counted: as many as were sent. */
  readonly count: number
}

const CALL_FORM: BodyForm = {
  fields: new Map<keyof CallReport, Field>([
    ['resource', RESOURCE_FIELD],
    ['method', METHOD_FIELD],
    ['failed', FLAG_FIELD],
  ]),
  needed: ['resource', 'failed'],
  expected: 'a JSON object with "resource" and "failed"',
}

const REPORT_FORM: BodyForm = {
  fields: new Map([['reports', listField(MOST_REPORTS, 'reports')]]),
  needed: ['reports'],
  expected: 'a JSON object with "reports", a list of how calls ended',
}

/**
 * Turns the parsed JSON of a body into reports, or into everything that is wrong with them. One wrong report refuses all. Never
 * throws.
 */
export function parseReportRequest(body: unknown): Parsed<ReportRequest> {
  if (!hasForm(body, REPORT_FORM)) return formProblems(body, REPORT_FORM)
  const { reports } = body as ReportRequest
  return entryProblems(reports, CALL_FORM, '/reports') ?? { ok: true, reports }
}
