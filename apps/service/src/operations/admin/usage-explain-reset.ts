import { auditName } from '@sluice/config-store'
import type { Counter, NamedCaller, ResetAnswer, UsageAnswer } from '@sluice/contract'
import { checkAnswer, instantText, parseUsageQuery } from '@sluice/contract'
import type { Caller, CounterReport, PolicyEngine } from '@sluice/core/policy'
import { ownRules } from '../../auth/tenant-scope.ts'
import { digestOf } from '../../observability/top-callers.ts'
import { policyRequestOf } from '../check/check.ts'
import type { OperationHandlers } from '../handler.ts'
import { adminAnswer } from '../handler.ts'
import { invalidRequest } from '../problems.ts'
import type { AdminContext } from './config-access.ts'

/** The usage of a caller. */
export function usageHandlers({ context }: AdminContext): OperationHandlers<'usage'> {
  return {
    usage: async (request) => {
      const parsed = parseUsageQuery(request.parameters)
      if (!parsed.ok) throw invalidRequest(...parsed.problems)
      const reports = await context.engine.usage(callerOf(parsed.who, context.settings.region))
      const usage = ownRules(reports, request).map(withInstants)
      return adminAnswer({ version: context.engine.version, usage } satisfies UsageAnswer)
    },
  }
}

/** The caller of a query. `region`: the default region. */
function callerOf(who: NamedCaller, region: string | undefined): Caller {
  return region === undefined ? who : { ...who, region }
}

/** The usage of a rule, with instants as in answers. */
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

/** Explains the decision on a request. */
export function explainHandlers({ context }: AdminContext): OperationHandlers<'explain'> {
  return {
    explain: async (request) => {
      const explained = await context.engine.explain(policyRequestOf(request.body.request, context.settings.region))
      const { decision, rules, ...about } = explained
      const own = ownRules(rules, request).map(withInstants)
      return adminAnswer({ ...about, rules: own, decision: checkAnswer(decision, decision.dimension) })
    },
  }
}

/** Resets the counters of a caller, or returns some units. */
export function resetHandlers({ context, notes }: AdminContext): OperationHandlers<'reset'> {
  return {
    reset: async (request) => {
      const { principal } = request
      const { who, units } = request.body
      const caller = callerOf(who, context.settings.region)
      const { engine } = context
      const counters = await (units === undefined ? engine.reset(caller) : engine.giveBack(caller, units))
      const by = { by: principal?.name, keyId: principal?.id }
      context.log.info('counters were reset', { ...by, fields: Object.keys(who), units, counters: counters.length })
      const { target, details } = doneTo(who, counters, context.secret)
      const action = units === undefined ? 'counters.reset' : 'counters.refund'
      await notes.note(request, { action, target, details: { ...details, ...(units !== undefined && { units }) } })
      return adminAnswer({ count: counters.length } satisfies ResetAnswer)
    },
  }
}

type ResetCounters = Awaited<ReturnType<PolicyEngine['reset']>>

/** Maximum number of counters in one audit record. */
const MOST_COUNTERS_NAMED = 100

/** The reset as recorded in the audit log. API keys are secrets, so digests replace them. */
function doneTo(
  who: NamedCaller,
  counters: ResetCounters,
  secret: Uint8Array,
): { readonly target: string; readonly details: object } {
  const { user, apiKey, ip, tenant, service, resource, descriptors } = who
  const digest = apiKey && digestOf(apiKey, secret)
  const identities = { user, apiKey: digest, ip, tenant, service }
  // Identities last: a descriptor with the same name has the same value, but an API key must be a digest.
  const named = Object.entries({ ...descriptors, ...identities }).filter(([, value]) => value !== undefined)
  const order = [...Object.keys(identities), ...Object.keys(descriptors ?? {})]
  const caller = named.toSorted(([one], [other]) => order.indexOf(one) - order.indexOf(other))
  const parts = caller.map(([name, value]) => `${name}:${auditName(String(value))}`)
  return {
    target: [...parts, ...(resource === undefined ? [] : [auditName(resource)])].join(' '),
    details: {
      caller: Object.fromEntries(caller),
      ...(resource === undefined ? {} : { resource }),
      counters: counters.slice(0, MOST_COUNTERS_NAMED).map((counter) => withoutKeys(counter, secret)),
      counterCount: counters.length,
    },
  }
}

function withoutKeys(counter: ResetCounters[number], secret: Uint8Array): ResetCounters[number] {
  const hasKey = counter.dimension.split('+').includes('apiKey')
  return hasKey ? { ...counter, entity: digestOf(counter.entity, secret) } : counter
}
