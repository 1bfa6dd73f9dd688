import type { DecisionLike } from '@sluice/contract'
import { SluiceError } from '@sluice/core'
import { checkForms, FLAG, type OptionForms } from '@sluice/core/options'
import type { FastifyInstance, FastifyPluginCallback } from 'fastify'
import { ANNOUNCED } from '../../http/response-headers.ts'
import { checkShape } from '../../options/check-rate-limit-options.ts'
import { detectFramework, importHint } from '../../options/framework-detection.ts'
import type { FastifyLimitHook, FastifyLimitOptions } from './fastify-hook.ts'
import { FastifyLimits, LIMITS } from './fastify-routes.ts'

export type { FastifyLimitHook, FastifyLimitOptions } from './fastify-hook.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * The decision; with several limiters, the one with the fewest remaining units. Undefined if no limiter decided.
     */
    rateLimit: DecisionLike | undefined
  }
  interface FastifyContextConfig {
    /** Limits of this route in place of those of the plugin. `false`: none. */
    rateLimit?: FastifyLimitOptions | false
  }
  interface FastifyInstance {
    /** A hook with an additional limit. Without options: the limit of the plugin. */
    rateLimit(options?: FastifyLimitOptions): FastifyLimitHook
  }
}

/** Output of `printRoutes` for an app without routes. */
const NO_ROUTES = '(empty tree)'

const HOOKS = ['onRequest', 'preValidation', 'preHandler'] as const

const PLUGIN_FORMS: OptionForms = {
  hook: { expected: `one of ${HOOKS.join(', ')}`, accepts: (value) => HOOKS.some((known) => known === value) },
  global: FLAG,
}

/** Options of {@link rateLimit}. */
export interface FastifyRateLimitOptions extends FastifyLimitOptions {
  /**
   * Hook that decides requests. Use `preHandler` if `key` or `cost` need the body or the result of another hook.
   * Default: `onRequest`.
   */
  readonly hook?: (typeof HOOKS)[number]
  /** False limits only routes that opt in by `config` or `app.rateLimit()`. Default: true. */
  readonly global?: boolean
}

/**
 * Fastify plugin that limits requests:
 *
 * ```ts
 * await app.register(rateLimit, { limit: 100, window: '1m' })
 *
 * app.get('/search', { config: { rateLimit: { limit: 10, window: '1m' } } }, search)
 * app.get('/health', { config: { rateLimit: false } }, health)
 * app.post('/login', { preHandler: app.rateLimit({ name: 'login', limit: 5, window: '1m', key: byAccount }) }, login)
 * ```
 *
 * Applies to all routes of the instance it is registered on, to plugins registered later, and to unknown paths. On a
 * nested instance it applies there only, in addition to outer limits.
 *
 * `config.rateLimit` of a route replaces the limit of the plugin. Missing options are inherited, but limits only as a
 * whole: `limit` without `window` is an error. Such routes have their own counters unless they set `name`; a route that
 * changes only `cost` or `key` counts together with the plugin. `app.rateLimit(options)` adds a limit.
 * `app.rateLimit()` is the limit of the plugin, which counts a request once.
 *
 * The decision is in `request.rateLimit`. Exceptions of options go to the error handler of the app. The client address
 * is determined by the `trustProxy` option, not by that of Fastify. The plugin frees its resources when the app closes.
 */
export const rateLimit: FastifyPluginCallback<FastifyRateLimitOptions> = Object.assign(register, {
  // What fastify-plugin would set: hooks and decorators reach the instance that registers it.
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'sluice',
  [Symbol.for('plugin-meta')]: { name: 'sluice', fastify: '>=4.23.0' },
})

function register(app: FastifyInstance, options: FastifyRateLimitOptions, done: (error?: Error) => void): void {
  checkRegistered(app)
  try {
    addLimits(app, options)
  } catch (error) {
    done(error as Error)
    return
  }
  done()
}

function addLimits(app: FastifyInstance, all: FastifyRateLimitOptions): void {
  checkShape(all, 'fastify')
  checkForms(all, PLUGIN_FORMS)
  const { hook = 'onRequest', global = true, ...options } = all
  const limits = new FastifyLimits(options, { isGlobal: global, isFirst: app.printRoutes() === NO_ROUTES })
  app.decorateRequest(limits.decided, false)
  // Requests have it from the start: one that is added to each later costs more than all that is kept in it.
  if (!app.hasRequestDecorator(ANNOUNCED)) app.decorateRequest(ANNOUNCED, undefined)
  if (!app.hasRequestDecorator('rateLimit')) app.decorateRequest('rateLimit', undefined)
  if (!Object.hasOwn(app, 'rateLimit')) app.decorate('rateLimit', (given?: FastifyLimitOptions) => limits.hookBy(given))
  if (!Object.hasOwn(app, LIMITS)) app.decorate(LIMITS, limits)
  app.addHook('onRoute', function declare(route) {
    route.config = limits.declare(route, this)
  })
  app.addHook('onReady', (ready) => {
    limits.ready()
    ready()
  })
  app.addHook('onClose', () => limits.close())
  app.addHook(hook, limits.appHook())
}

/** Catches users who call the plugin, or use it as a hook, as in other frameworks. */
function checkRegistered(app: unknown): void {
  const form = detectFramework(app)
  if (typeof (app as Partial<FastifyInstance> | undefined)?.decorateRequest === 'function') return
  const isForeign = form !== undefined && form.framework !== 'fastify'
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: `the limiter for fastify is a plugin, and was called${isForeign ? ` with ${form.what}` : ''}`,
    expected: 'it to be registered',
    action: isForeign
      ? importHint(form.framework)
      : 'Write: await app.register(rateLimit, { limit: 100, window: "1m" }). For another framework, import ' +
        'rateLimit from its entry, such as "sluice/express".',
  })
}
