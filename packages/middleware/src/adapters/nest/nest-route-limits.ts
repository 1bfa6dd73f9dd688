import type { ExecutionContext, OnApplicationShutdown, OnModuleInit, Type } from '@nestjs/common'
import type { ModulesContainer } from '@nestjs/core'
import { Reflector } from '@nestjs/core'
import type { MemoryStore, Store } from '@sluice/core'
import { memoryStore } from '@sluice/core'
import { checkForms, type OptionForms } from '@sluice/core/options'
import type { HttpAdapter, HttpLimiter } from '../../limiter/http-limiter.ts'
import { createHttpLimiter } from '../../limiter/http-limiter.ts'
import { checkShape } from '../../options/check-rate-limit-options.ts'
import { isOneRule, routeOptions, usesStore } from '../../options/route-options.ts'
import { nodeBatcher } from '../node/node-batcher.ts'
import { RATE_LIMIT_METADATA } from './nest-decorators.ts'
import type { NestExchange } from './nest-exchange.ts'
import { NestHttpRequest } from './nest-exchange.ts'
import type { NestRateLimitOptions, RouteRateLimitOptions } from './nest-options.ts'

const EXCHANGE_FORM: OptionForms = {
  exchange: {
    expected: 'a function from a call to { request, response }, or to undefined',
    accepts: (value) => typeof value === 'function',
  },
}

/** A controller method. */
export type RouteHandler = ReturnType<ExecutionContext['getHandler']>

/** The limit of a route and its options. */
export interface RouteLimit {
  readonly limiter: HttpLimiter<ExecutionContext>
  readonly options: RouteRateLimitOptions
}

/** Limits of all routes, from module options and decorators. */
export class RouteLimits implements OnModuleInit, OnApplicationShutdown {
  readonly #options: NestRateLimitOptions
  readonly #modules: ModulesContainer
  readonly #reflector = new Reflector()
  readonly #adapter: HttpAdapter<ExecutionContext>
  readonly #made: HttpLimiter<ExecutionContext>[] = []
  readonly #byHandler = new WeakMap<RouteHandler, Map<Type, RouteLimit | undefined>>()
  /** Limit shared by routes. Also validates the options if routes count separately. */
  readonly #ofModule: RouteLimit
  /** Whether routes count separately: the module limit is one rule without a name. */
  readonly #isUnnamed: boolean
  #ownStore: MemoryStore | undefined

  /** Throws for invalid options. Route limits are created when the module starts, so that mistakes surface then. */
  constructor(given: NestRateLimitOptions, modules: ModulesContainer) {
    checkShape(given, 'nest')
    checkForms(given, EXCHANGE_FORM)
    const { routes: _, ...options } = given
    this.#options = options
    this.#modules = modules
    this.#adapter = {
      name: 'nest',
      ownOptions: ['exchange'],
      request: (context) => new NestHttpRequest(this.exchangeOf(context)!.request),
      batcher: nodeBatcher,
    }
    this.#ofModule = this.#create(options)
    this.#isUnnamed = isOneRule(options) && options.name === undefined
  }

  /** Request and response of a call. Undefined if it is not limited. */
  exchangeOf(context: ExecutionContext): NestExchange | undefined {
    const { exchange } = this.#options
    if (exchange !== undefined) return exchange(context)
    if (context.getType() !== 'http') return undefined
    const http = context.switchToHttp()
    return { request: http.getRequest(), response: http.getResponse() }
  }

  /** The limit of a route. Undefined if there is none. */
  of(handler: RouteHandler, controller: Type): RouteLimit | undefined {
    const known = this.#byHandler.get(handler)
    if (known?.has(controller) === true) return known.get(controller)
    const limit = this.#find(handler, controller)
    this.#byHandler.set(handler, new Map(known).set(controller, limit))
    return limit
  }

  /** Creates the limits of all routes. */
  onModuleInit(): void {
    for (const module of this.#modules.values()) {
      for (const { metatype } of [...module.controllers.values(), ...module.providers.values()]) {
        if (typeof metatype === 'function') this.#prepare(metatype as Type)
      }
    }
  }

  /** Frees resources after the last response. */
  async onApplicationShutdown(): Promise<void> {
    await Promise.all(this.#made.map((limiter) => limiter.close()))
    await this.#ownStore?.close()
  }

  #prepare(owner: Type): void {
    for (const method of methodsOf(owner).values()) {
      if (this.#said(method, owner) !== undefined) this.of(method, owner)
    }
  }

  /** Metadata of a route. */
  #said(handler: RouteHandler, controller: Type): RouteRateLimitOptions | false | undefined {
    return this.#reflector.getAllAndOverride(RATE_LIMIT_METADATA, [handler, controller])
  }

  #find(handler: RouteHandler, controller: Type): RouteLimit | undefined {
    const said = this.#said(handler, controller)
    if (said === false) return undefined
    const name = `${controller.name}.${methodName(handler, controller)}`
    const ofModule = this.#isUnnamed ? { ...this.#options, name } : this.#options
    if (said !== undefined) return this.#create(routeOptions(ofModule, said, name))
    return this.#isUnnamed ? this.#create(ofModule) : this.#ofModule
  }

  #create(options: RouteRateLimitOptions): RouteLimit {
    const complete = usesStore(options) ? { ...options, store: this.#storeFor(options) } : options
    const limiter = createHttpLimiter(complete, this.#adapter)
    this.#made.push(limiter)
    return { limiter, options: complete }
  }

  /** One store for all limits without one, so that routes with one name count together. */
  #storeFor({ store, clock }: RouteRateLimitOptions): Store {
    if (store !== undefined) return store
    this.#ownStore ??= memoryStore(clock === undefined ? {} : { clock })
    return this.#ownStore
  }
}

/** Methods of a class by name, inherited ones included. */
function methodsOf(owner: Type): Map<string, RouteHandler> {
  const parent = Object.getPrototypeOf(owner)
  const methods = parent === null || parent === Function.prototype ? new Map<string, RouteHandler>() : methodsOf(parent)
  for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(owner.prototype ?? {}))) {
    if (typeof value === 'function' && name !== 'constructor') methods.set(name, value)
  }
  return methods
}

/** Not the name of the function: a decorator may have replaced the method by an anonymous one. */
function methodName(handler: RouteHandler, controller: Type): string {
  for (const [name, method] of methodsOf(controller)) if (method === handler) return name
  return handler.name
}
