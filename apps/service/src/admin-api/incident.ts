import type { Incident } from '@sluice/core'
import type { OperationHandlers } from '../http/operation-handler.ts'
import { adminAnswer } from './admin-answer.ts'
import type { AdminParts } from './admin-parts.ts'
import { refuseEnded } from './expiry.ts'
import { seenBy, underPrecondition } from './precondition.ts'

/** The switch of an incident. */
export function incidentHandlers({ access, context }: AdminParts): OperationHandlers {
  return {
    'GET /admin/incident': async () => {
      const stored = await access.databaseReads.incident.get()
      return adminAnswer(stored, { revision: stored.revision })
    },

    'PUT /admin/incident': async (request) => {
      const incident = request.body as Incident
      refuseEnded(context.clock, [{ path: '/until', at: incident.until }])
      const stored = await underPrecondition(request, () =>
        access.changeInDatabase(request, async (config, author) => {
          const seen = await seenBy(request, async () => (await config.incident.get()).revision)
          return await config.incident.set(incident, author, seen)
        }),
      )
      return adminAnswer(stored, { revision: stored.revision })
    },
  }
}
