import type { DynamicModule, FactoryProvider, Provider } from '@nestjs/common'
import { Inject, Module, Optional } from '@nestjs/common'
import { APP_GUARD, ModulesContainer } from '@nestjs/core'
import { SluiceError } from '@sluice/core'
import { RateLimitGuard } from './nest-guard.ts'
import type {
  GuardedRoutes,
  NestRateLimitAsyncOptions,
  NestRateLimitOptions,
  RateLimitOptionsFactory,
} from './nest-options.ts'
import { RouteLimits } from './nest-route-limits.ts'

/** Injection token of the module options. */
export const RATE_LIMIT_OPTIONS: unique symbol = Symbol('sluice.rate-limit-options')

/**
 * Limits requests to a Nest app, on Express and Fastify. Import it once, in the root module. For several limits, use
 * `rules`.
 */
export class RateLimitModule {
  // Decorators, called: their syntax would have to be compiled.
  static {
    Module({})(RateLimitModule)
  }
  static {
    Inject(RouteLimits)(RateLimitModule, undefined, 0)
  }
  static {
    // So that the error below reports what is missing and what to do.
    Optional()(RateLimitModule, undefined, 0)
  }

  /** Called by Nest. Throws if the class itself is imported, which would limit nothing. */
  constructor(limits: RouteLimits | undefined) {
    if (limits !== undefined) return
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: 'RateLimitModule was imported without options, and so limits nothing',
      expected: 'RateLimitModule.forRoot(options) or RateLimitModule.forRootAsync(options) among the imports',
      action: 'Write: imports: [RateLimitModule.forRoot({ limit: 100, window: "1m" })].',
    })
  }

  /**
   * Limits by static options:
   *
   * ```ts
   * @Module({ imports: [RateLimitModule.forRoot({ limit: 100, window: '1m' })] })
   * export class AppModule {}
   * ```
   *
   * Each route counts separately. With `name`, `rules`, `limiter`, `engine` or `check`, all routes count together.
   * `limit: 'off'` limits only routes with `@RateLimit`.
   */
  static forRoot(options: NestRateLimitOptions): DynamicModule {
    return dynamicModule([{ provide: RATE_LIMIT_OPTIONS, useValue: options }], options?.routes)
  }

  /**
   * Limits by options that depend on other providers, such as an injected store:
   *
   * ```ts
   * RateLimitModule.forRootAsync({
   *   imports: [RedisModule],
   *   inject: [RedisClient],
   *   useFactory: (client: RedisClient) => ({ limit: 100, window: '1m', store: redisStore(client) }),
   * })
   * ```
   */
  static forRootAsync(options: NestRateLimitAsyncOptions): DynamicModule {
    return { ...dynamicModule(optionsProviders(options), options.routes), imports: options.imports ?? [] }
  }
}

function dynamicModule(options: Provider[], routes: GuardedRoutes = 'all'): DynamicModule {
  if (routes !== 'all' && routes !== 'chosen') {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: '"routes" of RateLimitModule cannot be used',
      received: routes,
      expected: '"all", or "chosen" to limit those that say @UseGuards(RateLimitGuard)',
    })
  }
  const limits: FactoryProvider<RouteLimits> = {
    provide: RouteLimits,
    inject: [RATE_LIMIT_OPTIONS, ModulesContainer],
    // Code that is not typed may have none.
    useFactory: (given: NestRateLimitOptions | undefined, modules: ModulesContainer) =>
      new RouteLimits(given ?? {}, modules),
  }
  const everywhere: Provider[] = routes === 'all' ? [{ provide: APP_GUARD, useExisting: RateLimitGuard }] : []
  return {
    module: RateLimitModule,
    global: true,
    providers: [...options, limits, RateLimitGuard, ...everywhere],
    exports: [RATE_LIMIT_OPTIONS, RouteLimits, RateLimitGuard],
  }
}

function optionsProviders({ useFactory, useClass, useExisting, inject = [] }: NestRateLimitAsyncOptions): Provider[] {
  const provide = RATE_LIMIT_OPTIONS
  if (useFactory !== undefined) return [{ provide, useFactory: useFactory as FactoryProvider['useFactory'], inject }]
  const factory = useExisting ?? useClass
  if (factory === undefined) {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: 'RateLimitModule.forRootAsync() was not told where its options come from',
      action: 'Give it one of useFactory, useClass and useExisting.',
    })
  }
  const made: FactoryProvider = {
    provide,
    inject: [factory],
    useFactory: (maker: RateLimitOptionsFactory) => maker.createRateLimitOptions(),
  }
  return useExisting === undefined ? [made, factory] : [made]
}
