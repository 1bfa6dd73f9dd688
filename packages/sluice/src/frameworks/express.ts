export { type ExpressRateLimit, type ExpressRateLimitOptions, rateLimit, rateLimitOf } from '@sluice/middleware/express'
