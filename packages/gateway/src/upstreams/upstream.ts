import type { Dispatcher } from 'undici'

/** What a balancer may choose by. */
export interface BalancedRequest {
  /** The value to hash; undefined without one, or when the upstream does not hash. */
  readonly hashKey: string | undefined
  /** 0 to 3; 0 is the most important. */
  readonly priority: number
}

/** An instance that was chosen for one attempt. Call `finish` exactly once. */
export interface Attempt {
  /** Unique in the upstream, for `tried` and logs: the URL, with the address if the name of the URL has several. */
  readonly instance: string
  /** `http://host:port` as configured: label of metrics. */
  readonly url: string
  readonly dispatcher: Dispatcher
  /** What the dispatcher speaks. */
  readonly protocol: 'http1' | 'http2'
  /** Host and port, for requests that bring no `Host`. */
  readonly authority: string
  /** Reports the outcome: to balancing, passive health, the breaker and the concurrency limit. */
  finish(outcome: AttemptOutcome): void
}

/** How an attempt ended. */
export type AttemptOutcome =
  | { readonly kind: 'response'; readonly status: number; readonly headersMs: number }
  /** The instance failed: no connection, or a response that broke off or did not come in time. */
  | { readonly kind: 'failure' }
  /** The client left or sent something wrong: nothing is known about the instance. */
  | { readonly kind: 'cancelled' }

/** Why no instance can take a request. */
export interface NoInstance {
  readonly reason: 'no-healthy-instance' | 'no-capacity'
  readonly retryAfterSeconds: number
}

/** The instances of one upstream. */
export interface Upstream {
  readonly name: string
  /** Whether at least one instance can take requests now. */
  readonly isAvailable: boolean
  /** What the hash of this upstream is made of: `user`, `ip`, `header:NAME`, `cookie:NAME`; undefined: no hashing. */
  readonly hashBy: string | undefined
  /** Chooses an instance. `tried`: instances that this request has failed on, chosen only if there is no other. */
  choose(request: BalancedRequest, tried?: ReadonlySet<string>): Attempt | NoInstance
  /** Takes one retry from the budget; false if it is used up. */
  takeRetry(share: number): boolean
  /** For `/readyz`, the admin API and metrics. */
  stats(): UpstreamStats
  /** Resolves when names are resolved and the first health checks are done, or failed. */
  start(): Promise<void>
  /** Stops checks; closes pools when their requests are done. */
  close(): Promise<void>
}

/** How an upstream stands. */
export interface UpstreamStats {
  readonly name: string
  readonly instances: readonly InstanceStats[]
  /** Names without any usable address, each with the reason. */
  readonly unresolved: readonly { readonly url: string; readonly problem: string }[]
  /** Retries allowed so far, and those that the budget did not allow. */
  readonly retries: { readonly taken: number; readonly denied: number }
  /** Requests that no instance could take. */
  readonly turnedAway: { readonly noHealthyInstance: number; readonly noCapacity: number }
}

/** How an instance stands. */
export interface InstanceStats {
  /** Unique in the upstream. */
  readonly instance: string
  /** As configured; the same for all addresses of one name. */
  readonly url: string
  readonly health: 'healthy' | 'unhealthy'
  readonly breaker: 'closed' | 'open' | 'half-open'
  readonly inFlight: number
  /** Less than configured during slow start. */
  readonly weight: number
  /** Undefined without a concurrency limit. */
  readonly concurrencyLimit: number | undefined
  /** Attempts so far. */
  readonly requests: number
  /** Those that failed. */
  readonly failures: number
}
