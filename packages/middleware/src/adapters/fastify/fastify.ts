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
    /** The decision: of several limiters, that with the least remaining; undefined when none was asked. */
    rateLimit: DecisionLike | undefined
  }
  interface FastifyContextConfig {
    /** The limits of this route, in place of those of the plugin; `false` for none. */
    rateLimit?: FastifyLimitOptions | false
  }
  interface FastifyInstance {
    /** A hook that limits besides what the plugin does; without options, that of the plugin. */
    rateLimit(options?: FastifyLimitOptions): FastifyLimitHook
  }
}

/** What Fastify prints of an app without routes. */
const NO_ROUTES = '(empty tree)'

const HOOKS = ['onRequest', 'preValidation', 'preHandler'] as const

const PLUGIN_FORMS: OptionForms = {
  hook: { expected: `one of ${HOOKS.join(', ')}`, accepts: (value) => HOOKS.some((known) => known === value) },
  global: FLAG,
}

/** How requests to a Fastify app are limited. */
export interface FastifyRateLimitOptions extends FastifyLimitOptions {
  /**
   * When requests are decided: `onRequest` when left out, before anything is read. `preHandler` where `key` or `cost` need the
   * body, or what another hook finds out.
   */
  readonly hook?: (typeof HOOKS)[number]
  /** False limits only routes that ask for it, by their `config` or by `app.rateLimit()`; true when left out. */
  readonly global?: boolean
}

/**
 * A plugin that limits requests:
 *
 * ```ts
 * await app.register(rateLimit, { limit: 100, window: '1m' })
 *
 * app.get('/search', { config: { rateLimit: { limit: 10, window: '1m' } } }, search)
 * app.get('/health', { config: { rateLimit: false } }, health)
 * app.post('/login', { preHandler: app.rateLimit({ name: 'login', limit: 5, window: '1m', key: byAccount }) }, login)
 * ```
 *
 * It holds for all routes of the instance it is registered on and of plugins registered there later, and for paths that are not
 * found. Registered on an instance inside another's plugin, it holds there only, besides the limits outside.
 *
 * A route's `config.rateLimit` takes the place of the plugin's limit. What it does not say is as in the plugin, except that it
 * brings a limit as a whole: `limit` without `window` is an error. Each such route has counters of its own, unless `name` says
 * otherwise; a route that changes no limit, but `cost` or `key`, counts together with the plugin. `app.rateLimit(options)`
 * instead adds a limit to that of the plugin. `app.rateLimit()` is the plugin's own, which counts a request once however often
 * the request meets it.
 *
 * Handlers find the decision in `request.rateLimit`. What an option throws goes to the error handler of the app. The client
 * address is found by `trustProxy` of these options, not by Fastify's own. The plugin frees what it made when the app closes.
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

/** Whoever comes from another framework calls it, or makes a hook of it. */
function checkRegistered(app: unknown): void {
  const form = detectFramework(app)
  if (typeof (app as Partial<FastifyInstance> | undefined)?.decorateRequest === 'function') return
  const isForeign = form !== undefined && form.framework !== 'fastify'
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: `the limiter for fastify is a plugin, and was called${isForeign ? ` with ${form.what}` : ''}`,
    expected: 'it to be registered',
    action: isForeign
      ? importHint(form.framework)
      : 'Write: await app.register(rateLimit, { limit: 100, window: "1m" }). For another framework, import rateLimit from its entry, such as "sluice/express".',
  })
}
