import type { Cidr } from '@sluice/core/internal'
import type { RoutedRequest } from '../routing/route-table.ts'
import type { GatewayOptionsConfig, UpstreamConfig } from './gateway-config.ts'

export type { RoutedRequest }

/** Timeouts in milliseconds; `totalMs` is `Infinity` without a limit. */
export interface Timeouts {
  readonly connectMs: number
  readonly headersMs: number
  readonly idleMs: number
  readonly totalMs: number
}

/** How much a client may send over one WebSocket. */
export interface MessageRates {
  /** `Infinity`: no limit. */
  readonly messagesPerSecond: number
  readonly bytesPerSecond: number
  /** How many seconds' worth may come at once. */
  readonly burstSeconds: number
}

/** A route that was checked. Immutable: a request keeps the one that it started with. */
export interface Route {
  readonly name: string
  /** Key of `CompiledConfig.upstreams`. */
  readonly upstream: string
  /** Target that is sent to the upstream, with its query. `path` is the request target in origin form. */
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
    | {
        /** Rates of one connection; undefined without any. */
        readonly rates: MessageRates | undefined
        /** Resources whose rules count messages and bytes of a caller; undefined without one. */
        readonly messageResource: string | undefined
        readonly byteResource: string | undefined
      }
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

/** Finds the route of a request. */
export interface Router {
  /** Undefined if there is none, or if the path is ambiguous. */
  find(request: RoutedRequest): Route | undefined
  /** Whether a request without a route has an ambiguous path: answered with 400 rather than 404. */
  isAmbiguous(request: RoutedRequest): boolean
  readonly routes: readonly Route[]
}

/** An upstream as it was written, and what else decides whether it is the same in another configuration. */
export interface CompiledUpstream extends UpstreamConfig {
  /** Longest wait for a connection to an instance. Default: 2 s. */
  readonly connectMs?: number
  /** Change when one of its files does. */
  readonly fileStamps?: readonly string[]
}

/** A checked configuration. Immutable. */
export interface CompiledConfig {
  /** As it was written; paths of files are absolute. */
  readonly options: GatewayOptionsConfig
  readonly router: Router
  /** Paths of files are absolute. */
  readonly upstreams: ReadonlyMap<string, CompiledUpstream>
  /** Files that were read with the configuration or are read with its upstreams; compile again when one changes. */
  readonly files: readonly string[]
  readonly trustedProxies: readonly string[]
  readonly proxyProtocolFrom: readonly Cidr[]
  readonly accessLog: 'off' | 'json' | 'combined'
  readonly healthPaths: ReadonlySet<string>
}
