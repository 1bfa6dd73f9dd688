import type { ExecutionContext, InjectionToken, ModuleMetadata, OptionalFactoryDependency, Type } from '@nestjs/common'
import type { Denial } from '../../http/denial-response.ts'
import type { MaybePromise } from '../../http/maybe-promise.ts'
import type { RateLimitOptions } from '../../options/rate-limit-options.ts'
import type { NestExchange } from './nest-exchange.ts'

/** Options of a route or a controller. */
export interface RouteRateLimitOptions extends RateLimitOptions<ExecutionContext> {
  /** Returns the error to throw in place of {@link RateLimitException}. Rate limit headers are already set. */
  readonly onLimited?: (context: ExecutionContext, denial: Denial) => MaybePromise<Error>
}

/** Limited routes: all, or those with `@UseGuards(RateLimitGuard)`. */
export type GuardedRoutes = 'all' | 'chosen'

/** Options of {@link RateLimitModule}. */
export interface NestRateLimitOptions extends RouteRateLimitOptions {
  /** Default: `all`. */
  readonly routes?: GuardedRoutes
  /**
   * Request and response of calls other than plain HTTP, such as GraphQL. Return undefined for calls without a limit.
   * Default: HTTP calls are limited; microservices, WebSockets and GraphQL are not.
   *
   * ```ts
   * exchange: (context) => {
   *   const { req, res } = GqlExecutionContext.create(context).getContext()
   *   return { request: req, response: res }
   * }
   * ```
   */
  readonly exchange?: (context: ExecutionContext) => NestExchange | undefined
}

/** Creates options from other providers. */
export interface RateLimitOptionsFactory {
  createRateLimitOptions(): MaybePromise<Omit<NestRateLimitOptions, 'routes'>>
}

/** Source of asynchronous options: one of `useFactory`, `useClass` and `useExisting`. */
export interface NestRateLimitAsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  /** Default: `all`. */
  readonly routes?: GuardedRoutes
  readonly useFactory?: (...injected: never[]) => MaybePromise<Omit<NestRateLimitOptions, 'routes'>>
  /** Arguments of `useFactory`. */
  readonly inject?: (InjectionToken | OptionalFactoryDependency)[]
  readonly useClass?: Type<RateLimitOptionsFactory>
  readonly useExisting?: Type<RateLimitOptionsFactory>
}
