import type { CustomDecorator } from '@nestjs/common'
import { SetMetadata } from '@nestjs/common'
import { SluiceError } from '@sluice/core'
import type { RouteRateLimitOptions } from './nest-options.ts'

/** Under this name the decorators keep what they say: options, or false for no limit. */
export const RATE_LIMIT_METADATA = 'sluice:rate-limit'

/**
 * Limits of its own for a route, or for each route of a controller; that of a route goes before that of its controller, and
 * that before that of the module. Options that say nothing about limits, such as `{ cost: 10 }`, leave the limit as it is. Options
 * that do replace it, and what they leave out (`key`, `store`, `trustProxy`, ...) is as in the module.
 *
 * Each route counts by itself, under the names of its class and method. Routes whose limits have one `name` count together, and so
 * do the `rules` of all routes that have the same names.
 *
 * ```ts
 * @RateLimit({ limit: 5, window: '1m' })
 * @Post('login')
 * login() {}
 * ```
 */
export function RateLimit(options: RouteRateLimitOptions): CustomDecorator
export function RateLimit(...given: readonly unknown[]): CustomDecorator {
  const [options] = given
  const isOptions = typeof options === 'object' && options !== null && !Array.isArray(options)
  if (given.length === 1 && isOptions) return SetMetadata(RATE_LIMIT_METADATA, Object.freeze({ ...options }))
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: isDecorating(given) ? '@RateLimit was not called' : '@RateLimit takes options and nothing else',
    ...(isDecorating(given) ? {} : { received: given.length > 1 ? given : options }),
    expected: 'options such as @RateLimit({ limit: 5, window: "1m" })',
    ...(options === false ? { action: 'For no limit, write @SkipRateLimit().' } : {}),
  })
}

/** No limit for a route, or for all routes of a controller, save those that have one by {@link RateLimit}. */
export function SkipRateLimit(): CustomDecorator
export function SkipRateLimit(...given: readonly unknown[]): CustomDecorator {
  if (given.length === 0) return SetMetadata(RATE_LIMIT_METADATA, false)
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: isDecorating(given) ? '@SkipRateLimit was not called' : '@SkipRateLimit takes nothing',
    ...(isDecorating(given) ? {} : { received: given.length > 1 ? given : given[0] }),
    expected: '@SkipRateLimit()',
    action:
      'It skips all limits of a route. To leave out some, give the route @RateLimit with the "rules" that hold there.',
  })
}

/** Whether these are the arguments of a decorator, and so not those of the function that makes one: a class, or a method. */
function isDecorating([target, name]: readonly unknown[]): boolean {
  return typeof target === 'function' || (typeof target === 'object' && typeof name === 'string')
}
