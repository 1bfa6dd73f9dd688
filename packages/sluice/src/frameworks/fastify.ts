export {
  type FastifyLimitHook,
  type FastifyLimitOptions,
  type FastifyRateLimitOptions,
  rateLimit,
} from '@sluice/middleware/fastify'
