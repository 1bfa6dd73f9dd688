import type { UsageAnswer, UsageQuery } from '@sluice/contract'
import { parseUsageQuery } from '@sluice/contract'
import type { Caller } from '@sluice/core'
import { ownRules } from '../auth/tenant-scope.ts'
import type { OperationHandlers } from '../http/operation-handler.ts'
import { adminAnswer } from './admin-answer.ts'
import type { AdminParts } from './admin-parts.ts'
import { invalidRequest } from './refusal.ts'

/** How the counters of a caller stand. */
export function usageHandlers({ context }: AdminParts): OperationHandlers {
  return {
    'GET /admin/ratelimits/usage': async (request) => {
      const parsed = parseUsageQuery(Object.fromEntries(request.query))
      if (!parsed.ok) throw invalidRequest(...parsed.problems)
      const usage = await context.engine.usage(callerOf(parsed.who, context.settings.region))
      return adminAnswer({ version: context.engine.version, usage: ownRules(usage, request) } satisfies UsageAnswer)
    },
  }
}

/** Whose counters, as the engine calls the parts of a request. `region`: where callers are that do not say it. */
export function callerOf(who: UsageQuery & Pick<Caller, 'descriptors'>, region: string | undefined): Caller {
  const { userId, apiKey, clientIp, tenantId, service, resource, descriptors } = who
  const parts = { user: userId, apiKey, ip: clientIp, tenant: tenantId, service, resource, descriptors, region }
  return Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined))
}
