import type { OperationHandlers } from '../handler.ts'
import { pageAnswer } from './admin-requests.ts'
import type { AdminContext } from './config-access.ts'

/** What was done, newest first. */
export function auditHandlers({ access }: AdminContext): OperationHandlers<'listAudit'> {
  return {
    listAudit: async ({ parameters }) => pageAnswer(await access.databaseReads.audit.list(parameters)),
  }
}
