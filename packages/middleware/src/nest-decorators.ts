import type { CustomDecorator } from '@nestjs/common'
import { SetMetadata } from '@nestjs/common'
import type { RouteRateLimitOptions } from './nest-options.ts'

/** Under this name the decorators keep what they say: options, or false for no limit. */
export const RATE_LIMIT_METADATA = 'sluice:rate-limit'

/**
 * Limits of its own for a route, or for each route of a controller; that of a route goes before that of its controller, and
 * that before that of the module. Options that say nothing about limits, such as `{ cost: 10 }`, leave the limit as it is. Options
 * that do replace it, and what they leave out (`key`, `store`, `trustProxy`, ...) is as in the module.
 *
 * Limits without a `name` count by themselves: a route by the names of class and method, a controller by that of the class.
 * Routes whose limits have one name count together.
 *
 * ```ts
 * @RateLimit({ limit: 5, window: '1m' })
 * @Post('login')
 * login() {}
 * ```
 */
export function RateLimit(options: RouteRateLimitOptions): CustomDecorator {
  return SetMetadata(RATE_LIMIT_METADATA, Object.freeze({ ...options }))
}

/** No limit for a route, or for all routes of a controller, save those that have one by {@link RateLimit}. */
export function SkipRateLimit(): CustomDecorator {
  return SetMetadata(RATE_LIMIT_METADATA, false)
}
