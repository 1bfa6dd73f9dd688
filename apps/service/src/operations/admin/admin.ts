import type { OperationId } from '@sluice/contract'
import type { ServiceContext } from '../../service-context.ts'
import type { CheckOperation } from '../check/check-api.ts'
import type { ListenerOperation, OperationHandlers } from '../handler.ts'
import type { AlertOperation } from './alerts.ts'
import { apiKeyHandlers } from './api-keys.ts'
import { AuditNotes, auditHandlers } from './audit.ts'
import { blockHandlers, incidentHandlers } from './blocks.ts'
import type { AdminContext, AdminOptions } from './config-access.ts'
import { ConfigAccess } from './config-access.ts'
import type { DecisionOperation } from './decisions.ts'
import { memberHandlers, overrideHandlers } from './entries.ts'
import type { GatewayOperation } from './gateway.ts'
import type { ObservabilityOperation } from './metrics.ts'
import { namedPartHandlers, rateLimitHandlers } from './rules.ts'
import type { SessionOperation } from './sessions.ts'
import { explainHandlers, resetHandlers, usageHandlers } from './usage.ts'
import { versionHandlers } from './versions.ts'

/** The operations whose handlers are made elsewhere. */
type OtherOperation =
  | CheckOperation
  | 'forwardAuth'
  | AlertOperation
  | ObservabilityOperation
  | GatewayOperation
  | DecisionOperation
  | SessionOperation
  | ListenerOperation

/**
 * The admin API: reads and changes of the configuration, and questions about it. Who asks was found out before; every
 * change is made in their name, and in force on this node when it is answered.
 */
export function adminHandlers(
  context: ServiceContext,
  options: AdminOptions = {},
): OperationHandlers<Exclude<OperationId, OtherOperation>> {
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
