import { parseReportRequest } from '@sluice/contract'
import { jsonAnswer } from '../answer.ts'
import { invalidBody } from '../check-problems.ts'
import type { OperationHandlers } from '../handler.ts'
import type { CallReportsParts } from './call-reports.ts'
import { CallReports } from './call-reports.ts'

/** How calls ended that were let through, for limits that are cut while too many fail. */
export function reportHandlers(parts: CallReportsParts): OperationHandlers {
  const calls = new CallReports(parts)
  return {
    'POST /internal/ratelimit/report': ({ body }) => {
      const parsed = parseReportRequest(body)
      if (!parsed.ok) return invalidBody(parsed)
      calls.count(parsed.reports)
      return jsonAnswer(200, JSON.stringify({ count: parsed.reports.length }))
    },
  }
}
