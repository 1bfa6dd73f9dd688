import type { OperationHandlers } from '../handler.ts'
import { pageRequestOf } from '../paging.ts'
import { numberOf, pageAnswer, textsOf } from './admin-requests.ts'
import type { AdminContext } from './config-access.ts'

/** What was done, newest first. */
export function auditHandlers({ access }: AdminContext): OperationHandlers {
  return {
    'GET /admin/audit': async ({ query }) => {
      const since = numberOf(query, 'since')
      const filter = { ...textsOf(query, ['by', 'keyId', 'action']), ...pageRequestOf(query) }
      return pageAnswer(await access.databaseReads.audit.list({ ...filter, ...(since === undefined ? {} : { since }) }))
    },
  }
}
