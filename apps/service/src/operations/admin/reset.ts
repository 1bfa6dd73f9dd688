import type { DoneElsewhere } from '@sluice/config-store'
import { auditName } from '@sluice/config-store'
import type { NamedCaller, ResetAnswer } from '@sluice/contract'
import { parseResetRequest } from '@sluice/contract'
import type { PolicyEngine } from '@sluice/core'
import { digestOf } from '../../observability/top-callers.ts'
import type { OperationHandlers } from '../handler.ts'
import { invalidRequest } from '../problems.ts'
import { adminAnswer } from './admin-answer.ts'
import type { AdminParts } from './admin-context.ts'
import { callerOf } from './usage.ts'

/** Lets the counters of a caller start anew. */
export function resetHandlers({ context, notes }: AdminParts): OperationHandlers {
  return {
    'POST /admin/reset': async (request) => {
      const { body, principal } = request
      const parsed = parseResetRequest(body)
      if (!parsed.ok) throw invalidRequest(...parsed.problems)
      const counters = await context.engine.reset(callerOf(parsed.who, context.settings.region))
      const by = { by: principal?.name, keyId: principal?.id }
      context.log.info('counters were reset', { ...by, fields: Object.keys(parsed.who), counters: counters.length })
      await notes.note(request, { action: 'counters.reset', ...doneTo(parsed.who, counters, context.secret) })
      return adminAnswer({ count: counters.length } satisfies ResetAnswer)
    },
  }
}

type ResetCounters = Awaited<ReturnType<PolicyEngine['reset']>>

/** Counters that one audit record names. */
const MOST_COUNTERS_NAMED = 100

/** What was reset, as the audit log has it. API keys are secrets: digests stand for them. */
function doneTo(
  who: NamedCaller,
  counters: ResetCounters,
  secret: Uint8Array,
): Pick<DoneElsewhere, 'target' | 'details'> {
  const { user, apiKey, ip, tenant, service, resource, descriptors } = who
  const digest = apiKey && digestOf(apiKey, secret)
  const identities = { user, apiKey: digest, ip, tenant, service }
  // Identities last: a descriptor of the same name has the same value, and that of an API key is no digest.
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
