import { checkAnswer, parseCheckRequest } from '@sluice/contract'
import { ownRules } from '../../auth/tenant-scope.ts'
import { policyRequestOf } from '../check/policy-request.ts'
import type { OperationHandlers } from '../handler.ts'
import { invalidRequest } from '../problems.ts'
import { adminAnswer } from './admin-answer.ts'
import type { AdminParts } from './admin-context.ts'
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
