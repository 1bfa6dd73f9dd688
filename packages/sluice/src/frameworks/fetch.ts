export {
  type FetchCall,
  type FetchRateLimit,
  type FetchRateLimitOptions,
  rateLimit,
  rateLimitOf,
} from '@sluice/middleware/fetch'
