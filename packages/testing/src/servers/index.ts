export {
  type PostgresDatabase,
  type PostgresOptions,
  type PostgresServer,
  type PostgresStatus,
  startPostgres,
} from './postgres/postgres-server.ts'
export { freePort } from './process/free-port.ts'
export { SERVER_ERRORS, ServerError, type ServerErrorCode } from './process/server-error.ts'
export { FaultyProxy, type FaultyProxyOptions, type ProxyMode } from './proxy/faulty-proxy.ts'
export {
  type ClusterNode,
  type RedisCluster,
  type RedisClusterOptions,
  startRedisCluster,
} from './redis/redis-cluster.ts'
export { makeCertificate, type SelfSignedCertificate } from './redis/redis-configuration.ts'
export { type SentinelGroup, type SentinelOptions, startSentinel } from './redis/redis-sentinel.ts'
export { type RedisOptions, type RedisServer, type RedisStatus, startRedis } from './redis/redis-server.ts'
export { RedisConnection, type RedisConnectionOptions } from './redis/redis-test-connection.ts'
export { RedisReplyError, type Reply } from './redis/reply-parser.ts'
export type { SlotMigration } from './redis/slot-migration.ts'
export { slotOf } from './redis/slot-migration.ts'
