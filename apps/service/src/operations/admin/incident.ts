import type { IncidentAnswer, Stored } from '@sluice/contract'
import type { Incident } from '@sluice/core'
import type { Answer } from '../answer.ts'
import type { OperationHandlers } from '../handler.ts'
import { adminAnswer } from './admin-answer.ts'
import type { AdminParts } from './admin-context.ts'
import { refuseEnded } from './expiry.ts'
import { seenBy, underPrecondition } from './precondition.ts'

const NOTHING_CHANGES =
  'No limit changes: no rule of the enforced version has an incident factor. Set "incident" on rules or on the rule set: "incident": 0.5 halves limits during an incident.'

/** The switch of an incident. */
export function incidentHandlers({ access, context }: AdminParts): OperationHandlers {
  const answer = (stored: Stored<Incident>): Answer => {
    const affectedRules = context.engine.incidentRules
    const isIdle = stored.entry.active && affectedRules === 0
    const body: IncidentAnswer = { ...stored, affectedRules, ...(isIdle && { warning: NOTHING_CHANGES }) }
    return adminAnswer(body, { revision: stored.revision })
  }
  return {
    'GET /admin/incident': async () => answer(await access.databaseReads.incident.get()),

    'PUT /admin/incident': async (request) => {
      const incident = request.body as Incident
      refuseEnded(context.clock, [{ path: '/until', at: incident.until }])
      const stored = await underPrecondition(request, () =>
        access.changeInDatabase(request, async (config, author) => {
          const seen = await seenBy(request, async () => (await config.incident.get()).revision)
          return await config.incident.set(incident, author, seen)
        }),
      )
      return answer(stored)
    },
  }
}
