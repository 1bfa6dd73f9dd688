import type { CustomDecorator } from '@nestjs/common'
import { SetMetadata } from '@nestjs/common'
import { SluiceError } from '@sluice/core'
import type { RouteRateLimitOptions } from './nest-options.ts'

/** Metadata key of the decorators: options, or false for no limit. */
export const RATE_LIMIT_METADATA = 'sluice:rate-limit'

/**
 * Limits a route, or each route of a controller. Routes take precedence over controllers, controllers over the module.
 * Options without limits, such as `{ cost: 10 }`, keep the limit. Options with limits replace it; all other options
 * (`key`, `store`, `trustProxy`, ...) are inherited from the module.
 *
 * Each route counts separately, named after its class and method. Routes with the same `name`, or `rules` with the same
 * names, count together.
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

/** No limit for a route or a controller, except for routes with {@link RateLimit}. */
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

/** Whether these are the arguments of a decorator instead of its factory. */
function isDecorating([target, name]: readonly unknown[]): boolean {
  return typeof target === 'function' || (typeof target === 'object' && typeof name === 'string')
}
