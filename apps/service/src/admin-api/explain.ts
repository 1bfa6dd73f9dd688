import { checkAnswer, parseCheckRequest } from '@sluice/contract'
import { ownRules } from '../auth/tenant-scope.ts'
import { policyRequestOf } from '../check-api/policy-request.ts'
import type { OperationHandlers } from '../http/operation-handler.ts'
import { adminAnswer } from './admin-answer.ts'
import type { AdminParts } from './admin-parts.ts'
import { invalidRequest } from './refusal.ts'
import { withInstants } from './usage.ts'

/** Says what decides about a request. */
export function explainHandlers({ context }: AdminParts): OperationHandlers {
  return {
    'POST /admin/explain': async (request) => {
      const parsed = parseCheckRequest(request.body)
      if (!parsed.ok) throw invalidRequest(...parsed.problems)
      const explained = await context.engine.explain(policyRequestOf(parsed.request, context.settings.region))
      const { decision, rules, ...about } = explained
      const own = ownRules(rules, request).map(withInstants)
      return adminAnswer({ ...about, rules: own, decision: checkAnswer(decision, decision.dimension) })
    },
  }
}
