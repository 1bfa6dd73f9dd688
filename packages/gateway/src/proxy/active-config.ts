import type { CompiledConfig, Route } from '../config/compiled-config.ts'
import { TrustedPeers } from '../http/connection.ts'
import type { RequestHeaders } from '../http/request-headers.ts'
import type { Identifier } from '../identity/caller.ts'
import type { RouteMetrics } from '../observability/gateway-metrics.ts'
import type { Upstream } from '../upstreams/upstream.ts'

/** A route with what belongs to it while the gateway runs. */
export interface ActiveRoute {
  readonly route: Route
  readonly upstream: Upstream
  readonly metrics: RouteMetrics
}

/** What a configuration is used with. */
export interface ActiveParts {
  readonly upstreams: ReadonlyMap<string, Upstream>
  readonly identifier: Identifier
  /** Removes what `identifier` removes. */
  readonly requestHeaders: RequestHeaders
  readonly metricsOf: (route: Route) => RouteMetrics
}

/** A configuration in use. Requests hold it from their start to their end. */
export class ActiveConfig {
  readonly config: CompiledConfig
  readonly upstreams: ReadonlyMap<string, Upstream>
  readonly identifier: Identifier
  readonly requestHeaders: RequestHeaders
  readonly trust: TrustedPeers
  readonly #routes = new Map<Route, ActiveRoute>()
  #held = 0
  #whenFree: (() => void) | undefined
  #free: Promise<void> | undefined

  constructor(config: CompiledConfig, { upstreams, identifier, requestHeaders, metricsOf }: ActiveParts) {
    this.config = config
    this.upstreams = upstreams
    this.identifier = identifier
    this.requestHeaders = requestHeaders
    this.trust = new TrustedPeers(config.trustedProxies)
    for (const route of config.router.routes) {
      const upstream = upstreams.get(route.upstream)
      if (upstream === undefined) throw new Error(`route ${route.name} has no upstream ${route.upstream}`)
      this.#routes.set(route, { route, upstream, metrics: metricsOf(route) })
    }
  }

  active(route: Route): ActiveRoute {
    return this.#routes.get(route)!
  }

  hold(): void {
    this.#held++
  }

  release(): void {
    this.#held--
    if (this.#held === 0) this.#whenFree?.()
  }

  /** Resolves when no request holds it. Call it after the next configuration is in use. */
  free(): Promise<void> {
    this.#free ??= new Promise((resolve) => {
      if (this.#held === 0) resolve()
      else this.#whenFree = resolve
    })
    return this.#free
  }
}
