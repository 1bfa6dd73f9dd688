import type { HeaderProfile } from '@sluice/contract'
import type { Clock, Random, Timers } from '@sluice/core'
import type { Offence, PolicyEngine, PolicyRequest } from '@sluice/core/policy'
import {
  createHttpLimiter,
  type HttpLimiter,
  type HttpOutcome,
  type HttpRequest,
  type MaybePromise,
  type MisuseListener,
} from '@sluice/middleware'
import type { Route } from '../config/compiled-config.ts'
import type { Caller } from '../identity/caller.ts'
import { normalTarget, pathOf } from '../routing/path.ts'
import { DenialPage } from './denial-page.ts'

/**
 * Status for `finish` of a request that no upstream has seen, because none could take it: its charge is given back,
 * whatever its route says. A client that leaves is status 0, and pays: else leaving early would be free.
 */
export const NOT_SENT = -1

/** What limits are made of. `Context` is a request on its way through the gateway. */
export interface RequestLimitsOptions<Context> {
  readonly engine: PolicyEngine
  /** The route that was found for a request. */
  readonly routeOf: (context: Context) => Route
  /** Who was found to send it. */
  readonly callerOf: (context: Context) => Caller
  /** Which headers announce limits. Default: `legacy`. */
  readonly headers?: HeaderProfile | undefined
  /** Maximum random share added to `Retry-After`. Default: 0. */
  readonly jitter?: number | undefined
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  /** Called with what failed after a response: a charge stays as it is then. */
  readonly onError: (error: unknown) => void
  /** Called with likely mistakes in the use of limits. */
  readonly warn: MisuseListener
}

/** What follows from a route for its limits. */
interface RouteLimits {
  readonly page: DenialPage | undefined
  readonly offence: Offence | undefined
}

/**
 * Creates the limits of the gateway: those of the middleware, by the rules of the engine, with what routes say about
 * resource, charge, denial and blocks. Decides synchronously on a local store.
 *
 * A charge is taken when a request is admitted and given back by the status of its response. Slots of concurrency rules
 * are renewed until `finish` is called, and free afterwards: call it when the response has ended or the client is gone.
 */
export function createRequestLimits<Context extends HttpRequest & object>(
  options: RequestLimitsOptions<Context>,
): HttpLimiter<Context> {
  return new RequestLimits(options)
}

class RequestLimits<Context extends HttpRequest & object> implements HttpLimiter<Context> {
  readonly #options: RequestLimitsOptions<Context>
  readonly #limiter: HttpLimiter<Context>
  /** Routes of a configuration that is gone are forgotten with it. */
  readonly #routes = new WeakMap<Route, RouteLimits>()

  constructor(options: RequestLimitsOptions<Context>) {
    const { engine, routeOf, clock, timers, random, onError, warn, headers = 'legacy', jitter = 0 } = options
    this.#options = options
    this.#limiter = createHttpLimiter<Context>(
      {
        engine,
        identify: (context) => this.#requestOf(context),
        refund: (status, context) => status === NOT_SENT || routeOf(context).refunds?.(status) === true,
        headers,
        jitter,
        onError,
        warn,
        clock,
        timers,
        random,
      },
      { name: 'gateway', request: (context) => context },
    )
  }

  begin(context: Context): MaybePromise<HttpOutcome>
  begin<R>(context: Context, settle: (outcome: HttpOutcome) => MaybePromise<R>): MaybePromise<R>
  begin(context: Context, settle: (outcome: HttpOutcome) => unknown = asItIs): unknown {
    const limits = this.#limitsOf(this.#options.routeOf(context))
    if (limits.page === undefined && limits.offence === undefined) return this.#limiter.begin(context, settle)
    return this.#limiter.begin(context, (outcome) => settle(this.#adapted(outcome, context, limits)))
  }

  close(): Promise<void> {
    return this.#limiter.close()
  }

  /** What rules match and count by. The resource is the path as the router has read it. */
  #requestOf(context: Context): Partial<PolicyRequest> {
    const { routeOf, callerOf } = this.#options
    const { ip, user, apiKey, tenant, tier } = callerOf(context)
    const request: { -readonly [K in keyof PolicyRequest]?: PolicyRequest[K] } = {
      resource: routeOf(context).resource ?? pathOf(normalTarget(context.url)),
      method: context.method,
    }
    if (ip !== undefined) request.ip = ip
    if (user !== undefined) request.user = user
    if (apiKey !== undefined) request.apiKey = apiKey
    if (tenant !== undefined) request.tenant = tenant
    if (tier !== undefined) request.tier = tier
    return request
  }

  #limitsOf(route: Route): RouteLimits {
    let limits = this.#routes.get(route)
    if (limits === undefined) {
      limits = { page: route.denial && new DenialPage(route.denial), offence: offenceOf(route) }
      this.#routes.set(route, limits)
    }
    return limits
  }

  #adapted(outcome: HttpOutcome, context: Context, { page, offence }: RouteLimits): HttpOutcome {
    if (!outcome.allowed) return page === undefined ? outcome : page.apply(outcome)
    if (offence === undefined) return outcome
    const { finish } = outcome
    let isOver = false
    return {
      ...outcome,
      finish: (status) => {
        finish?.(status)
        if (isOver) return
        isOver = true
        const { routeOf, callerOf } = this.#options
        if (routeOf(context).blockAfter?.statuses.has(status) === true) this.#report(callerOf(context), offence)
      },
    }
  }

  /** Counts an offence of the caller, by the most precise identity that was verified. */
  #report({ user, apiKey, ip }: Caller, offence: Offence): void {
    const { engine, onError } = this.#options
    try {
      if (user !== undefined) engine.reportOffence('user', user, offence)
      else if (apiKey !== undefined) engine.reportOffence('apiKey', apiKey, offence)
      else if (ip !== undefined) engine.reportOffence('ip', ip, offence)
    } catch (error) {
      onError(error)
    }
  }
}

function offenceOf({ name, blockAfter }: Route): Offence | undefined {
  if (blockAfter === undefined) return undefined
  const { responses, withinMs, blockForMs, statuses } = blockAfter
  return {
    name: `gateway:${name}`,
    after: responses,
    within: withinMs,
    block: blockForMs,
    reason: `${responses} responses with status ${[...statuses].join(', ')} on the route "${name}"`,
  }
}

function asItIs(outcome: HttpOutcome): HttpOutcome {
  return outcome
}
