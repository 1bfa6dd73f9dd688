export { FaultyProxy, type FaultyProxyOptions, type ProxyMode } from './faulty-proxy.ts'
export { freePort } from './free-port.ts'
export { slotOf } from './hash-slot.ts'
export {
  type PostgresDatabase,
  type PostgresOptions,
  type PostgresServer,
  type PostgresStatus,
  startPostgres,
} from './postgres-server.ts'
export {
  type ClusterNode,
  type RedisCluster,
  type RedisClusterOptions,
  startRedisCluster,
} from './redis-cluster.ts'
export { RedisConnection, type RedisConnectionOptions } from './redis-connection.ts'
export { type SentinelGroup, type SentinelOptions, startSentinel } from './redis-sentinel.ts'
export { type RedisOptions, type RedisServer, type RedisStatus, startRedis } from './redis-server.ts'
export { RedisReplyError, type Reply } from './reply-parser.ts'
export { SERVER_ERRORS, ServerError, type ServerErrorCode } from './server-error.ts'
export type { SlotMigration } from './slot-migration.ts'
