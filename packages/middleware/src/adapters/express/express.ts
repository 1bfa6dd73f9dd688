import type { DecisionLike } from '@sluice/contract'
import { systemTimers } from '@sluice/core'
import type { NextFunction, Request, Response } from 'express'
import type { Denial } from '../../http/denial.ts'
import type { HttpRequest } from '../../http/http-request.ts'
import type { MaybePromise } from '../../http/maybe-promise.ts'
import { isPromise } from '../../http/maybe-promise.ts'
import type { HttpOutcome } from '../../http/outcome.ts'
import { narrowestDecision } from '../../http/outcome.ts'
import { createHttpLimiter } from '../../limiter/http-limiter.ts'
import { wrongFrameworkError } from '../../options/framework-detection.ts'
import type { RateLimitOptions } from '../../options/rate-limit-options.ts'
import { nodeBatcher } from '../node/node-batcher.ts'
import { admitRequest } from '../node/node-response.ts'

/** How requests to an Express app are limited. */
export interface ExpressRateLimitOptions extends RateLimitOptions<Request> {
  /**
   * Answers in place of the usual denial, whose status, headers and body it is given. The headers that announce the limit are
   * set already, and so is the status. `next` lets the request through all the same. What it throws goes to the app's error
   * handler.
   */
  readonly onLimited?: (
    request: Request,
    response: Response,
    next: NextFunction,
    denial: Denial,
  ) => MaybePromise<unknown>
}

/** Middleware that limits requests: for an app, a router or a route. */
export interface ExpressRateLimit {
  (request: Request, response: Response, next: NextFunction): void
  /** Frees what the limiter made itself, which is the store when none was given. */
  close(): Promise<void>
}

/** A request that a limiter has seen. */
interface LimitedRequest extends Request {
  rateLimit?: DecisionLike | undefined
}

/**
 * Limits the requests that pass it, in Express 4 and 5:
 *
 * ```ts
 * app.use(rateLimit({ limit: 100, window: '1m' }))
 * ```
 *
 * Handlers find the decision by {@link rateLimitOf}. What an option throws goes to the app's error handler, as any error does.
 *
 * The client address is found by `trustProxy` of these options. That of Express, the setting `trust proxy`, is not used.
 */
export function rateLimit(options: ExpressRateLimitOptions): ExpressRateLimit {
  const limiter = createHttpLimiter<Request>(options, {
    name: 'express',
    request: httpRequest,
    batcher: nodeBatcher,
  })
  const { onLimited, timers = systemTimers } = options

  const settle = (request: LimitedRequest, outcome: HttpOutcome, next: NextFunction): void => {
    const response = request.res!
    request.rateLimit = narrowestDecision(request.rateLimit, outcome.decision)
    if (!response.headersSent) {
      for (const name in outcome.headers) response.setHeader(name, outcome.headers[name]!)
    }
    if (outcome.allowed) {
      const turn = admitRequest(response, outcome, timers)
      if (turn === true) next()
      else if (turn !== false) turn.then((isHere) => isHere && next(), next)
    } else if (!response.headersSent) deny(request, outcome, next)
  }

  const deny = (request: Request, denial: Denial, next: NextFunction): void => {
    const response = request.res!
    response.statusCode = denial.status
    if (onLimited === undefined) {
      response.end(denial.body)
      return
    }
    // It tells about the usual body, and Express would not choose another.
    response.removeHeader('Content-Type')
    const answered = onLimited(request, response, next, denial)
    if (isPromise(answered)) answered.catch(next)
  }

  // What is thrown at once, Express catches.
  const middleware = (request: Request, _response: Response, next: NextFunction): void => {
    // In this order: contexts of other frameworks make an answer when they are asked for one.
    if (typeof next !== 'function') throw wrongFrameworkError('express', request)
    if (request.res === undefined) {
      next(wrongFrameworkError('express', request))
      return
    }
    const settled = limiter.begin(request, (outcome) => settle(request, outcome, next))
    if (isPromise(settled)) settled.catch(next)
  }
  return Object.assign(middleware, { close: () => limiter.close() })
}

/**
 * The decision on a request, which handlers also find as `request.rateLimit`: of several limiters, that with the least
 * remaining. Undefined when none was asked.
 */
export function rateLimitOf(request: Request): DecisionLike | undefined {
  return (request as LimitedRequest).rateLimit
}

function httpRequest(request: Request): HttpRequest {
  return new ExpressHttpRequest(request)
}

class ExpressHttpRequest implements HttpRequest {
  readonly #request: Request

  constructor(request: Request) {
    this.#request = request
  }

  get method(): string {
    return this.#request.method
  }

  get url(): string {
    return this.#request.originalUrl
  }

  get route(): string | undefined {
    const { route, baseUrl } = this.#request
    return typeof route?.path === 'string' ? `${baseUrl}${route.path}` : undefined
  }

  get peerAddress(): string | undefined {
    return this.#request.socket.remoteAddress
  }

  header(name: string): string | readonly string[] | undefined {
    return this.#request.headers[name]
  }
}
