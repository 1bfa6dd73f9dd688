import type { OptionTaker } from '../options/known-options.ts'
import type { Duration } from '../rule/duration.ts'
import type { Rule } from '../rule/rule.ts'
import type { Mode, Store } from '../store/store.ts'
import type { AbortSignalLike } from '../system/abort.ts'
import type { Clock, Timers } from '../system/clock-and-timers.ts'
import type { Random } from '../system/random.ts'
import type { Block } from './entries/live-entry.ts'
import type { CostFunction } from './limits/compiled-rule.ts'
import type { PolicyObserver } from './policy-event.ts'
import type { RuleSet } from './rule-set/rule-set.ts'

/** Options of a policy engine. */
export interface PolicyEngineOptions<M extends Mode = Mode> {
  /** Store of the counters. The engine does not close it. */
  readonly store: Store<M>
  /** The initial rule set. Default: none, which allows everything. `use` replaces it. */
  readonly ruleSet?: RuleSet
  /** Functions that rules may name as their cost. */
  readonly costFunctions?: Readonly<Record<string, CostFunction>>
  /** Leading bits of an IPv6 address that identify a caller, 1 to 128. Default: 64. */
  readonly ipv6PrefixLength?: number
  /**
   * The digest of an API key. With it, an override of the dimension `apiKey` for `digest:<digest>` applies to the key
   * with this digest, so that its author need not know the key. Called only for rules with such overrides.
   */
  readonly apiKeyDigest?: (apiKey: string) => string
  /**
   * Addresses and CIDR blocks that penalties never block, such as those of your proxies. Loopback addresses are never
   * blocked by a penalty.
   */
  readonly neverBlock?: readonly string[]
  /**
   * Limits requests that no enforced rule matches, by caller: by user, else by API key, tenant, service or address.
   * Requests without any of these share one counter. Default: such requests are not limited.
   */
  readonly defaultRule?: Rule
  /** Receives every block that is set, or caused by a penalty, to store it. Errors that it throws are only reported. */
  readonly keepBlock?: (block: Block) => unknown
  /** Called with every event, synchronously: it should return quickly. Errors that it throws are ignored. */
  readonly observer?: PolicyObserver
  readonly clock?: Clock
  readonly random?: Random
  /** Timers for `acquire`. */
  readonly timers?: Timers
  /** Maximum number of requests waiting in `acquire` at once; further ones are denied at once. Default: 10,000. */
  readonly maxWaiting?: number
}

export const ENGINE: OptionTaker = {
  name: 'PolicyEngine',
  options: [
    'store',
    'ruleSet',
    'costFunctions',
    'ipv6PrefixLength',
    'apiKeyDigest',
    'neverBlock',
    'defaultRule',
    'keepBlock',
    'observer',
    'clock',
    'random',
    'timers',
    'maxWaiting',
  ],
  example: '{ store: memoryStore(), ruleSet }',
}

/** Names of the options of methods, for messages. */
export const VERSIONS: OptionTaker = {
  name: 'PolicyEngine.use',
  options: ['enforced', 'candidate'],
  example: '{ enforced: { number: 1, ruleSet } }',
}

export const RESERVE: OptionTaker = {
  name: 'PolicyEngine.reserve',
  options: ['expiresAfter'],
  example: '{ expiresAfter: "1m" }',
}

export const ACQUIRE: OptionTaker = {
  name: 'PolicyEngine.acquire',
  options: [...RESERVE.options, 'maxWait', 'signal'],
  example: '{ maxWait: "5s" }',
}

/** Options of `reserve`. */
export interface PolicyReserveOptions {
  /** An unsettled reservation is returned after this time. Default: 1 minute. Slots end with their lease. */
  readonly expiresAfter?: Duration
}

/** Options of `acquire`. */
export interface PolicyAcquireOptions extends PolicyReserveOptions {
  /** Maximum wait. A wait that is known to be longer is denied at once. Default: no limit. */
  readonly maxWait?: Duration
  /** Ends the wait with the reason of the signal. Nothing is charged then. */
  readonly signal?: AbortSignalLike
}

/** Something that callers are blocked for if they do it too often, such as a failed login. */
export interface Offence {
  /** Name, such as `gateway:login`. Offences with the same name are counted together, on all nodes of the store. */
  readonly name: string
  /** Number of offences ... */
  readonly after: number
  /** ... within this time that lead to a block. */
  readonly within: Duration
  /** Length of the block. */
  readonly block: Duration
  /** Reason of the block, for people. Default: none. */
  readonly reason?: string
}
