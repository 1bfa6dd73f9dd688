export { type KoaRateLimit, type KoaRateLimitOptions, rateLimit } from '@sluice/middleware/koa'
