import type { ResetRequest } from '@sluice/contract'
import { parseResetRequest } from '@sluice/contract'
import { keyDigest } from '@sluice/runtime'
import type { OperationHandlers } from '../http/operation-handler.ts'
import { removedAnswer } from './admin-answer.ts'
import type { AdminParts } from './admin-parts.ts'
import { invalidRequest } from './refusal.ts'
import { callerOf } from './usage.ts'

/** Lets the counters of a caller start anew. */
export function resetHandlers({ context, notes }: AdminParts): OperationHandlers {
  return {
    'POST /admin/reset': async (request) => {
      const { body, principal } = request
      const parsed = parseResetRequest(body)
      if (!parsed.ok) throw invalidRequest(...parsed.problems)
      await context.engine.reset(callerOf(parsed.who, context.settings.region))
      context.log.info('counters were reset', { by: principal?.name, fields: Object.keys(parsed.who) })
      await notes.note(request, { action: 'counters.reset', target: targetOf(parsed.who, context.secret) })
      return removedAnswer()
    },
  }
}

/** Whose counters, such as `user:u1 /orders`. An API key is a secret: a digest stands for it. */
function targetOf(who: ResetRequest, secret: Uint8Array): string {
  const { userId, apiKey, clientIp, tenantId, service, resource, descriptors } = who
  const digest = apiKey && keyDigest(apiKey, Buffer.from(secret).toString('hex'))
  const parts = { user: userId, apiKey: digest, ip: clientIp, tenant: tenantId, service, ...descriptors }
  const callers = Object.entries(parts).flatMap(([name, value]) => (value === undefined ? [] : [`${name}:${value}`]))
  return [...callers, ...(resource === undefined ? [] : [resource])].join(' ')
}
