import type { ServiceContext } from '../../service-context.ts'
import type { OperationHandlers } from '../handler.ts'
import { answeringProblems } from '../problems.ts'
import { apiKeyHandlers } from './api-keys.ts'
import { auditHandlers } from './audit.ts'
import { AuditNotes } from './audit-log.ts'
import { blockHandlers, incidentHandlers } from './blocks.ts'
import type { AdminContext, AdminOptions } from './config-access.ts'
import { ConfigAccess } from './config-access.ts'
import { memberHandlers, overrideHandlers } from './entries.ts'
import { rateLimitHandlers, ruleSetListHandlers } from './rules.ts'
import { explainHandlers, resetHandlers, usageHandlers } from './usage.ts'
import { versionHandlers } from './versions.ts'

/**
 * The admin API: reads and changes of the configuration, and questions about it. Who asks was found out before; every change is
 * made in their name, and in force on this node when it is answered.
 */
export function adminHandlers(context: ServiceContext, options: AdminOptions = {}): OperationHandlers {
  const parts: AdminContext = {
    context,
    access: new ConfigAccess(context, options),
    notes: new AuditNotes({ config: context.config ?? options.database?.config, log: context.log }),
    announceBlock: options.announceBlock ?? (() => undefined),
  }
  const handlers: OperationHandlers = {
    ...rateLimitHandlers(parts),
    ...usageHandlers(parts),
    ...ruleSetListHandlers(parts, { path: '/admin/tiers', field: 'tiers', noun: 'tier' }),
    ...ruleSetListHandlers(parts, { path: '/admin/exemptions', field: 'exemptions', noun: 'exemption' }),
    ...ruleSetListHandlers(parts, { path: '/admin/deny-list', field: 'denyList', noun: 'entry' }),
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
  return answeringProblems(handlers)
}
