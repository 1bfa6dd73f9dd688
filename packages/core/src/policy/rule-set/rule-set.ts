import type { Duration } from '../../rule/duration.ts'
import type { AlgorithmRule, RuleSettings, Weekday } from '../../rule/rule.ts'
import type { DescriptorDomain } from './descriptor-domain.ts'

/**
 * Who is counted: `ip`, `user`, `apiKey`, `tenant`, `service` (the internal service that calls), `global` (all
 * together), the name of a descriptor of the request, or several joined by `+`, such as `tenant+user`, for each
 * combination on its own. A rule whose dimension a request does not have does not apply to it.
 */
export type Dimension = string

/** The built-in dimensions; any other name is a descriptor, to be declared in `dimensions` of the rule set. */
export const KNOWN_DIMENSIONS = ['ip', 'user', 'apiKey', 'tenant', 'service', 'global'] as const

/** A time of the week in which a rule's limit is another one. */
export interface ScheduleEntry {
  /** Days on which the span begins. Default: every day. */
  readonly days?: readonly Weekday[]
  /** `HH:MM`; a span whose end is not after its beginning goes on into the next day. */
  readonly from: string
  readonly to: string
  /** IANA name. Default: `UTC`. */
  readonly timeZone?: string
  /** Above 0. Of several entries that cover an instant, the first counts. */
  readonly multiplier: number
}

/** Cuts limits while too many calls fail, and gives them back step by step. */
export interface ErrorRateCut {
  /** Share of failed calls, 0 to 1, above which limits are cut. */
  readonly cutAbove: number
  /** Share below which they are given back; not above `cutAbove`. Between both nothing changes. */
  readonly restoreBelow: number
  /** Span over which calls are counted. */
  readonly window: Duration
  /** Fewer calls in the span say nothing. */
  readonly leastCalls: number
  /** Each cut multiplies the limit by this, each step back divides; above 0, below 1. */
  readonly step: number
  /** Limits are never cut below this share; above 0. */
  readonly least: number
  /** Time between two steps. */
  readonly hold: Duration
}

/** Blocks a caller that goes on after being denied. */
export interface Penalty {
  /** Number of denials ... */
  readonly after: number
  /** ... within this time lead to a block. */
  readonly within: Duration
  /** Length of the first block. */
  readonly block: Duration
  /** Each further block is longer by this factor. Default: 2. With 1 all are equal. */
  readonly growth?: number
  /** Maximum length of a block. Default: 1 day, or the first block if that is longer. */
  readonly longest?: Duration
  /** A caller without a block for so long starts again with the first. Default: 1 day. */
  readonly forgetAfter?: Duration
  /** Whether the counters of the rule start afresh when the block ends. Default: false. */
  readonly reset?: boolean
}

/** Units that one call takes: a number, a number of the request (rounded up), or what a function given in code says. */
export type RuleCost =
  | number
  | {
      /** The descriptor that holds a number. */
      readonly descriptor: string
      /** So much of it is one unit. Default: 1. */
      readonly per?: number
    }
  | {
      /** Name of a function passed to the engine. */
      readonly function: string
    }

/** What a rule of a rule set may say besides resource, dimension and algorithm. */
export interface PolicyRuleSettings extends RuleSettings {
  /** Counters belong to it; unique in the rule set. Default: made of resource, methods and dimension. */
  readonly name?: string
  /** `/orders`, `/orders/:id`, `/files/*` (that and all below), `*` (everything), or a name without a slash. */
  readonly resource: string
  readonly dimension: Dimension
  /** HTTP methods the rule is for. Default: all. More specific than a rule without. */
  readonly methods?: readonly string[]
  /**
   * Whether it holds beside the other rules of its dimension, takes the place of none and leaves its own to none.
   * Default: false.
   */
  readonly always?: boolean
  /**
   * False: the rule decides, and no header tells callers of it. When it denies, they learn how long to wait, and
   * nothing else. Default: true.
   */
  readonly announce?: boolean
  /** Units a call takes, times the cost of the request. Default: 1. */
  readonly cost?: RuleCost
  /** Evaluated and measured, never enforced. It takes the place of no other rule. */
  readonly shadow?: boolean
  /**
   * Share of callers it is enforced for, 0 to 100; for the others it is in shadow, and a less specific rule holds.
   * Default: 100.
   */
  readonly percent?: number
  /** Multipliers by region of the request; above those of the rule set. */
  readonly regions?: Readonly<Record<string, number>>
  readonly schedule?: readonly ScheduleEntry[]
  /** Multiplier while an incident is declared; above that of the rule set. 1 leaves the rule alone. */
  readonly incident?: number
  readonly errorRate?: ErrorRateCut
  readonly penalty?: Penalty
  /** False keeps the rule in the set without any effect. Default: true. */
  readonly enabled?: boolean
}

/** A rule of a rule set: resource x dimension -> algorithm and numbers. */
export type PolicyRule = AlgorithmRule & PolicyRuleSettings

/**
 * A named group of callers. Its multiplier, burst and rules hold for the limits of identities (every dimension but `ip`
 * and `global`).
 */
export interface Tier {
  readonly name: string
  /** Multiplies limits, above 0. Default: 1. */
  readonly multiplier?: number
  /**
   * Units that may pass at once on top of the limit. Windows with `rollover`, or with a calendar window among several,
   * have no room for them and go without. Default: none.
   */
  readonly burst?: number
  /** Whether bursts of `hybrid` rules may be used. Default: false. */
  readonly entitled?: boolean
  /** Rules that stand in the place of those for all; taken as they are, without multiplier and burst. */
  readonly rules?: readonly PolicyRule[]
}

/** Which requests are meant; every part that is given must hold. At least one part. */
export interface RequestMatch {
  readonly resource?: string
  readonly methods?: readonly string[]
  /** With `entities`: who. */
  readonly dimension?: Dimension
  readonly entities?: readonly string[]
  /** Address blocks such as `10.0.0.0/8` or `2001:db8::/32`, or single addresses. */
  readonly cidrs?: readonly string[]
  /** Names of internal services, as the caller of the check knows them. */
  readonly services?: readonly string[]
}

/** Requests that the rules are not for. */
export interface Exemption {
  readonly name: string
  readonly match: RequestMatch
  /** Rules that hold for them instead, such as those between internal services. Default: none at all. */
  readonly rules?: readonly PolicyRule[]
}

/** Requests that are denied whatever else is said. */
export interface DenyEntry {
  readonly name: string
  readonly match: RequestMatch
  /** After it the entry has no effect; milliseconds since 1970. Default: never. */
  readonly expiresAt?: number
}

/**
 * Who may do how much, as a whole: plain data, so that it can be stored, sent, compared and shown. It is checked as a
 * whole and never changed: another one takes its place.
 */
export interface RuleSet {
  readonly rules: readonly PolicyRule[]
  /**
   * Descriptors that rules count by. A rule that counts by one that is not listed here is warned about. Default: none.
   */
  readonly dimensions?: readonly string[]
  readonly tiers?: readonly Tier[]
  readonly exemptions?: readonly Exemption[]
  readonly denyList?: readonly DenyEntry[]
  /** Multipliers by region, for rules that do not have their own. */
  readonly regions?: Readonly<Record<string, number>>
  /** Multiplier while an incident is declared, for rules that do not have their own. Default: 1. */
  readonly incident?: number
  /** For rules that do not have their own. */
  readonly errorRate?: ErrorRateCut
  /** Trees of descriptors, as the Envoy protocol asks for them. */
  readonly domains?: readonly DescriptorDomain[]
}
