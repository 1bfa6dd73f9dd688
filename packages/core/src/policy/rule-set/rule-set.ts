import type { Duration } from '../../rule/duration.ts'
import type { AlgorithmRule, RuleSettings, Weekday } from '../../rule/rule.ts'
import type { DescriptorDomain } from './descriptor-domain.ts'

/**
 * The dimension of a rule: `ip`, `user`, `apiKey`, `tenant`, `service` (the calling internal service), `global` (all
 * together), the name of a descriptor of the request, or several joined by `+`, such as `tenant+user`, for each
 * combination separately. A rule does not apply to requests without its dimension.
 */
export type Dimension = string

/** The built-in dimensions; any other name is a descriptor, to be declared in `dimensions` of the rule set. */
export const KNOWN_DIMENSIONS = ['ip', 'user', 'apiKey', 'tenant', 'service', 'global'] as const

/** A time of the week with a different limit. */
export interface ScheduleEntry {
  /** Days on which the span begins. Default: every day. */
  readonly days?: readonly Weekday[]
  /** `HH:MM`; a span whose end is not after its beginning extends into the next day. */
  readonly from: string
  readonly to: string
  /** IANA name. Default: `UTC`. */
  readonly timeZone?: string
  /** Above 0. If several entries cover an instant, the first one applies. */
  readonly multiplier: number
}

/** Cuts limits while too many calls fail, and restores them step by step. */
export interface ErrorRateCut {
  /** Share of failed calls, 0 to 1, above which limits are cut. */
  readonly cutAbove: number
  /** Share of failed calls below which limits are restored; not above `cutAbove`. Between both nothing changes. */
  readonly restoreBelow: number
  /** Time over which calls are counted. */
  readonly window: Duration
  /** Minimum number of calls in that time before anything is cut. */
  readonly leastCalls: number
  /** Each cut multiplies the limit by this, each restored step divides by it; above 0, below 1. */
  readonly step: number
  /** Limits are never cut below this share; above 0. */
  readonly least: number
  /** Minimum time between two steps. */
  readonly hold: Duration
}

/** Blocks a caller that continues after denials. */
export interface Penalty {
  /** Number of denials ... */
  readonly after: number
  /** ... within this time lead to a block. */
  readonly within: Duration
  /** Length of the first block. */
  readonly block: Duration
  /** Each further block is longer by this factor. Default: 2. 1 keeps the length. */
  readonly growth?: number
  /** Maximum length of a block. Default: 1 day, or the first block if that is longer. */
  readonly longest?: Duration
  /** A caller without a block for this long starts again with the first. Default: 1 day. */
  readonly forgetAfter?: Duration
  /** Whether the counters of the rule are reset when the block ends. Default: false. */
  readonly reset?: boolean
}

/**
 * Cost of a call in units: a number, a number of the request (rounded up), or the result of a function passed to the
 * engine.
 */
export type RuleCost =
  | number
  | {
      /** The descriptor with a number. */
      readonly descriptor: string
      /** This much of it is one unit. Default: 1. */
      readonly per?: number
    }
  | {
      /** Name of a function passed to the engine. */
      readonly function: string
    }

/** Settings of a rule of a rule set besides resource, dimension and algorithm. */
export interface PolicyRuleSettings extends RuleSettings {
  /** Counters belong to it; unique in the rule set. Default: generated from resource, methods and dimension. */
  readonly name?: string
  /** `/orders`, `/orders/:id`, `/files/*` (that and all below), `*` (everything), or a name without a slash. */
  readonly resource: string
  readonly dimension: Dimension
  /** HTTP methods the rule applies to. Default: all. More specific than a rule without methods. */
  readonly methods?: readonly string[]
  /**
   * Whether it applies in addition to the other rules of its dimension: it replaces none and is replaced by none.
   * Default: false.
   */
  readonly always?: boolean
  /**
   * False: the rule decides, but no header tells callers about it. If it denies, they learn only how long to wait.
   * Default: true.
   */
  readonly announce?: boolean
  /** Units that a call costs, times the cost of the request. Default: 1. */
  readonly cost?: RuleCost
  /** Evaluated and measured, never enforced. It replaces no other rule. */
  readonly shadow?: boolean
  /**
   * Share of callers it is enforced for, 0 to 100; for the others it is in shadow, and a less specific rule applies.
   * Default: 100.
   */
  readonly percent?: number
  /** Multipliers by region of the request; override those of the rule set. */
  readonly regions?: Readonly<Record<string, number>>
  readonly schedule?: readonly ScheduleEntry[]
  /** Multiplier while an incident is declared; overrides that of the rule set. 1 changes nothing. */
  readonly incident?: number
  readonly errorRate?: ErrorRateCut
  readonly penalty?: Penalty
  /** False keeps the rule in the set without any effect. Default: true. */
  readonly enabled?: boolean
}

/** A rule of a rule set: resource x dimension -> algorithm and numbers. */
export type PolicyRule = AlgorithmRule & PolicyRuleSettings

/**
 * A named group of callers. Its multiplier, burst and rules apply to the limits of identities (every dimension except
 * `ip` and `global`).
 */
export interface Tier {
  readonly name: string
  /** Multiplies limits, above 0. Default: 1. */
  readonly multiplier?: number
  /**
   * Units that may pass at once on top of the limit. Windows with `rollover`, and calendar windows among several,
   * cannot take them. Default: none.
   */
  readonly burst?: number
  /** Whether bursts of `hybrid` rules may be used. Default: false. */
  readonly entitled?: boolean
  /** Rules that replace those for all, without multiplier and burst. */
  readonly rules?: readonly PolicyRule[]
}

/** Which requests match: every given part must match. At least one part. */
export interface RequestMatch {
  readonly resource?: string
  readonly methods?: readonly string[]
  /** With `entities`: their dimension. */
  readonly dimension?: Dimension
  readonly entities?: readonly string[]
  /** Address blocks such as `10.0.0.0/8` or `2001:db8::/32`, or single addresses. */
  readonly cidrs?: readonly string[]
  /** Names of internal services, as the caller of the check knows them. */
  readonly services?: readonly string[]
}

/** Requests that rules do not apply to. */
export interface Exemption {
  readonly name: string
  readonly match: RequestMatch
  /** Rules that apply to them instead, such as those between internal services. Default: none. */
  readonly rules?: readonly PolicyRule[]
}

/** Requests that are always denied. */
export interface DenyEntry {
  readonly name: string
  readonly match: RequestMatch
  /** The entry has no effect after this time; milliseconds since 1970. Default: never. */
  readonly expiresAt?: number
}

/**
 * All limits as a whole: plain data that can be stored, sent, compared and displayed. It is checked as a whole and
 * immutable: a new one replaces it.
 */
export interface RuleSet {
  readonly rules: readonly PolicyRule[]
  /** Descriptors that rules count by. Rules with an undeclared dimension cause a warning. Default: none. */
  readonly dimensions?: readonly string[]
  readonly tiers?: readonly Tier[]
  readonly exemptions?: readonly Exemption[]
  readonly denyList?: readonly DenyEntry[]
  /** Multipliers by region, for rules without their own. */
  readonly regions?: Readonly<Record<string, number>>
  /** Multiplier while an incident is declared, for rules without their own. Default: 1. */
  readonly incident?: number
  /** For rules without their own. */
  readonly errorRate?: ErrorRateCut
  /** Descriptor trees, as in the Envoy protocol. */
  readonly domains?: readonly DescriptorDomain[]
}
