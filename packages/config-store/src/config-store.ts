import type { Block, Membership, Override } from '@sluice/core'
import type { ApiKeyTable } from './api-key.ts'
import type { AuditLog } from './audit-log.ts'
import type { ChangeFeed } from './change-feed.ts'
import type { DocumentTable } from './document-table.ts'
import type { EntityKey, EntryTable, IncidentSwitch, OverrideKey } from './entries.ts'
import type { NumberLeases } from './number-leases.ts'
import type { RollupTable } from './rollup-table.ts'
import type { SecretTable } from './secret-table.ts'
import type { VersionTable } from './versions.ts'

/**
 * Where configuration is kept. Several nodes may use one at the same time. When the database cannot be reached, every call
 * is refused with `SLUICE_CONFIG_UNAVAILABLE` and nothing was changed, except where the answer to a commit was lost.
 */
export interface ConfigStore extends AsyncDisposable {
  readonly versions: VersionTable
  readonly overrides: EntryTable<Override, OverrideKey>
  readonly members: EntryTable<Membership, EntityKey>
  readonly blocks: EntryTable<Block, EntityKey>
  readonly incident: IncidentSwitch
  readonly apiKeys: ApiKeyTable
  readonly audit: AuditLog
  readonly feed: ChangeFeed
  readonly secrets: SecretTable
  readonly numbers: NumberLeases
  readonly rollups: RollupTable
  readonly documents: DocumentTable
  /** Frees connections and files. May be called again. */
  close(): Promise<void>
}
