import type { Cidr } from '@sluice/core/internal'
import type { UpstreamConfig } from './gateway-config.ts'

/** Timeouts in milliseconds; `totalMs` is `Infinity` without a limit. */
export interface Timeouts {
  readonly connectMs: number
  readonly headersMs: number
  readonly idleMs: number
  readonly totalMs: number
}

/** A route that was checked. Immutable: a request keeps the one that it started with. */
export interface Route {
  readonly name: string
  /** Key of `CompiledConfig.upstreams`. */
  readonly upstream: string
  /** Path that is sent to the upstream, with its query. `path` is the request target in origin form. */
  readonly targetOf: (path: string) => string
  /** `Host` that is sent to the upstream. Undefined: that of the request. */
  readonly host: string | undefined
  /** Resource that limits count. Undefined: the path of the request. */
  readonly resource: string | undefined
  readonly auth: 'required' | 'optional' | 'none'
  readonly isLimited: boolean
  /** Whether a response of this status gives its charge back. Status 0: no response. */
  readonly refunds: ((status: number) => boolean) | undefined
  readonly blockAfter:
    | {
        readonly responses: number
        readonly withinMs: number
        readonly blockForMs: number
        readonly statuses: ReadonlySet<number>
      }
    | undefined
  readonly denial:
    | { readonly status: number; readonly contentType: string | undefined; readonly body: string | undefined }
    | undefined
  readonly webSocket:
    | { readonly messagesPerSecond: number; readonly bytesPerSecond: number; readonly burstSeconds: number }
    | undefined
  readonly timeouts: Timeouts
  readonly maxBodyBytes: number
  readonly retries: {
    readonly attempts: number
    readonly statuses: ReadonlySet<number>
    readonly budget: number
  }
  /** 0 to 3; 0 is the most important. */
  readonly priority: number
}

/** What a router needs to know of a request. */
export interface RoutedRequest {
  readonly method: string
  /** In lower case, without port. Undefined if the request has none. */
  readonly host: string | undefined
  /** Request target in origin form, with its query. */
  readonly path: string
  /** Header by its lower-case name. */
  header(name: string): string | undefined
}

/** Finds the route of a request. */
export interface Router {
  find(request: RoutedRequest): Route | undefined
  readonly routes: readonly Route[]
}

/** A checked configuration. Immutable. */
export interface CompiledConfig {
  readonly router: Router
  readonly upstreams: ReadonlyMap<string, UpstreamConfig>
  readonly trustedProxies: readonly string[]
  readonly proxyProtocolFrom: readonly Cidr[]
  readonly accessLog: 'off' | 'json' | 'combined'
  readonly healthPaths: ReadonlySet<string>
}
