export {
  type RedisStore,
  type RedisStoreEvent,
  type RedisStoreOptions,
  type RedisStoreStats,
  redisStore,
} from './redis-store.ts'
export type { ServerWarning } from './server-warnings.ts'
