import type { DecisionLike } from '@sluice/contract'
import { systemTimers } from '@sluice/core'
import type { NextFunction, Request, Response } from 'express'
import type { Denial } from '../../http/denial-response.ts'
import type { HttpRequest } from '../../http/http-request.ts'
import type { MaybePromise } from '../../http/maybe-promise.ts'
import { isPromise } from '../../http/maybe-promise.ts'
import type { HttpOutcome } from '../../http/request-outcome.ts'
import { narrowestDecision } from '../../http/request-outcome.ts'
import { createHttpLimiter } from '../../limiter/http-limiter.ts'
import { wrongFrameworkError } from '../../options/framework-detection.ts'
import type { RateLimitOptions } from '../../options/rate-limit-options.ts'
import { nodeBatcher } from '../node/node-batcher.ts'
import { admitRequest } from '../node/node-response.ts'

/** Options of {@link rateLimit}. */
export interface ExpressRateLimitOptions extends RateLimitOptions<Request> {
  /**
   * Answers in place of the default denial. Receives its status, headers and body. Rate limit headers and status are
   * already set. `next` allows the request anyway. Exceptions go to the error handler of the app.
   */
  readonly onLimited?: (
    request: Request,
    response: Response,
    next: NextFunction,
    denial: Denial,
  ) => MaybePromise<unknown>
}

/** Rate limiting middleware for an app, a router or a route. */
export interface ExpressRateLimit {
  (request: Request, response: Response, next: NextFunction): void
  /** Frees what the limiter created, which is the default store. */
  close(): Promise<void>
}

/** A request with its decision. */
interface LimitedRequest extends Request {
  rateLimit?: DecisionLike | undefined
}

/**
 * Limits requests, in Express 4 and 5:
 *
 * ```ts
 * app.use(rateLimit({ limit: 100, window: '1m' }))
 * ```
 *
 * Read the decision with {@link rateLimitOf}. Exceptions of options go to the error handler of the app.
 *
 * The client address is determined by the `trustProxy` option. The Express setting `trust proxy` is not used.
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
    // In this order: contexts of other frameworks create a response when it is accessed.
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
 * The decision on a request, also available as `request.rateLimit`. With several limiters: the one with the fewest
 * remaining units. Undefined if no limiter decided.
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
