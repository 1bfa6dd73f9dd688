import type { ServiceContext } from '../service-context.ts'
import type { ConfigAccess } from './config-access.ts'
import type { CountedEntities } from './counted-entity.ts'

/** What the handlers of the admin API share. */
export interface AdminParts {
  readonly context: ServiceContext
  readonly access: ConfigAccess
  readonly counted: CountedEntities
}
