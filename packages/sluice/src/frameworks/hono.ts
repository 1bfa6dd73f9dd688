export { type HonoRateLimit, type HonoRateLimitOptions, rateLimit } from '@sluice/middleware/hono'
