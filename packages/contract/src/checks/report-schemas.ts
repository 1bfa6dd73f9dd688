import type { NamedSchema } from '../schema/json-schema.ts'
import { answerSchema, requestSchema } from '../schema/json-schema.ts'
import { count, flag, listOf } from '../schema/value-schemas.ts'
import { CHECK_PROPERTIES } from './check-schemas.ts'
import type { CallReport, ReportAnswer, ReportRequest } from './report-bodies.ts'
import { MOST_REPORTS } from './report-bodies.ts'

const REPORT_EXAMPLE: CallReport = { resource: '/api/v1/data', method: 'POST', failed: true }

/** The schema of {@link CallReport}. */
export const CALL_REPORT: NamedSchema<CallReport> = requestSchema('CallReport', {
  description: 'How a call ended that was let through.',
  examples: [REPORT_EXAMPLE, { resource: 'checkout', failed: false }],
  required: {
    resource: CHECK_PROPERTIES.required.resource,
    failed: flag(
      'Whether what was called failed, such as by an answer of 500 or above, or by none in time. A mistake of the caller is no failure.',
    ),
  },
  optional: { method: CHECK_PROPERTIES.optional.method },
})

/** The schema of {@link ReportRequest}. */
export const REPORT_REQUEST: NamedSchema<ReportRequest> = requestSchema('ReportRequest', {
  description: 'How calls ended: one, or several together.',
  examples: [{ reports: [REPORT_EXAMPLE] }],
  required: {
    reports: { ...listOf<CallReport>('The calls.', CALL_REPORT.ref), minItems: 1, maxItems: MOST_REPORTS },
  },
})

/** The schema of {@link ReportAnswer}. */
export const REPORT_ANSWER: NamedSchema<ReportAnswer> = answerSchema('ReportAnswer', {
  description: 'What became of reports.',
  examples: [{ count: 1 }],
  required: { count: count('How many were counted: as many as were sent.') },
})
