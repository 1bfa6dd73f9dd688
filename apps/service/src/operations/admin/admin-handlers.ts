import type { ServiceContext } from '../../service-context.ts'
import { apiKeyHandlers } from './api-keys.ts'
import { AuditNotes, auditHandlers } from './audit.ts'
import { blockHandlers, incidentHandlers } from './blocks.ts'
import type { AdminContext, AdminOptions } from './config-access.ts'
import { ConfigAccess } from './config-access.ts'
import { memberHandlers, overrideHandlers } from './overrides-and-members.ts'
import { namedPartHandlers, rateLimitHandlers } from './rules.ts'
import { explainHandlers, resetHandlers, usageHandlers } from './usage-explain-reset.ts'
import { versionHandlers } from './versions.ts'

/** The handlers of every area of the admin API. */
type AdminHandlers = ReturnType<typeof rateLimitHandlers> &
  ReturnType<typeof usageHandlers> &
  ReturnType<typeof namedPartHandlers> &
  ReturnType<typeof overrideHandlers> &
  ReturnType<typeof memberHandlers> &
  ReturnType<typeof blockHandlers> &
  ReturnType<typeof incidentHandlers> &
  ReturnType<typeof apiKeyHandlers> &
  ReturnType<typeof versionHandlers> &
  ReturnType<typeof auditHandlers> &
  ReturnType<typeof explainHandlers> &
  ReturnType<typeof resetHandlers>

/**
 * The admin API: reads and changes the configuration, and answers queries about it. The caller is already
 * authenticated; every change is made in its name, and is active on this node when it is answered.
 */
export function adminHandlers(context: ServiceContext, options: AdminOptions = {}): AdminHandlers {
  const parts: AdminContext = {
    context,
    access: new ConfigAccess(context, options),
    notes: new AuditNotes({ config: context.config ?? options.database?.config, log: context.log }),
    announceBlock: options.announceBlock ?? (() => undefined),
    observe: options.observe ?? (() => undefined),
  }
  return {
    ...rateLimitHandlers(parts),
    ...usageHandlers(parts),
    ...namedPartHandlers(parts),
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
}
