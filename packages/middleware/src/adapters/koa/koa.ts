import { systemTimers } from '@sluice/core'
import type { Context, Middleware, Next } from 'koa'
import type { Denial } from '../../http/denial-response.ts'
import type { HttpRequest } from '../../http/http-request.ts'
import type { MaybePromise } from '../../http/maybe-promise.ts'
import { andThen } from '../../http/maybe-promise.ts'
import type { Admission, HttpOutcome } from '../../http/request-outcome.ts'
import { narrowestDecision } from '../../http/request-outcome.ts'
import { createHttpLimiter } from '../../limiter/http-limiter.ts'
import { throwWrongFramework } from '../../options/framework-detection.ts'
import type { RateLimitOptions } from '../../options/rate-limit-options.ts'
import { nodeBatcher } from '../node/node-batcher.ts'
import { admitRequest } from '../node/node-response.ts'

/** Options of {@link rateLimit}. */
export interface KoaRateLimitOptions extends RateLimitOptions<Context> {
  /**
   * Answers in place of the default denial. Receives its status, headers and body. Rate limit headers and status are
   * already set.
   */
  readonly onLimited?: (context: Context, denial: Denial) => MaybePromise<unknown>
}

/** Rate limiting middleware. */
export interface KoaRateLimit extends Middleware {
  /** Frees what the limiter created, which is the default store. */
  close(): Promise<void>
}

/**
 * Limits requests, in Koa 2 and 3:
 *
 * ```ts
 * app.use(rateLimit({ limit: 100, window: '1m' }))
 * ```
 *
 * The decision is in `ctx.state.rateLimit`. With several limiters: the one with the fewest remaining units. Undefined
 * if no limiter decided. Exceptions of options go to outer middleware and to the `error` event of the app. Koa drops
 * all headers of an error response, so rate limit headers travel in the `headers` of the error.
 *
 * The client address is determined by the `trustProxy` option. `app.proxy` of Koa trusts every sender and is not used.
 */
export function rateLimit(options: KoaRateLimitOptions): KoaRateLimit {
  const limiter = createHttpLimiter<Context>(options, {
    name: 'koa',
    request: (context) => new KoaHttpRequest(context),
    batcher: nodeBatcher,
  })
  const { onLimited, timers = systemTimers } = options
  const settle = (context: Context, outcome: HttpOutcome, next: Next): MaybePromise<unknown> => {
    context.state['rateLimit'] = narrowestDecision(context.state['rateLimit'], outcome.decision)
    for (const name of Object.keys(outcome.headers)) context.res.setHeader(name, outcome.headers[name]!)
    if (!outcome.allowed) return deny(context, outcome, onLimited)
    return andThen(admitRequest(context.res, outcome, timers), (isHere) =>
      isHere ? proceed(context, outcome, next) : undefined,
    )
  }
  const middleware: Middleware = (context, next) => {
    if (context.req?.socket === undefined) return throwWrongFramework('koa', context)
    return limiter.begin(context, (outcome) => settle(context, outcome, next))
  }
  return Object.assign(middleware, { close: () => limiter.close() })
}

function proceed(context: Context, { headers }: Admission, next: Next): Promise<unknown> {
  return next().catch((error: unknown) => {
    keepHeaders(error, context, Object.keys(headers))
    throw error
  })
}

/** Koa drops the headers of the response when it handles an error, but keeps those of the error. */
function keepHeaders(error: unknown, { res }: Context, names: readonly string[]): void {
  if (!(error instanceof Error) || !Object.isExtensible(error)) return
  const kept: Record<string, unknown> = {}
  for (const name of names) kept[name] = res.getHeader(name)
  const own = 'headers' in error && typeof error.headers === 'object' ? error.headers : undefined
  Object.assign(error, { headers: { ...own, ...kept } })
}

function deny(context: Context, denial: Denial, onLimited: KoaRateLimitOptions['onLimited']): MaybePromise<unknown> {
  context.status = denial.status
  if (onLimited === undefined) {
    context.body = denial.body
    return undefined
  }
  // It tells about the usual body, and Koa would not choose another.
  context.remove('Content-Type')
  return onLimited(context, denial)
}

class KoaHttpRequest implements HttpRequest {
  readonly #context: Context

  constructor(context: Context) {
    this.#context = context
  }

  get method(): string {
    return this.#context.method
  }

  get url(): string {
    return this.#context.originalUrl
  }

  /** Route of `@koa/router`, once matched. */
  get route(): string | undefined {
    const { _matchedRoute: route } = this.#context
    return typeof route === 'string' ? route : undefined
  }

  /** Not `ctx.ip`, which may come from a header. */
  get peerAddress(): string | undefined {
    return this.#context.req.socket.remoteAddress
  }

  header(name: string): string | readonly string[] | undefined {
    return this.#context.req.headers[name]
  }
}
