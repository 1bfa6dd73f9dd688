import { ALERT_OPERATIONS } from './alert-operations.ts'
import { API_KEY_OPERATIONS } from './api-key-operations.ts'
import type { ReadBodies } from './body-readers.ts'
import { CALLER_OPERATIONS } from './caller-operations.ts'
import { CHECK_OPERATIONS } from './check-operations.ts'
import { MONITORING_OPERATIONS } from './monitoring-operations.ts'
import type { CallsOf, OperationRole, OperationsOf, ReceivedParameters } from './operation.ts'
import { OVERVIEW_OPERATIONS } from './overview-operations.ts'
import { PROXY_OPERATIONS } from './proxy-operations.ts'
import { RULE_OPERATIONS } from './rule-operations.ts'
import { SERVICE_OPERATIONS } from './service-operations.ts'
import { SESSION_OPERATIONS } from './session-operations.ts'
import { VERSION_OPERATIONS } from './version-operations.ts'

/** What goes in and out of every operation, by its id. */
export interface Calls
  extends CallsOf<typeof CHECK_OPERATIONS>,
    CallsOf<typeof PROXY_OPERATIONS>,
    CallsOf<typeof SERVICE_OPERATIONS>,
    CallsOf<typeof RULE_OPERATIONS>,
    CallsOf<typeof CALLER_OPERATIONS>,
    CallsOf<typeof VERSION_OPERATIONS>,
    CallsOf<typeof API_KEY_OPERATIONS>,
    CallsOf<typeof SESSION_OPERATIONS>,
    CallsOf<typeof MONITORING_OPERATIONS>,
    CallsOf<typeof OVERVIEW_OPERATIONS>,
    CallsOf<typeof ALERT_OPERATIONS> {}

/** The id of an operation. */
export type OperationId = keyof Calls

/**
 * What a request to an operation holds once it is decoded: the parameters of path and query by name, numbers as numbers
 * and defaults filled in, and a body that has the declared schema, or what its reader made of it.
 */
export interface OperationInput<Id extends OperationId> {
  readonly parameters: ReceivedParameters<Calls[Id]>
  readonly body: Id extends keyof ReadBodies ? ReadBodies[Id] : Calls[Id]['body']
}

/**
 * One function for each operation, by its id. The compiler knows what every operation receives. `Context` is what a
 * server adds to each request, such as headers and the caller; `Reply` is what it sends back.
 */
export type Handlers<Context, Reply, Id extends OperationId = OperationId> = {
  readonly [Each in Id]: (request: Context & OperationInput<Each>) => Reply | Promise<Reply>
}

/**
 * Every operation of the service. Router, OpenAPI document, client and command line are made of this table, so that
 * none of them knows an operation that the others do not.
 */
export const OPERATIONS: OperationsOf<Calls> = {
  ...CHECK_OPERATIONS,
  ...PROXY_OPERATIONS,
  ...SERVICE_OPERATIONS,
  ...RULE_OPERATIONS,
  ...CALLER_OPERATIONS,
  ...VERSION_OPERATIONS,
  ...API_KEY_OPERATIONS,
  ...SESSION_OPERATIONS,
  ...MONITORING_OPERATIONS,
  ...OVERVIEW_OPERATIONS,
  ...ALERT_OPERATIONS,
}

/** Roles, from the one that may least to the one that may all. */
const ROLES: readonly OperationRole[] = ['none', 'viewer', 'editor', 'admin']

/** Whether the holder of a key with `role` may do what needs `needed`: a role may all that those below it may. */
export function mayDo(role: OperationRole, needed: OperationRole): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed)
}
