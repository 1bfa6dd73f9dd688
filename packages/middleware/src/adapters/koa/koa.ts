import { systemTimers } from '@sluice/core'
import type { Context, Middleware, Next } from 'koa'
import type { Denial } from '../../http/denial.ts'
import type { HttpRequest } from '../../http/http-request.ts'
import type { MaybePromise } from '../../http/maybe-promise.ts'
import { andThen } from '../../http/maybe-promise.ts'
import type { Admission, HttpOutcome } from '../../http/outcome.ts'
import { narrowestDecision } from '../../http/outcome.ts'
import { createHttpLimiter } from '../../limiter/http-limiter.ts'
import { throwWrongFramework } from '../../options/framework-detection.ts'
import type { RateLimitOptions } from '../../options/rate-limit-options.ts'
import { nodeBatcher } from '../node/node-batcher.ts'
import { admitRequest } from '../node/node-response.ts'

/** How requests to a Koa app are limited. */
export interface KoaRateLimitOptions extends RateLimitOptions<Context> {
  /**
   * Answers in place of the usual denial, whose status, headers and body it is given. The headers that announce the limit are
   * set already, and so is the status.
   */
  readonly onLimited?: (context: Context, denial: Denial) => MaybePromise<unknown>
}

/** Middleware that limits requests. */
export interface KoaRateLimit extends Middleware {
  /** Frees what the limiter made itself, which is the store when none was given. */
  close(): Promise<void>
}

/**
 * Limits the requests that pass it, in Koa 2 and 3:
 *
 * ```ts
 * app.use(rateLimit({ limit: 100, window: '1m' }))
 * ```
 *
 * Later middleware finds the decision in `ctx.state.rateLimit`: of several limiters, that with the least remaining; undefined
 * when none was asked. What an option throws goes to the middleware before it and to the app's `error` event, as any error does.
 * Koa drops all headers from the answer to an error: those of the limit travel in the `headers` of the error, which Koa sets.
 *
 * The client address is found by `trustProxy` of these options. Koa's own `app.proxy` believes whoever sends a header, and is not
 * used.
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

/** Those of the answer are dropped when an error is answered, those of the error are not. */
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

  /** That of `@koa/router`, once it has chosen one. */
  get route(): string | undefined {
    const { _matchedRoute: route } = this.#context
    return typeof route === 'string' ? route : undefined
  }

  /** Not `ctx.ip`, which may be what a header says. */
  get peerAddress(): string | undefined {
    return this.#context.req.socket.remoteAddress
  }

  header(name: string): string | readonly string[] | undefined {
    return this.#context.req.headers[name]
  }
}
