import type { MemoryStore } from '@sluice/core'
import { memoryStore, SluiceError } from '@sluice/core'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { HttpAdapter, HttpLimiter } from '../../limiter/http-limiter.ts'
import { createHttpLimiter } from '../../limiter/http-limiter.ts'
import { detectFramework } from '../../options/framework-detection.ts'
import { definesLimits, routeOptions, usesStore } from '../../options/route-options.ts'
import { nodeBatcher } from '../node/node-batcher.ts'
import type { FastifyLimitHook, FastifyLimitOptions } from './fastify-hook.ts'
import { FastifyHttpRequest, limitHook } from './fastify-hook.ts'

/** Options of the plugin that routes do not have. */
const PLUGIN_OPTIONS = ['hook', 'global'] as const

const ADAPTER: HttpAdapter<FastifyRequest> = {
  name: 'fastify',
  ownOptions: PLUGIN_OPTIONS,
  request: (request) => new FastifyHttpRequest(request),
  batcher: nodeBatcher,
}

/** Links a Fastify instance to the limits of the innermost plugin. */
export const LIMITS: unique symbol = Symbol('sluice.limits')

/** An instance with such a plugin. */
type LimitedInstance = FastifyInstance & { readonly [LIMITS]?: FastifyLimits }

/** Links a route config to its limits. */
const LIMITED: unique symbol = Symbol('sluice.limited')

/** A route with options of its own. */
interface LimitedRoute {
  readonly options: FastifyLimitOptions
  /** Default name of its rule. */
  readonly name: string
  /** Created when the app is ready, or with the first request for routes declared before the plugin. */
  hook: FastifyLimitHook | undefined
}

/** What is read from the config of a route. */
interface LimitedConfig {
  readonly rateLimit?: FastifyLimitOptions | false
  [LIMITED]?: LimitedRoute
}

/** Config of a ready app: Fastify has added method and URL. */
type ReadyConfig = LimitedConfig & Pick<DeclaredRoute, 'method' | 'url'>

/** What is used of a route that is declared. */
interface DeclaredRoute {
  readonly method?: string | readonly string[]
  readonly url?: string
  readonly config?: LimitedConfig
}

/** Limits of one registered plugin and its routes. */
export class FastifyLimits {
  /** Marks decided requests: app hooks run again when a handler calls the not-found handler. */
  readonly decided: symbol = Symbol('sluice.decided')
  readonly #options: FastifyLimitOptions
  readonly #isGlobal: boolean
  /** Routes that the app hook runs for, until the app is ready. Undefined if earlier routes may exist. */
  #declared: DeclaredRoute[] | undefined
  /**
   * The hook for all requests if no route has its own limits: reading the config of each route takes as long as
   * deciding.
   */
  #forAll: FastifyLimitHook | undefined
  readonly #limiters: HttpLimiter<FastifyRequest>[] = []
  readonly #routes: { readonly route: LimitedRoute; readonly server: LimitedInstance }[] = []
  #ownHook: FastifyLimitHook | undefined
  #ownStore: MemoryStore | undefined

  /**
   * Throws for invalid options. Without `isGlobal`, options need not define limits and are checked later. `isFirst`: no
   * route was declared before.
   */
  constructor(options: FastifyLimitOptions, { isGlobal, isFirst }: { isGlobal: boolean; isFirst: boolean }) {
    this.#options = options
    this.#isGlobal = isGlobal
    if (isGlobal) this.#own()
    if (isGlobal && isFirst) this.#declared = []
  }

  /** The app hook: limits requests by route or by plugin. */
  appHook(): FastifyLimitHook {
    return this.#once((request) => this.#forAll ?? this.#hookFor(request.routeOptions.config, request))
  }

  /** A hook with an additional limit. Default: the limit of the plugin. */
  hookBy(options: FastifyLimitOptions | undefined): FastifyLimitHook {
    if (options === undefined) {
      const own = this.#own()
      return this.#once(() => own)
    }
    if (detectFramework(options) !== undefined) throw notCalled()
    const all = routeOptions(this.#options, checked(options))
    const isNamed = options.name !== undefined || !definesLimits(options)
    // There is no route to name it after. Limiters without a name count separately unless they share a store.
    return this.#make(isNamed ? this.#stored(all) : all)
  }

  /** Registers a route of `server`. Returns its config. */
  declare(declared: DeclaredRoute, server: LimitedInstance): LimitedConfig {
    const { config = {} } = declared
    const { rateLimit: options } = config
    this.#declared?.push(declared)
    if (options === undefined || options === false) return config
    const route = config[LIMITED] ?? { options: checked(options), name: nameOf(declared), hook: undefined }
    this.#routes.push({ route, server })
    return { ...config, [LIMITED]: route }
  }

  /** Creates the limits of all declared routes, so that mistakes surface at startup. */
  ready(): void {
    for (const { route, server } of this.#routes) if (server[LIMITS] === this) this.#hookOf(route)
    // Other `onRoute` hooks may have changed the config since.
    if (this.#declared?.every(({ config }) => config?.rateLimit === undefined) === true) this.#forAll = this.#own()
    this.#declared = undefined
  }

  /** Frees what was made here. */
  async close(): Promise<void> {
    await Promise.all(this.#limiters.map((limiter) => limiter.close()))
    await this.#ownStore?.close()
  }

  /** The hook for a route. Undefined if it is not limited, or by another plugin. */
  #hookFor(config: ReadyConfig, request: FastifyRequest): FastifyLimitHook | undefined {
    if (config.rateLimit === undefined) return this.#isGlobal ? this.#own() : undefined
    const server: LimitedInstance = request.server
    if (config.rateLimit === false || server[LIMITS] !== this) return undefined
    if (config[LIMITED] === undefined) Object.assign(config, this.declare({ ...config, config }, server))
    return this.#hookOf(config[LIMITED]!)
  }

  #hookOf(route: LimitedRoute): FastifyLimitHook {
    route.hook ??= this.#make(this.#stored(routeOptions(this.#options, route.options, route.name)))
    return route.hook
  }

  #own(): FastifyLimitHook {
    this.#ownHook ??= this.#make(this.#stored(this.#options))
    return this.#ownHook
  }

  #make(options: FastifyLimitOptions): FastifyLimitHook {
    const limiter = createHttpLimiter(options, ADAPTER)
    this.#limiters.push(limiter)
    return limitHook(limiter, options)
  }

  /** One store for the plugin and its routes, so that limits with one name count together. */
  #stored(options: FastifyLimitOptions): FastifyLimitOptions {
    if (options.store !== undefined || !usesStore(options)) return options
    const { clock, random } = this.#options
    this.#ownStore ??= memoryStore({ ...(clock && { clock }), ...(random && { random }) })
    return { ...options, store: this.#ownStore }
  }

  /** Decides a request only the first time it passes. */
  #once(choose: (request: FastifyRequest) => FastifyLimitHook | undefined): FastifyLimitHook {
    const { decided } = this
    return (request, reply, done) => {
      const marks = request as unknown as Record<symbol, boolean>
      const hook = marks[decided] === true ? undefined : choose(request)
      if (hook === undefined) return done()
      marks[decided] = true
      hook(request, reply, done)
    }
  }
}

/** Validates the options of a route, which may come from untyped code. */
function checked(options: unknown): FastifyLimitOptions {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: 'the limit of a route cannot be used',
      received: options,
      expected: 'options such as { limit: 5, window: "1m" }, or false for no limit',
    })
  }
  const misplaced = PLUGIN_OPTIONS.find((option) => option in options)
  if (misplaced === undefined) return options
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: `"${misplaced}" is an option of the plugin and not of a route`,
    expected: 'it where the plugin is registered',
    action:
      'A route decides in a hook of its choice by { config: { rateLimit: false }, preHandler: ' +
      'app.rateLimit(options) }.',
  })
}

/** The function creates a hook and is not one itself. */
function notCalled(): SluiceError {
  return new SluiceError('SLUICE_INVALID_OPTION', {
    problem: 'app.rateLimit makes a hook, and was given a request in place of options',
    expected: 'a hook that it has made',
    action: 'Call it: { preHandler: app.rateLimit() }.',
  })
}

/** Characters that are invalid in rule names, and `@`, which encloses their code. */
const UNNAMEABLE = /[^\w.:/*-]/gu

/** Such as `GET:/orders/:id`. HEAD counts with GET, and a trailing slash does not matter, because Fastify adds both. */
function nameOf({ method = [], url = '' }: DeclaredRoute): string {
  const methods = new Set([method].flat().map((each) => (each === 'HEAD' ? 'GET' : each)))
  const path = url.length > 1 && url.endsWith('/') ? url.slice(0, -1) : url
  const nameable = path.replace(UNNAMEABLE, (character) => `@${character.codePointAt(0)?.toString(16)}@`)
  return `${[...methods].join('.')}:${nameable}`
}
