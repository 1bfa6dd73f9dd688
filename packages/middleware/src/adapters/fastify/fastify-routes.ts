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

/** Options of the plugin that limits of routes do not have. */
const PLUGIN_OPTIONS = ['hook', 'global'] as const

const ADAPTER: HttpAdapter<FastifyRequest> = {
  name: 'fastify',
  ownOptions: PLUGIN_OPTIONS,
  request: (request) => new FastifyHttpRequest(request),
  batcher: nodeBatcher,
}

/** Leads from an instance of Fastify to the limits of its routes: those of the innermost plugin that they stand under. */
export const LIMITS: unique symbol = Symbol('sluice.limits')

/** An instance that such a plugin may be registered on. */
type LimitedInstance = FastifyInstance & { readonly [LIMITS]?: FastifyLimits }

/** Leads from the config of a route to its limits. */
const LIMITED: unique symbol = Symbol('sluice.limited')

/** A route with options of its own. */
interface LimitedRoute {
  readonly options: FastifyLimitOptions
  /** What its rule is called when it has no name. */
  readonly name: string
  /** Made when the app is ready; with its first request when it was declared before the plugin was there. */
  hook: FastifyLimitHook | undefined
}

/** What is read from the config of a route. */
interface LimitedConfig {
  readonly rateLimit?: FastifyLimitOptions | false
  [LIMITED]?: LimitedRoute
}

/** The same when the app is ready: Fastify has added where the route is. */
type ReadyConfig = LimitedConfig & Pick<DeclaredRoute, 'method' | 'url'>

/** What is used of a route that is declared. */
interface DeclaredRoute {
  readonly method?: string | readonly string[]
  readonly url?: string
  readonly config?: LimitedConfig
}

/** The limits of one registered plugin: its own, and those of routes. */
export class FastifyLimits {
  /** Marks requests that were decided: hooks of the app run again when a handler passes on to the one for what is not found. */
  readonly decided: symbol = Symbol('sluice.decided')
  readonly #options: FastifyLimitOptions
  readonly #isGlobal: boolean
  /** Every route that the hook of the app runs for, until the app is ready; undefined when some may have been there before. */
  #declared: DeclaredRoute[] | undefined
  /** The hook for all requests, when no route has limits of its own: to ask each for its config takes as long as to decide. */
  #forAll: FastifyLimitHook | undefined
  readonly #limiters: HttpLimiter<FastifyRequest>[] = []
  readonly #routes: { readonly route: LimitedRoute; readonly server: LimitedInstance }[] = []
  #ownHook: FastifyLimitHook | undefined
  #ownStore: MemoryStore | undefined

  /**
   * Throws when the options are wrong. When `isGlobal` is false they need not say which limits hold, and are tried later.
   * `isFirst`: no route of the app has been declared yet.
   */
  constructor(options: FastifyLimitOptions, { isGlobal, isFirst }: { isGlobal: boolean; isFirst: boolean }) {
    this.#options = options
    this.#isGlobal = isGlobal
    if (isGlobal) this.#own()
    if (isGlobal && isFirst) this.#declared = []
  }

  /** The hook of the app: limits requests by their route, or by the options of the plugin. */
  appHook(): FastifyLimitHook {
    return this.#once((request) => this.#forAll ?? this.#hookFor(request.routeOptions.config, request))
  }

  /** A hook that limits by `options`, besides whatever else limits the route; by those of the plugin when left out. */
  hookBy(options: FastifyLimitOptions | undefined): FastifyLimitHook {
    if (options === undefined) {
      const own = this.#own()
      return this.#once(() => own)
    }
    if (detectFramework(options) !== undefined) throw notCalled()
    const all = routeOptions(this.#options, checked(options))
    const isNamed = options.name !== undefined || !definesLimits(options)
    // There is no route to name it after. As everywhere, limiters without a name count apart unless they are given one store.
    return this.#make(isNamed ? this.#stored(all) : all)
  }

  /** Takes note of a route that is declared on `server`. Returns the config that it is to have. */
  declare(declared: DeclaredRoute, server: LimitedInstance): LimitedConfig {
    const { config = {} } = declared
    const { rateLimit: options } = config
    this.#declared?.push(declared)
    if (options === undefined || options === false) return config
    const route = config[LIMITED] ?? { options: checked(options), name: nameOf(declared), hook: undefined }
    this.#routes.push({ route, server })
    return { ...config, [LIMITED]: route }
  }

  /** Makes the limits of the routes that were declared, so that mistakes in them are found at the start. */
  ready(): void {
    for (const { route, server } of this.#routes) if (server[LIMITS] === this) this.#hookOf(route)
    // Whoever else is told of routes may have changed their config since.
    if (this.#declared?.every(({ config }) => config?.rateLimit === undefined) === true) this.#forAll = this.#own()
    this.#declared = undefined
  }

  /** Frees what was made here. */
  async close(): Promise<void> {
    await Promise.all(this.#limiters.map((limiter) => limiter.close()))
    await this.#ownStore?.close()
  }

  /** The hook for requests of a route; undefined when they are not limited, or by another plugin. */
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

  /** One store for the plugin and its routes, so that those whose limits have one name count together. */
  #stored(options: FastifyLimitOptions): FastifyLimitOptions {
    if (options.store !== undefined || !usesStore(options)) return options
    const { clock, random } = this.#options
    this.#ownStore ??= memoryStore({ ...(clock && { clock }), ...(random && { random }) })
    return { ...options, store: this.#ownStore }
  }

  /** Decides a request by the hook that is chosen for it, and only the first time that it passes here. */
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

/** The options of a route, which come from code that may not be typed. */
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
      'A route decides in a hook of its choice by { config: { rateLimit: false }, preHandler: app.rateLimit(options) }.',
  })
}

/** A hook is made by the function, and is not the function. */
function notCalled(): SluiceError {
  return new SluiceError('SLUICE_INVALID_OPTION', {
    problem: 'app.rateLimit makes a hook, and was given a request in place of options',
    expected: 'a hook that it has made',
    action: 'Call it: { preHandler: app.rateLimit() }.',
  })
}

/** What may not stand in the name of a rule, and `@`, which stands around the number of such a character. */
const UNNAMEABLE = /[^\w.:/*-]/gu

/** Such as `GET:/orders/:id`. Fastify adds HEAD to every GET, and may add a slash to a path: they count together. */
function nameOf({ method = [], url = '' }: DeclaredRoute): string {
  const methods = new Set([method].flat().map((each) => (each === 'HEAD' ? 'GET' : each)))
  const path = url.length > 1 && url.endsWith('/') ? url.slice(0, -1) : url
  const nameable = path.replace(UNNAMEABLE, (character) => `@${character.codePointAt(0)?.toString(16)}@`)
  return `${[...methods].join('.')}:${nameable}`
}
