import type { OperationHandlers } from '../handler.ts'
import { pageRequestOf } from '../paging.ts'
import { pageAnswer } from './admin-answer.ts'
import type { AdminParts } from './admin-context.ts'
import { numberOf, textsOf } from './query.ts'

/** What was done, newest first. */
export function auditHandlers({ access }: AdminParts): OperationHandlers {
  return {
    'GET /admin/audit': async ({ query }) => {
      const since = numberOf(query, 'since')
      const filter = { ...textsOf(query, ['by', 'keyId', 'action']), ...pageRequestOf(query) }
      return pageAnswer(await access.databaseReads.audit.list({ ...filter, ...(since === undefined ? {} : { since }) }))
    },
  }
}
