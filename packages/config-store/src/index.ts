export type { ApiKey, ApiKeyRole, ApiKeyTable, IssuedApiKey, NewApiKey } from './api-key.ts'
export type { AuditLog, AuditRecord, DoneElsewhere } from './audit-log.ts'
export { auditName } from './audit-name.ts'
export type { Author } from './author.ts'
export type { ChangeBatch, ChangeFeed, EntryChange, VersionsInForce } from './change-feed.ts'
export type { ConfigStore } from './config-store.ts'
export type { DocumentTable, StoredDocument } from './document-table.ts'
export type {
  EntityKey,
  EntryFilter,
  EntryTable,
  IncidentSwitch,
  OverrideKey,
  PutEntry,
  Seen,
  Stored,
} from './entries.ts'
export { type EnvoyFile, type EnvoyImportOptions, importEnvoyYaml } from './envoy/envoy-import.ts'
export { type FileConfig, type FileConfigOptions, type FileConfigStats, fileConfig } from './file/file-config.ts'
export type { CacheOptions } from './follow/config-cache.ts'
export type {
  ConfigEvent,
  ConfigFollower,
  ConfigObserver,
  ConfigSource,
  ConfigStats,
  RefusedVersion,
} from './follow/config-follower.ts'
export type { ConfigTarget } from './follow/config-target.ts'
export { type EngineTargetOptions, engineTarget } from './follow/engine-target.ts'
export { type FollowOptions, followConfig } from './follow/follow-config.ts'
export { type RedisNotifierOptions, redisNotifier } from './follow/redis-notifier.ts'
export type { Notifier } from './notifier.ts'
export type { NumberLeaseRequest, NumberLeases } from './number-leases.ts'
export { type ConfigStoreOptions, openConfigStore } from './open.ts'
export type { Page, PageRequest } from './page.ts'
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
} from './versions.ts'
