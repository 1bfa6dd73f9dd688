import type { Block, Membership, Override } from '@sluice/core/policy'
import type { Platform } from '../../clock-and-random.ts'
import type { EntityKey, EntryTable, IncidentSwitch, OverrideKey } from '../../config-entries.ts'
import type {
  ApiKeyTable,
  AuditLog,
  ChangeFeed,
  ConfigStore,
  DocumentTable,
  NumberLeases,
  RollupTable,
  SecretTable,
} from '../../config-store.ts'
import type { VersionTable } from '../../rule-set-versions.ts'
import { type Announcer, type ConfigChange, ConfigWriter } from '../config-writer.ts'
import type { SqlDriver } from '../sql-driver.ts'
import { SqlApiKeyTable } from './api-key-table.ts'
import { AuditTable } from './audit-table.ts'
import { SqlChangeFeed } from './change-feed.ts'
import { BLOCKS, type CanonicalKeys, MEMBERS, OVERRIDES } from './entry-kinds.ts'
import { SqlEntryTable } from './entry-table.ts'
import { SqlIncidentSwitch } from './incident-switch.ts'
import { SqlDocumentTable, SqlNumberLeases, SqlRollupTable, SqlSecretTable } from './secrets-and-leases.ts'
import { SqlVersionTable } from './version-table.ts'

/** How long expired blocks are kept for queries: 1 day. */
const FORGOTTEN_BLOCKS_KEPT_MS = 24 * 60 * 60 * 1000
const SWEPT_AT_ONCE = 100

/** Dependencies of {@link SqlConfigStore}. */
export interface SqlConfigStoreParts {
  readonly platform: Platform
  readonly canonicalKeys: CanonicalKeys
  readonly announcements: Announcer
}

/** A configuration store in a database with a migrated schema. */
export class SqlConfigStore implements ConfigStore {
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
  readonly #driver: SqlDriver
  readonly #announcements: Announcer

  constructor(driver: SqlDriver, { platform, canonicalKeys, announcements }: SqlConfigStoreParts) {
    const writer = new ConfigWriter(driver, { nowMs: () => platform.nowMs(), announcements })
    const common = { driver, writer, canonicalKeys, nextTurn: () => platform.nextTurn() }
    this.#driver = driver
    this.#announcements = announcements
    this.versions = new SqlVersionTable(driver, writer)
    this.overrides = new SqlEntryTable({ ...common, kind: OVERRIDES })
    this.members = new SqlEntryTable({ ...common, kind: MEMBERS })
    this.blocks = new SqlEntryTable({ ...common, kind: BLOCKS, alsoDo: sweepBlocks })
    this.incident = new SqlIncidentSwitch(driver, writer)
    this.apiKeys = new SqlApiKeyTable(driver, writer, platform)
    this.audit = new AuditTable(driver, writer)
    this.feed = new SqlChangeFeed(driver, canonicalKeys)
    this.secrets = new SqlSecretTable(driver, platform)
    this.numbers = new SqlNumberLeases(driver, () => platform.nowMs())
    this.rollups = new SqlRollupTable(driver)
    this.documents = new SqlDocumentTable(driver)
  }

  async close(): Promise<void> {
    await this.#driver.close()
    await this.#announcements.settled()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

/**
 * Deletes expired blocks. Nodes know that they have expired, so no notification is needed. Without it, the table would
 * grow without bound.
 */
async function sweepBlocks({ transaction, at }: ConfigChange): Promise<void> {
  await transaction.query(
    `DELETE FROM blocks WHERE (dimension, entity) IN
      (SELECT dimension, entity FROM blocks WHERE forgotten_at < ? ORDER BY forgotten_at LIMIT ?)`,
    [at - FORGOTTEN_BLOCKS_KEPT_MS, SWEPT_AT_ONCE],
  )
}
