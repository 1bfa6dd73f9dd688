import type { ExecutionContext, InjectionToken, ModuleMetadata, OptionalFactoryDependency, Type } from '@nestjs/common'
import type { Denial } from '../../http/denial.ts'
import type { MaybePromise } from '../../http/maybe-promise.ts'
import type { RateLimitOptions } from '../../options/rate-limit-options.ts'
import type { NestExchange } from './nest-exchange.ts'

/** How the requests of one route, or of all routes of a controller, are limited. */
export interface RouteRateLimitOptions extends RateLimitOptions<ExecutionContext> {
  /** Makes what is thrown in place of the {@link RateLimitException}. The headers that announce the limit are set already. */
  readonly onLimited?: (context: ExecutionContext, denial: Denial) => MaybePromise<Error>
}

/** Which routes are limited: all of them, or those that say `@UseGuards(RateLimitGuard)`. */
export type GuardedRoutes = 'all' | 'chosen'

/** How the requests to a Nest app are limited. */
export interface NestRateLimitOptions extends RouteRateLimitOptions {
  /** `all` when left out. */
  readonly routes?: GuardedRoutes
  /**
   * Request and answer of a call that does not come by HTTP alone, such as a GraphQL query; undefined for one that is not to be
   * limited. When it is left out, calls by HTTP are limited, and those of microservices, WebSockets and GraphQL are not.
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

/** Makes options, for a module whose options depend on others. */
export interface RateLimitOptionsFactory {
  createRateLimitOptions(): MaybePromise<Omit<NestRateLimitOptions, 'routes'>>
}

/** Where the options of a module come from when they depend on others: one of `useFactory`, `useClass` and `useExisting`. */
export interface NestRateLimitAsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  /** `all` when left out. */
  readonly routes?: GuardedRoutes
  readonly useFactory?: (...injected: never[]) => MaybePromise<Omit<NestRateLimitOptions, 'routes'>>
  /** What `useFactory` is called with. */
  readonly inject?: (InjectionToken | OptionalFactoryDependency)[]
  readonly useClass?: Type<RateLimitOptionsFactory>
  readonly useExisting?: Type<RateLimitOptionsFactory>
}
