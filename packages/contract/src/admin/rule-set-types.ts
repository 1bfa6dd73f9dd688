import type { Reference } from '../schema/json-schema.ts'
import { referenceTo } from '../schema/json-schema.ts'

/**
 * Schemas that the rule engine defines. The OpenAPI document includes them under these names.
 */
export const FOREIGN_SCHEMAS = [
  'RuleSet',
  'PolicyRule',
  'Override',
  'Membership',
  'Block',
  'Incident',
  'Tier',
  'Exemption',
  'DenyEntry',
] as const

/** One of {@link FOREIGN_SCHEMAS}. */
export type ForeignSchemaName = (typeof FOREIGN_SCHEMAS)[number]

// The engine's types distinguish the algorithms. These have the same properties; a test of the service compares them.

/** A duration such as `1m`, or a number of milliseconds. */
type WireDuration = string | number

/**
 * A rule of a rule set: resource x dimension -> algorithm and numbers. The schema `PolicyRule` defines valid
 * combinations.
 */
export interface PolicyRule {
  readonly resource: string
  readonly dimension: string
  readonly name?: string
  readonly methods?: readonly string[]
  /** Default: `gcra`. */
  readonly algorithm?: string
  /** Units allowed per window; 0 denies all, `off` does not limit at all. */
  readonly limit?: number | 'off'
  /** A duration such as `1m`, a number of milliseconds, or a calendar period. */
  readonly window?: unknown
  readonly windows?: readonly WireWindow[]
  readonly burst?: number | { readonly capacity: number; readonly refillPerSecond: number }
  readonly capacity?: number | 'off'
  readonly refillPerSecond?: number
  readonly leakPerSecond?: number
  readonly ratePerSecond?: number
  readonly rollover?: boolean
  readonly segments?: number
  readonly lease?: WireDuration
  readonly cost?: number | { readonly descriptor: string; readonly per?: number } | { readonly function: string }
  readonly always?: boolean
  readonly announce?: boolean
  readonly shadow?: boolean
  readonly percent?: number
  readonly enabled?: boolean
  readonly failureMode?: string
  readonly regions?: Readonly<Record<string, number>>
  readonly schedule?: readonly {
    readonly days?: readonly string[]
    readonly from: string
    readonly to: string
    readonly timeZone?: string
    readonly multiplier: number
  }[]
  readonly incident?: number
  readonly errorRate?: ErrorRateCut
  readonly penalty?: {
    readonly after: number
    readonly within: WireDuration
    readonly block: WireDuration
    readonly growth?: number
    readonly longest?: WireDuration
    readonly forgetAfter?: WireDuration
    readonly reset?: boolean
  }
}

/** One of several windows of a rule. */
interface WireWindow {
  readonly limit: number
  readonly window: unknown
  readonly burst?: number
}

/** Cuts limits while too many calls fail. */
interface ErrorRateCut {
  readonly cutAbove: number
  readonly restoreBelow: number
  readonly window: WireDuration
  readonly leastCalls: number
  readonly step: number
  readonly least: number
  readonly hold: WireDuration
}

/** A rule of one resource, which is given separately. */
export type ResourceRule = Omit<PolicyRule, 'resource'>

/** A named group of callers. */
export interface Tier {
  readonly name: string
  readonly multiplier?: number
  readonly burst?: number
  readonly entitled?: boolean
  readonly rules?: readonly PolicyRule[]
}

/** Which requests match; every given part must match. */
export interface RequestMatch {
  readonly resource?: string
  readonly methods?: readonly string[]
  readonly dimension?: string
  readonly entities?: readonly string[]
  readonly cidrs?: readonly string[]
  readonly services?: readonly string[]
}

/** Requests that rules do not apply to. */
export interface Exemption {
  readonly name: string
  readonly match: RequestMatch
  readonly rules?: readonly PolicyRule[]
}

/** Requests that are always denied. */
export interface DenyEntry {
  readonly name: string
  readonly match: RequestMatch
  /** Milliseconds since 1970. */
  readonly expiresAt?: number
}

/** A node of the tree of a domain: the entry that it matches, its limit, and its children. */
export interface DescriptorNode {
  readonly key: string
  /** Default: any value. */
  readonly value?: string
  readonly limit?: {
    readonly unit?: string
    readonly window?: number | string
    readonly requestsPerUnit?: number
    readonly algorithm?: string
    readonly unlimited?: boolean
    readonly drain?: boolean
    readonly name?: string
    readonly replaces?: readonly string[]
  }
  readonly descriptors?: readonly DescriptorNode[]
  readonly shadow?: boolean
  readonly quota?: boolean
  readonly shareThreshold?: boolean
  readonly detailedMetric?: boolean
  readonly valueToMetric?: boolean
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** Limits by descriptors, as in the Envoy rate limit protocol. */
export interface DescriptorDomain {
  readonly domain: string
  readonly descriptors: readonly DescriptorNode[]
}

/** All limits as a whole. */
export interface RuleSet {
  readonly rules: readonly PolicyRule[]
  readonly dimensions?: readonly string[]
  readonly tiers?: readonly Tier[]
  readonly exemptions?: readonly Exemption[]
  readonly denyList?: readonly DenyEntry[]
  readonly regions?: Readonly<Record<string, number>>
  readonly incident?: number
  readonly errorRate?: ErrorRateCut
  readonly domains?: readonly DescriptorDomain[]
}

/** The numbers of an override: one of `limit`, `windows` and `multiplier`. */
export interface OverrideTerms {
  readonly limit?: number | 'off'
  readonly window?: WireDuration
  readonly burst?: number
  readonly windows?: readonly WireWindow[]
  readonly multiplier?: number
}

/** Other numbers for one caller. */
export interface Override {
  readonly dimension: string
  readonly entity: string
  readonly resource: string
  readonly terms: OverrideTerms
  /** Milliseconds since 1970. */
  readonly expiresAt?: number
}

/** The tier of a caller. */
export interface Membership {
  readonly dimension: string
  readonly entity: string
  readonly tier: string
  /** Milliseconds since 1970. */
  readonly expiresAt?: number
}

/** A caller whose requests are denied for a time. */
export interface Block {
  readonly dimension: string
  readonly entity: string
  /** Milliseconds since 1970. */
  readonly until: number
  readonly strikes: number
  /** Milliseconds since 1970. */
  readonly forgottenAt: number
  readonly rule?: string
  readonly reason?: string
}

/** Whether an incident is declared, which cuts limits. */
export interface Incident {
  readonly active: boolean
  /** Milliseconds since 1970. */
  readonly until?: number
}

/** References to the schemas of these. */
export const RULE_SET: Reference<RuleSet> = foreign('RuleSet')
export const OVERRIDE: Reference<Override> = foreign('Override')
export const MEMBERSHIP: Reference<Membership> = foreign('Membership')
export const BLOCK: Reference<Block> = foreign('Block')
export const INCIDENT: Reference<Incident> = foreign('Incident')
export const TIER: Reference<Tier> = foreign('Tier')
export const EXEMPTION: Reference<Exemption> = foreign('Exemption')
export const DENY_ENTRY: Reference<DenyEntry> = foreign('DenyEntry')

/** The schema `PolicyRule` without `resource`, which the OpenAPI document makes of it. */
export const RESOURCE_RULE: Reference<ResourceRule> = referenceTo('ResourceRule')

/** A named part of a rule set in the body of a request whose path has the name. A name in the body must be the same. */
export type NamedInPath<P extends { readonly name: string }> = Omit<P, 'name'> & Partial<Pick<P, 'name'>>

/** The schemas `Tier`, `Exemption` and `DenyEntry` with an optional name, which the OpenAPI document makes of them. */
export const TIER_REQUEST: Reference<NamedInPath<Tier>> = referenceTo('TierRequest')
export const EXEMPTION_REQUEST: Reference<NamedInPath<Exemption>> = referenceTo('ExemptionRequest')
export const DENY_ENTRY_REQUEST: Reference<NamedInPath<DenyEntry>> = referenceTo('DenyEntryRequest')

function foreign<T>(name: ForeignSchemaName): Reference<T> {
  return referenceTo(name)
}
