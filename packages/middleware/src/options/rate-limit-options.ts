import type { CheckAnswer, DecisionLike, HeaderProfile } from '@sluice/contract'
import type { Clock, Duration, FailureMode, Limiter, LimiterSet, Random, Rule, Store, Timers } from '@sluice/core'
import type { AlgorithmRule, CalendarWindow, Units, WindowSpec } from '@sluice/core/internal'
import type { PolicyEngine, PolicyRequest } from '@sluice/core/policy'
import type { HttpRequest } from '../http/http-request.ts'
import type { MaybePromise } from '../http/maybe-promise.ts'
import type { Ipv6Options } from '../identity/address-tiers.ts'
import type { TrustedProxies } from '../identity/client-address.ts'
import type { Identity, KeySource } from '../identity/identity.ts'
import type { CostSource } from '../identity/request-reader.ts'
import type { MisuseWarning } from '../misuse/misuse-warning.ts'

/**
 * The fields of a rule of any algorithm. The limiter checks their combination when it is created. See `Rule` of the
 * core for each field.
 */
export interface RuleFields {
  /** Default: `gcra`. */
  readonly algorithm?: NonNullable<AlgorithmRule['algorithm']>
  /** Units per window. 0 denies everything, `'off'` does not limit. */
  readonly limit?: Units
  /** Duration such as `'1m'` or `'250ms'`, or milliseconds. */
  readonly window?: Duration | CalendarWindow
  /** Several windows, decided together. Replaces `limit` and `window`. */
  readonly windows?: readonly WindowSpec<Duration | CalendarWindow>[]
  /** Maximum units at one instant. For `hybrid`: a separate bucket. */
  readonly burst?: number | { readonly capacity: number; readonly refillPerSecond: number }
  readonly capacity?: Units
  readonly refillPerSecond?: number
  readonly leakPerSecond?: number
  readonly ratePerSecond?: number
  readonly rollover?: boolean
  readonly segments?: number
  /** How long a `concurrency` slot is held without renewal. In-flight requests renew theirs. */
  readonly lease?: Duration
  /** Decision while the store is unavailable. Default: the failure mode of the store. */
  readonly failureMode?: FailureMode
}

/** Every field of {@link RuleFields}. */
export const RULE_FIELDS: readonly (keyof RuleFields)[] = [
  'algorithm',
  'limit',
  'window',
  'windows',
  'burst',
  'capacity',
  'refillPerSecond',
  'leakPerSecond',
  'ratePerSecond',
  'rollover',
  'segments',
  'lease',
  'failureMode',
]

/** One of several rules that are decided at once. */
export type RuleOptions<Context> = Rule & RuleUse<Context>

/** Who a rule counts, and at what cost. */
export interface RuleUse<Context> {
  /** Who is counted. Default: {@link RateLimitOptions.key}. */
  readonly key?: KeySource<Context>
  /** Default: {@link RateLimitOptions.cost}. */
  readonly cost?: CostSource<Context>
}

/** A request that {@link RateLimitOptions.check} decides. */
export interface CheckCall<Context> {
  /** Counter key: kind and value of the identity, unique per identity. */
  readonly key: string
  readonly identity: Identity
  readonly cost: number
  readonly request: HttpRequest
  readonly context: Context
}

/**
 * Options of every middleware. Limits come from exactly one source: the fields of one rule (`limit`, `window`, ...),
 * `rules`, `limiter`, `engine` or `check`. `Context` is what the framework passes to its handlers.
 */
export interface RateLimitOptions<Context> extends RuleFields {
  /**
   * Several named rules, decided atomically: all are charged, or none. With a `LimiterSet` as `limiter`: the names of
   * the rules to check, without their limits.
   */
  readonly rules?: Readonly<Record<string, RuleOptions<Context> | RuleUse<Context>>>
  /** An existing limiter. The middleware does not close it. */
  readonly limiter?: Limiter | LimiterSet
  /** A policy engine. It receives path, method and client address of the request, and what `identify` returns. */
  readonly engine?: PolicyEngine
  /** With `engine`: verified attributes of the caller. They override the defaults. */
  readonly identify?: (context: Context, request: HttpRequest) => MaybePromise<Partial<PolicyRequest>>
  /** A custom function that decides, such as a call to the service. */
  readonly check?: (call: CheckCall<Context>) => MaybePromise<DecisionLike | CheckAnswer>
  /** Where counters are kept. Default: a new memory store, which counts in this process only. */
  readonly store?: Store
  /** Name of the rule, used in counter keys, headers and problem documents. Default: `default`. */
  readonly name?: string
  /**
   * Who is counted: `'ip'` or a function. A request without an identity counts by its client address. Default: `'ip'`.
   */
  readonly key?: KeySource<Context>
  /** Proxies whose forwarding header is trusted. Default: none, so that clients cannot choose their address. */
  readonly trustProxy?: TrustedProxies
  /** How IPv6 addresses are grouped. Default: by /64 networks. */
  readonly ipv6?: Ipv6Options
  /** Units per request. 0 checks without charging. Default: 1. */
  readonly cost?: CostSource<Context>
  /**
   * Actual cost of a request, called when its response was sent. The charge changes from `cost` to this value, which
   * may be higher. `status` is 0 without a response. `undefined` keeps the charge.
   */
  readonly actualCost?: (context: Context, status: number) => number | undefined
  /** Response statuses whose charge is refunded, or a predicate. Status 0 means that no response was sent. */
  readonly refund?: readonly number[] | ((status: number, context: Context) => boolean)
  /** Requests to skip: not decided, not charged, no headers. */
  readonly skip?: (context: Context, request: HttpRequest) => MaybePromise<boolean>
  /** Decides, charges and reports, but allows every request and sends no headers. */
  readonly shadow?: boolean
  /** Header profile. Default: `legacy`. */
  readonly headers?: HeaderProfile
  /** Maximum random share added to `Retry-After`, from 0 up to but excluding 1. Default: 0. */
  readonly jitter?: number
  /** Status of a denial, 400 to 599. An unavailable store is always answered with 503. Default: 429. */
  readonly status?: number
  /** Called with each decision before the request continues. Exceptions go to the error handler of the framework. */
  readonly onDecision?: (decision: DecisionLike, context: Context) => void
  /** Called when a charge could not be settled or refunded after the response. Default: a process warning. */
  readonly onError?: (error: unknown, context: Context) => void
  /** Called with likely mistakes in how the limiter is used. Default: a process warning. */
  readonly warn?: (warning: MisuseWarning) => void
  /** Clock for headers and for the default store. */
  readonly clock?: Clock
  /** Randomness for `jitter` and for the limiter. */
  readonly random?: Random
  /** Timers for delayed requests and for the renewal of slots. */
  readonly timers?: Timers
}
