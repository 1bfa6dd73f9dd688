export {
  type RedisStore,
  type RedisStoreEvent,
  type RedisStoreOptions,
  type RedisStoreStats,
  redisStore,
  type ServerWarning,
} from '@sluice/store-redis'
