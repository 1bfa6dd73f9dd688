import type { Counter, NamedCaller, UsageAnswer } from '@sluice/contract'
import { instantText, parseUsageQuery } from '@sluice/contract'
import type { Caller, CounterReport } from '@sluice/core'
import { ownRules } from '../../auth/tenant-scope.ts'
import type { OperationHandlers } from '../handler.ts'
import { invalidRequest } from '../problems.ts'
import { adminAnswer } from './admin-answer.ts'
import type { AdminParts } from './admin-context.ts'

/** How the counters of a caller stand. */
export function usageHandlers({ context }: AdminParts): OperationHandlers {
  return {
    'GET /admin/ratelimits/usage': async (request) => {
      const parsed = parseUsageQuery(Object.fromEntries(request.query))
      if (!parsed.ok) throw invalidRequest(...parsed.problems)
      const reports = await context.engine.usage(callerOf(parsed.who, context.settings.region))
      const usage = ownRules(reports, request).map(withInstants)
      return adminAnswer({ version: context.engine.version, usage } satisfies UsageAnswer)
    },
  }
}

/** Whose counters. `region`: where callers are that do not say it. */
export function callerOf(who: NamedCaller, region: string | undefined): Caller {
  return region === undefined ? who : { ...who, region }
}

/** What a rule has counted, with instants as answers have them. */
export function withInstants<R extends { readonly counters: readonly CounterReport[] }>(
  report: R,
): Omit<R, 'counters'> & { readonly counters: readonly Counter[] } {
  const counters = report.counters.map((counter) => ({
    ...counter,
    resetAt: instantText(counter.resetAt),
    blockedUntil: instantText(counter.blockedUntil),
  }))
  return { ...report, counters }
}
