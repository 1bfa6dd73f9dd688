export type { ApiKey, ApiKeyRole, ApiKeyTable, IssuedApiKey, NewApiKey } from './api-key.ts'
export type { AuditLog, AuditRecord, DoneElsewhere } from './audit-log.ts'
export { auditName } from './audit-name.ts'
export type { Author } from './author.ts'
export type { ChangeBatch, ChangeFeed, EntryChange, VersionsInForce } from './change-feed.ts'
export type {
  ConfigEvent,
  ConfigFollower,
  ConfigObserver,
  ConfigSource,
  ConfigStats,
  RefusedVersion,
} from './config-follower.ts'
export type { ConfigStore } from './config-store.ts'
export type { ConfigTarget } from './config-target.ts'
export type { DocumentTable, StoredDocument } from './document-table.ts'
export { type EngineTargetOptions, engineTarget } from './engine-target.ts'
export type {
  EntityKey,
  EntryFilter,
  EntryTable,
  IncidentSwitch,
  OverrideKey,
  PutEntry,
  Seen,
  Stored,
} from './entry-table.ts'
export { type EnvoyFile, type EnvoyImportOptions, importEnvoyYaml } from './envoy-import.ts'
export { type FileConfig, type FileConfigOptions, type FileConfigStats, fileConfig } from './file-config.ts'
export type { CacheOptions } from './follow/config-cache.ts'
export { type FollowOptions, followConfig } from './follow-config.ts'
export type { Notifier } from './notifier.ts'
export type { NumberLeaseRequest, NumberLeases } from './number-leases.ts'
export { type ConfigStoreOptions, openConfigStore } from './open-config-store.ts'
export type { Page, PageRequest } from './page.ts'
export { type RedisNotifierOptions, redisNotifier } from './redis-notifier.ts'
export type { Rollup, RollupTable } from './rollup-table.ts'
export type { SecretTable } from './secret-table.ts'
export type {
  RollbackOptions,
  StageChange,
  Version,
  VersionApproval,
  VersionContent,
  VersionStage,
  VersionTable,
} from './version.ts'
