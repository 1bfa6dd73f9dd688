import { checkAnswer, parseCheckRequest } from '@sluice/contract'
import { policyRequestOf } from '../check-api/policy-request.ts'
import type { OperationHandlers } from '../http/operation-handler.ts'
import { adminAnswer } from './admin-answer.ts'
import type { AdminParts } from './admin-parts.ts'
import { invalidRequest } from './refusal.ts'

/** Says what decides about a request. */
export function explainHandlers({ context }: AdminParts): OperationHandlers {
  return {
    'POST /admin/explain': async ({ body }) => {
      const parsed = parseCheckRequest(body)
      if (!parsed.ok) throw invalidRequest(...parsed.problems)
      const explained = await context.engine.explain(policyRequestOf(parsed.request, context.settings.region))
      const { decision, ...about } = explained
      return adminAnswer({ ...about, decision: checkAnswer(decision, decision.dimension) })
    },
  }
}
