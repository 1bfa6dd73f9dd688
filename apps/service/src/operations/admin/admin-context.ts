import type { AnnounceBlock } from '../../alerts/block-export.ts'
import type { ServiceContext } from '../../service-context.ts'
import type { AuditNotes } from './audit-notes.ts'
import type { ConfigAccess } from './config-access.ts'

/** What the handlers of the admin API share. */
export interface AdminParts {
  readonly context: ServiceContext
  readonly access: ConfigAccess
  readonly notes: AuditNotes
  readonly announceBlock: AnnounceBlock
}
