export { RateLimit, SkipRateLimit } from './nest-decorators.ts'
export type { NestExchange, PlatformRequest, PlatformResponse } from './nest-exchange.ts'
export { RateLimitException, RateLimitGuard } from './nest-guard.ts'
export { RATE_LIMIT_OPTIONS, RateLimitModule } from './nest-module.ts'
export type {
  GuardedRoutes,
  NestRateLimitAsyncOptions,
  NestRateLimitOptions,
  RateLimitOptionsFactory,
  RouteRateLimitOptions,
} from './nest-options.ts'
