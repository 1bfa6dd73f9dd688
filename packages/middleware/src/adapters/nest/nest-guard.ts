import type { CanActivate, ExecutionContext } from '@nestjs/common'
import { HttpException, Inject, Injectable, Optional } from '@nestjs/common'
import type { DecisionLike } from '@sluice/contract'
import { SluiceError, systemTimers } from '@sluice/core'
import type { Denial } from '../../http/denial-response.ts'
import type { MaybePromise } from '../../http/maybe-promise.ts'
import { andThen } from '../../http/maybe-promise.ts'
import type { HttpOutcome } from '../../http/request-outcome.ts'
import { narrowestDecision } from '../../http/request-outcome.ts'
import { admitRequest } from '../node/node-response.ts'
import type { NestExchange } from './nest-exchange.ts'
import { nodeResponse, setTypeWith } from './nest-exchange.ts'
import type { RouteLimit } from './nest-route-limits.ts'
import { RouteLimits } from './nest-route-limits.ts'

/**
 * A denied request. Exception filters can handle it: `getStatus()` is the status of the denial, `getResponse()` its
 * problem document (RFC 9457). Rate limit headers are already set.
 */
export class RateLimitException extends HttpException {
  readonly decision: DecisionLike

  constructor({ body, status, decision }: Denial) {
    super(JSON.parse(body) as Record<string, unknown>, status)
    this.decision = decision
  }
}

/**
 * Allows requests within their limits and throws a {@link RateLimitException} for others. {@link RateLimitModule}
 * applies it to all routes; with `routes: 'chosen'`, apply it with `@UseGuards(RateLimitGuard)`.
 *
 * The decision is in `request.rateLimit`. Undefined if no limiter decided.
 */
export class RateLimitGuard implements CanActivate {
  // Decorators, called: their syntax would have to be compiled.
  static {
    Injectable()(RateLimitGuard)
  }
  static {
    Inject(RouteLimits)(RateLimitGuard, undefined, 0)
  }
  static {
    // So that the error below reports what is missing and what to do.
    Optional()(RateLimitGuard, undefined, 0)
  }

  readonly #limits: RouteLimits

  constructor(limits: RouteLimits | undefined) {
    if (limits === undefined) {
      throw new SluiceError('SLUICE_INVALID_OPTION', {
        problem: 'RateLimitGuard has no limits, because RateLimitModule is not there',
        expected: 'RateLimitModule among the imports of the root module',
        action: 'Add RateLimitModule.forRoot({ limit: 100, window: "1m" }) to them.',
      })
    }
    this.#limits = limits
  }

  canActivate(context: ExecutionContext): MaybePromise<boolean> {
    const limit = this.#limits.of(context.getHandler(), context.getClass())
    const exchange = limit && this.#limits.exchangeOf(context)
    if (limit === undefined || exchange === undefined) return true
    return limit.limiter.begin(context, (outcome) => settle({ context, exchange, limit }, outcome))
  }
}

interface GuardedCall {
  readonly context: ExecutionContext
  readonly exchange: NestExchange
  readonly limit: RouteLimit
}

function settle(call: GuardedCall, outcome: HttpOutcome): MaybePromise<boolean> {
  const { request, response } = call.exchange
  request.rateLimit = narrowestDecision(request.rateLimit, outcome.decision)
  for (const name of Object.keys(outcome.headers)) {
    if (name !== 'Content-Type') response.header(name, outcome.headers[name]!)
  }
  if (!outcome.allowed) return deny(call, outcome)
  return admitRequest(nodeResponse(response), outcome, call.limit.options.timers ?? systemTimers)
}

function deny({ context, exchange, limit }: GuardedCall, denial: Denial): MaybePromise<boolean> {
  const { onLimited } = limit.options
  if (onLimited === undefined) {
    const exception = new RateLimitException(denial)
    setTypeWith(exchange.response, exception.getResponse(), denial.headers['Content-Type']!)
    throw exception
  }
  return andThen(onLimited(context, denial), (error) => {
    throw error
  })
}
