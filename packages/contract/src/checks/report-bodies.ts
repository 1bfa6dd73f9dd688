import type { Parsed } from '../schema/body-parser.ts'
import {
  bodyForm,
  entryProblems,
  formProblems,
  hasForm,
  listField,
  METHOD_FIELD,
  RESOURCE_FIELD,
} from '../schema/body-parser.ts'
import type { Infer } from '../schema/json-schema.ts'
import { answerSchema, requestSchema } from '../schema/json-schema.ts'
import { count, flag, listOf } from '../schema/value-schemas.ts'
import { CHECK_PROPERTIES } from './check-request.ts'

/** Most reports in one request. */
export const MOST_REPORTS = 1000

const CALL_REPORT = requestSchema('CallReport', {
  description: 'How a call ended that was let through.',
  examples: [
    { resource: '/api/v1/data', method: 'POST', failed: true },
    { resource: 'checkout', failed: false },
  ],
  required: {
    resource: CHECK_PROPERTIES.required.resource,
    failed: flag(
      'Whether what was called failed, such as by an answer of 500 or above, or by none in time. A mistake of the ' +
        'caller is no failure.',
    ),
  },
  optional: { method: CHECK_PROPERTIES.optional.method },
})
export interface CallReport extends Infer<typeof CALL_REPORT> {}

export const REPORT_REQUEST = requestSchema('ReportRequest', {
  description: 'How calls ended: one, or several together.',
  examples: [{ reports: [CALL_REPORT.example] }],
  required: {
    reports: { ...listOf<CallReport>('The calls.', CALL_REPORT.ref), minItems: 1, maxItems: MOST_REPORTS },
  },
})
export interface ReportRequest extends Infer<typeof REPORT_REQUEST> {}

export const REPORT_ANSWER = answerSchema('ReportAnswer', {
  description: 'What became of reports.',
  examples: [{ count: 1 }],
  required: { count: count('How many were counted: as many as were sent.') },
})
export interface ReportAnswer extends Infer<typeof REPORT_ANSWER> {}

const CALL_FORM = bodyForm(CALL_REPORT, 'a JSON object with "resource" and "failed"', {
  fields: { resource: RESOURCE_FIELD, method: METHOD_FIELD },
})

const REPORTS_FIELD = listField(MOST_REPORTS, 'reports')

const REPORT_FORM = bodyForm(REPORT_REQUEST, 'a JSON object with "reports", a list of how calls ended', {
  fields: { reports: REPORTS_FIELD },
})

/**
 * Turns the parsed JSON of a body into reports, or into everything that is wrong with them. One invalid report rejects
 * all. Never throws.
 */
export function parseReportRequest(body: unknown): Parsed<ReportRequest> {
  if (!hasForm(body, REPORT_FORM)) return formProblems(body, REPORT_FORM)
  const { reports } = body
  return entryProblems(reports, CALL_FORM, '/reports') ?? { ok: true, reports }
}
