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

/** What a policy engine is made of. */
export interface PolicyEngineOptions<M extends Mode = Mode> {
  /** Where counters live. It is not closed by the engine. */
  readonly store: Store<M>
  /** The rules in force from the start. Default: none, which allows everything. `use` puts others in their place. */
  readonly ruleSet?: RuleSet
  /** Functions that rules may name as their cost. */
  readonly costFunctions?: Readonly<Record<string, CostFunction>>
  /** Bits of an IPv6 address that make one caller, 1 to 128. Default: 64. */
  readonly ipv6PrefixLength?: number
  /**
   * The digest of an API key. With it, an override of the dimension `apiKey` for `digest:<digest>` holds for the key
   * with this digest, so that its author need not know the key. Called only for rules that have such overrides.
   */
  readonly apiKeyDigest?: (apiKey: string) => string
  /**
   * Addresses and CIDR blocks that no penalty blocks, such as those of your proxies. Loopback addresses are never
   * blocked by one.
   */
  readonly neverBlock?: readonly string[]
  /**
   * Limits requests that no enforced rule matches, each caller on its own: by user, else by API key, tenant, service,
   * address; who names none of these counts together with all others. Default: such requests are not limited.
   */
  readonly defaultRule?: Rule
  /**
   * Is given every block that is set or made by a penalty, to keep and list it. What it throws is reported, and no
   * more.
   */
  readonly keepBlock?: (block: Block) => unknown
  /** Called with every event, synchronously: it should be quick. What it throws is ignored. */
  readonly observer?: PolicyObserver
  readonly clock?: Clock
  readonly random?: Random
  /** Timers for `acquire`. */
  readonly timers?: Timers
  /**
   * Maximum number of requests waiting in `acquire` at once; one more is denied as if it had not waited. Default:
   * 10,000.
   */
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

/** How to reserve. */
export interface PolicyReserveOptions {
  /** After this time an unsettled reservation is given back. Default: 1 minute. Slots end with their lease. */
  readonly expiresAfter?: Duration
}

/** How to wait. */
export interface PolicyAcquireOptions extends PolicyReserveOptions {
  /** Longest wait. A wait that is known to be longer is denied at once. Default: as long as it takes. */
  readonly maxWait?: Duration
  /** Ends the waiting with the signal's reason. Nothing is taken then. */
  readonly signal?: AbortSignalLike
}

/** Something that callers are blocked for when they do it too often, such as a failed login. */
export interface Offence {
  /** What it is, such as `gateway:login`. Offences of one name are counted together, on all nodes of the store. */
  readonly name: string
  /** So many ... */
  readonly after: number
  /** ... within this time lead to a block. */
  readonly within: Duration
  /** Length of the block. */
  readonly block: Duration
  /** For people. Default: none. */
  readonly reason?: string
}
