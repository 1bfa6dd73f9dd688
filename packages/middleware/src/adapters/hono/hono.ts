import type { DecisionLike } from '@sluice/contract'
import { systemTimers } from '@sluice/core'
import { checkForms } from '@sluice/core/options'
import type { Context, Env, MiddlewareHandler, Next } from 'hono'
import type { StatusCode } from 'hono/utils/http-status'
import type { Denial } from '../../http/denial-response.ts'
import type { HttpRequest } from '../../http/http-request.ts'
import type { MaybePromise } from '../../http/maybe-promise.ts'
import { isPromise } from '../../http/maybe-promise.ts'
import { narrowestDecision } from '../../http/request-outcome.ts'
import { createHttpLimiter } from '../../limiter/http-limiter.ts'
import { throwWrongFramework } from '../../options/framework-detection.ts'
import type { RateLimitOptions } from '../../options/rate-limit-options.ts'
import { rememberHeaders, withRememberedHeaders } from '../fetch/fetch-headers.ts'
import { checkResponse, clientDisconnected, waitForDelay, watchResponse } from '../fetch/fetch-response.ts'
import { ADDRESS_FORM, pathOf, peerAddressFrom } from '../fetch/fetch-server.ts'

declare module 'hono' {
  interface ContextVariableMap {
    /**
     * The decision; with several limiters, the one with the fewest remaining units. Undefined if no limiter decided.
     */
    rateLimit: DecisionLike | undefined
  }
}

/** Options of {@link rateLimit}. */
export interface HonoRateLimitOptions<E extends Env> extends RateLimitOptions<Context<E>> {
  /**
   * Remote address of the connection. Detected for @hono/node-server, Bun.serve and Deno.serve if they pass their
   * arguments to `app.fetch`. On other runtimes, use their helper:
   *
   * ```ts
   * import { getConnInfo } from 'hono/cloudflare-workers'
   *
   * app.use(rateLimit({ limit: 100, window: '1m', address: (c) => getConnInfo(c).remote.address }))
   * ```
   */
  readonly address?: (c: Context<E>) => string | undefined
  /**
   * Answers in place of the default denial. Receives its status, headers and body. Rate limit headers are added to the
   * response unless it sets them.
   */
  readonly onLimited?: (c: Context<E>, denial: Denial) => MaybePromise<Response>
}

/** Rate limiting middleware. */
export interface HonoRateLimit<E extends Env> extends MiddlewareHandler<E> {
  /** Frees what the limiter created, which is the default store. */
  close(): Promise<void>
}

/**
 * Limits requests:
 *
 * ```ts
 * app.use(rateLimit({ limit: 100, window: '1m' }))
 * ```
 *
 * The decision is in `c.get('rateLimit')`. A request is complete when its response body was read or the client
 * disconnected. Until then it holds its `concurrency` slot; then its charge is settled. Except on Node, a response that
 * other middleware discards unread never completes: put the limiter before such middleware.
 */
export function rateLimit<E extends Env>(options: HonoRateLimitOptions<E>): HonoRateLimit<E> {
  const limiter = createHttpLimiter<Context<E>>(options, {
    name: 'hono',
    ownOptions: ['address'],
    request: (c) => new HonoHttpRequest(c, address),
  })
  checkForms(options, ADDRESS_FORM)
  const { address = addressOf, onLimited = deny, timers = systemTimers } = options
  const limit = async (c: Context<E>, next: Next): Promise<Response | undefined> => {
    const begun = limiter.begin(c)
    const outcome = isPromise(begun) ? await begun : begun
    rememberHeaders(c, outcome)
    tell(c, outcome.decision)
    if (!outcome.allowed) return withRememberedHeaders(c, checkResponse(await onLimited(c, outcome), '"onLimited"'))
    const { delayMs, finish } = outcome
    const watch = finish && watchResponse(c.req.raw, c.env, finish)
    if (delayMs > 0 && !(await waitForDelay(c.req.raw, delayMs, timers))) return clientDisconnected()
    try {
      await next()
    } catch (error) {
      watch?.failed()
      throw error
    }
    replaceResponse(c, withRememberedHeaders(c, c.res))
    if (watch !== undefined) replaceResponse(c, watch.answered(c.res))
    return undefined
  }
  // Thrown, and not by promise: not every framework that it may be put into by mistake would see that.
  const middleware: MiddlewareHandler<E> = (c, next) => {
    if (typeof c.req?.header !== 'function') return throwWrongFramework('hono', c)
    return limit(c, next)
  }
  return Object.assign(middleware, { close: () => limiter.close() })
}

/** A class, because every object literal with a getter has its own hidden class, which is slow. */
class HonoHttpRequest<E extends Env> implements HttpRequest {
  readonly method: string
  readonly #c: Context<E>
  readonly #address: (c: Context<E>) => string | undefined

  constructor(c: Context<E>, address: (c: Context<E>) => string | undefined) {
    this.method = c.req.method
    this.#c = c
    this.#address = address
  }

  get url(): string {
    return pathOf(this.#c.req.url)
  }

  get route(): string | undefined {
    return routeOf(this.#c)
  }

  get peerAddress(): string | undefined {
    return this.#address(this.#c)
  }

  header(name: string): string | undefined {
    return this.#c.req.header(name)
  }
}

function addressOf(c: Context): string | undefined {
  return peerAddressFrom(c.env, c.req.raw)
}

/** Pattern of the handler: the first match that does not take `next`, or the last one for a single method. */
function routeOf(c: Context): string | undefined {
  const routes = c.req.matchedRoutes
  const route =
    routes.find(({ handler }) => isFinal(handler as unknown as Handler)) ??
    routes.findLast(({ method }) => method !== 'ALL')
  return route?.path
}

/** A handler of Hono. Those of nested apps are wrapped, and the wrapper has the original as a property. */
interface Handler {
  readonly length: number
  readonly __COMPOSED_HANDLER?: Handler
  /** The property of the first versions of Hono 4. */
  readonly [composed: symbol]: Handler | undefined
}

function isFinal(handler: Handler): boolean {
  if (handler.length < 2) return true
  const symbol = Object.getOwnPropertySymbols(handler).find(({ description }) => description === 'composedHandler')
  const original = symbol === undefined ? handler.__COMPOSED_HANDLER : handler[symbol]
  return original !== undefined && isFinal(original)
}

function deny<E extends Env>(c: Context<E>, { status, headers, body }: Denial): Response {
  // Not of its own making, so that what other middleware has set goes with it.
  return c.newResponse(body, { status: status as StatusCode, headers: { ...headers } })
}

function tell(c: Context, decision: DecisionLike | undefined): void {
  c.set('rateLimit', narrowestDecision(c.get('rateLimit'), decision))
}

/** Replaces the response without merging headers, which Hono does otherwise. */
function replaceResponse(c: Context, response: Response): void {
  if (response === c.res) return
  c.res = undefined
  c.res = response
}
