import type { ReportAnswer } from '@sluice/contract'
import { MOST_REPORTS, OPERATIONS } from '@sluice/contract'
import type { LineForm } from './turn-line.ts'

/** How reports are sent: always as a list. They have no answer but that they were counted. */
export const REPORT_LINE: LineForm = {
  noun: 'reports',
  alone: { operation: OPERATIONS.report, bodyOf: (body) => `{"reports":[${body}]}` },
  together: { operation: OPERATIONS.report, field: 'reports', most: MOST_REPORTS },
  answersOf: (answer, count) =>
    (answer as Partial<ReportAnswer>).count === count ? Array.from({ length: count }) : undefined,
}
