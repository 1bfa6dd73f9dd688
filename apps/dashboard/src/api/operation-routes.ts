import type { ApiKeyRole, OperationId, OperationMethod } from '@sluice/contract'
import { mayDo, OPERATIONS } from '@sluice/contract'

/** What the page needs to know about an operation. */
export interface OperationRoute {
  readonly method: OperationMethod
  readonly path: string
  /** The lowest role that may call it. */
  readonly role: ApiKeyRole
  /** All roles that may call it. */
  readonly roles: readonly ApiKeyRole[]
}

const ROLES: readonly ApiKeyRole[] = ['none', 'viewer', 'editor', 'admin']

const routes = Object.values(OPERATIONS).map(({ id, method, path, role }): [string, OperationRoute] => [
  id,
  { method, path, role, roles: ROLES.filter((each) => mayDo(each, role)) },
])

/** The route of each operation. The build replaces this file by its values: see vite.config.ts. */
export const OPERATION_ROUTES: Readonly<Record<OperationId, OperationRoute>> = Object.fromEntries(routes) as Record<
  OperationId,
  OperationRoute
>
