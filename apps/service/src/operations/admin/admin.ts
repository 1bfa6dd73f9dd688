import type { ServiceContext } from '../../service-context.ts'
import { answeringRefusals } from '../answer-problems.ts'
import type { OperationHandlers } from '../handler.ts'
import type { AdminParts } from './admin-context.ts'
import { apiKeyHandlers } from './api-keys.ts'
import { auditHandlers } from './audit.ts'
import { AuditNotes } from './audit-notes.ts'
import { blockHandlers } from './blocks.ts'
import type { AdminDesk } from './config-access.ts'
import { ConfigAccess } from './config-access.ts'
import { explainHandlers } from './explain.ts'
import { incidentHandlers } from './incident.ts'
import { memberHandlers } from './members.ts'
import { overrideHandlers } from './overrides.ts'
import { resetHandlers } from './reset.ts'
import { namedPartHandlers } from './rule-set-lists.ts'
import { rateLimitHandlers } from './rules.ts'
import { usageHandlers } from './usage.ts'
import { versionHandlers } from './versions.ts'

/**
 * The admin API: reads and changes of the configuration, and questions about it. Who asks was found out before; every change is
 * made in their name, and in force on this node when it is answered.
 */
export function adminHandlers(context: ServiceContext, desk: AdminDesk = {}): OperationHandlers {
  const parts: AdminParts = {
    context,
    access: new ConfigAccess(context, desk),
    notes: new AuditNotes({ config: context.config ?? desk.database?.config, log: context.log }),
    announceBlock: desk.announceBlock ?? (() => undefined),
  }
  const handlers: OperationHandlers = {
    ...rateLimitHandlers(parts),
    ...usageHandlers(parts),
    ...namedPartHandlers(parts, { path: '/admin/tiers', field: 'tiers', noun: 'tier' }),
    ...namedPartHandlers(parts, { path: '/admin/exemptions', field: 'exemptions', noun: 'exemption' }),
    ...namedPartHandlers(parts, { path: '/admin/deny-list', field: 'denyList', noun: 'entry' }),
    ...overrideHandlers(parts),
    ...memberHandlers(parts),
    ...blockHandlers(parts),
    ...incidentHandlers(parts),
    ...apiKeyHandlers(parts),
    ...versionHandlers(parts),
    ...auditHandlers(parts),
    ...explainHandlers(parts),
    ...resetHandlers(parts),
  }
  return answeringRefusals(handlers)
}
