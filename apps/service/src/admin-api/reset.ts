import { parseResetRequest } from '@sluice/contract'
import type { OperationHandlers } from '../http/operation-handler.ts'
import { removedAnswer } from './admin-answer.ts'
import type { AdminParts } from './admin-parts.ts'
import { invalidRequest } from './refusal.ts'
import { callerOf } from './usage.ts'

/** Lets the counters of a caller start anew. */
export function resetHandlers({ context }: AdminParts): OperationHandlers {
  return {
    'POST /admin/reset': async ({ body, principal }) => {
      const parsed = parseResetRequest(body)
      if (!parsed.ok) throw invalidRequest(...parsed.problems)
      await context.engine.reset(callerOf(parsed.who, context.settings.region))
      context.log.info('counters were reset', { by: principal?.name, fields: Object.keys(parsed.who) })
      return removedAnswer()
    },
  }
}
