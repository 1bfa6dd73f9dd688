import type { CheckAnswer, DecisionLike, HeaderProfile } from '@sluice/contract'
import type {
  AlgorithmRule,
  CalendarWindow,
  Clock,
  Duration,
  FailureMode,
  Limiter,
  LimiterSet,
  PolicyEngine,
  PolicyRequest,
  Random,
  Rule,
  Store,
  Timers,
  Units,
  WindowSpec,
} from '@sluice/core'
import type { HttpRequest } from '../http/http-request.ts'
import type { MaybePromise } from '../http/maybe-promise.ts'
import type { Ipv6Options } from '../identity/address-tiers.ts'
import type { TrustedProxies } from '../identity/client-address.ts'
import type { Identity, KeySource } from '../identity/identity.ts'
import type { CostSource } from '../identity/request-reader.ts'
import type { MisuseWarning } from '../misuse/misuse-warning.ts'

/**
 * The fields of a rule, of whichever algorithm, side by side. Which of them go together is checked when the limiter is made;
 * see `Rule` of the core for what each means.
 */
export interface RuleFields {
  /** `gcra` when left out. */
  readonly algorithm?: NonNullable<AlgorithmRule['algorithm']>
  /** Units in each window: 0 denies all, `'off'` does not limit. */
  readonly limit?: Units
  /** Such as `'1m'`, `'250ms'`, or milliseconds. */
  readonly window?: Duration | CalendarWindow
  /** Several windows at once, decided together, in place of `limit` and `window`. */
  readonly windows?: readonly WindowSpec<Duration | CalendarWindow>[]
  /** The most units that may pass at one instant; for `hybrid` a bucket of its own. */
  readonly burst?: number | { readonly capacity: number; readonly refillPerSecond: number }
  readonly capacity?: Units
  readonly refillPerSecond?: number
  readonly leakPerSecond?: number
  readonly ratePerSecond?: number
  readonly rollover?: boolean
  readonly segments?: number
  /** How long a slot of `concurrency` is held without a sign of life; requests under way give one. */
  readonly lease?: Duration
  /** What to answer while the store cannot be asked; what the store says when left out. */
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

/** Who is counted by a rule, and how much. */
export interface RuleUse<Context> {
  /** Who is counted; as in {@link RateLimitOptions.key}, which holds for rules that have none of their own. */
  readonly key?: KeySource<Context>
  /** As in {@link RateLimitOptions.cost}, which holds for rules that have none of their own. */
  readonly cost?: CostSource<Context>
}

/** A request to be decided by {@link RateLimitOptions.check}. */
export interface CheckCall<Context> {
  /** The counter that the request belongs to: kind and value of the identity, which no other identity can have. */
  readonly key: string
  readonly identity: Identity
  readonly cost: number
  readonly request: HttpRequest
  readonly context: Context
}

/**
 * How requests are limited. Limits come from exactly one place: the fields of one rule (`limit`, `window`, ...), `rules`,
 * `limiter`, `engine`, or `check`. `Context` is what the framework hands to its handlers.
 */
export interface RateLimitOptions<Context> extends RuleFields {
  /**
   * Several rules, by their names, decided at once: all are charged, or none. With a `LimiterSet` as `limiter`, those of its rules
   * that are to be asked, without their limits.
   */
  readonly rules?: Readonly<Record<string, RuleOptions<Context> | RuleUse<Context>>>
  /** A limiter that was made elsewhere. It is not closed here. */
  readonly limiter?: Limiter | LimiterSet
  /** Rule sets. It is asked about the path and method of the request, its client address, and what `identify` adds. */
  readonly engine?: PolicyEngine
  /** With `engine`: who calls. Only what has been verified. What it leaves out is as it would be without it. */
  readonly identify?: (context: Context, request: HttpRequest) => MaybePromise<Partial<PolicyRequest>>
  /** Anything else that decides, such as the service asked by its client. */
  readonly check?: (call: CheckCall<Context>) => MaybePromise<DecisionLike | CheckAnswer>
  /** Where counters live; a memory store of its own when left out, which counts in this process only. */
  readonly store?: Store
  /** Name of the rule: part of its counters, of headers and problem documents. `default` when left out. */
  readonly name?: string
  /**
   * Who is counted: `'ip'`, which is also used when it is left out, or a function. An identity that is undefined falls back to the
   * client address.
   */
  readonly key?: KeySource<Context>
  /** Which proxies are believed when they name the client; none when left out, so that nobody can choose an address. */
  readonly trustProxy?: TrustedProxies
  /** How IPv6 addresses are counted; by networks of 64 bits when left out. */
  readonly ipv6?: Ipv6Options
  /** Units a request takes; 1 when left out. 0 asks without taking. */
  readonly cost?: CostSource<Context>
  /**
   * What the request really cost, asked when its answer has left: its charge is changed from `cost` to that, which may be more.
   * `status` is 0 when there was no answer. Undefined leaves it as it is.
   */
  readonly actualCost?: (context: Context, status: number) => number | undefined
  /** The statuses of answers for which the charge is given back, or a function that says so. 0 is no answer at all. */
  readonly refund?: readonly number[] | ((status: number, context: Context) => boolean)
  /** Requests that are not limited: not decided, not charged, no headers. */
  readonly skip?: (context: Context, request: HttpRequest) => MaybePromise<boolean>
  /** Decides, charges and reports, and lets every request through, without headers. */
  readonly shadow?: boolean
  /** Which headers announce the limit; `legacy` when left out. */
  readonly headers?: HeaderProfile
  /** Adds up to so much of the wait to `Retry-After`, 0 or more and below 1, by chance; 0 when left out. */
  readonly jitter?: number
  /** Status of a denial, 400 to 599; 429 when left out. A store that cannot be asked is answered with 503 all the same. */
  readonly status?: number
  /** Is told each decision, before the request goes on. What it throws goes the way of errors of the framework. */
  readonly onDecision?: (decision: DecisionLike, context: Context) => void
  /**
   * Is told what failed after the request was answered: a charge that could not be settled or given back. A warning of the
   * process when left out.
   */
  readonly onError?: (error: unknown, context: Context) => void
  /** Is told what looks like a mistake in how the limiter is used; a warning of the process when left out. */
  readonly warn?: (warning: MisuseWarning) => void
  /** The time that headers are reckoned by, and that of the store made when none is given. */
  readonly clock?: Clock
  /** Chance for `jitter`, and for the limiter made here. */
  readonly random?: Random
  /** Waits for the turn of a request, and for the next sign of life of a slot. */
  readonly timers?: Timers
}
