export type {
  Author,
  EntityKey,
  EntryFilter,
  EntryTable,
  IncidentSwitch,
  OverrideKey,
  Page,
  PageRequest,
  PutEntry,
  Seen,
  Stored,
} from './config-entries.ts'
export type {
  ApiKey,
  ApiKeyRole,
  ApiKeyTable,
  AuditLog,
  AuditRecord,
  ChangeBatch,
  ChangeFeed,
  ConfigStore,
  DocumentTable,
  EntryChange,
  ExternalAction,
  IssuedApiKey,
  NewApiKey,
  Notifier,
  NumberLeaseRequest,
  NumberLeases,
  Rollup,
  RollupTable,
  SecretTable,
  StoredDocument,
  VersionsInForce,
} from './config-store.ts'
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
export { type ConfigTarget, type EngineTargetOptions, engineTarget } from './follow/config-target.ts'
export { type FollowOptions, followConfig } from './follow/follow-config.ts'
export { type RedisNotifierOptions, redisNotifier } from './follow/redis-notifier.ts'
export { type ConfigStoreOptions, openConfigStore } from './open-config-store.ts'
export type {
  RollbackOptions,
  StageChange,
  Version,
  VersionApproval,
  VersionContent,
  VersionStage,
  VersionTable,
} from './rule-set-versions.ts'
export { auditName } from './sql/tables/audit-table.ts'
