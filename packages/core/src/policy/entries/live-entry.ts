import type { Duration } from '../../rule/duration.ts'
import type { WindowSpec } from '../../rule/rule.ts'
import { countedAddress } from '../matching/ip-address.ts'
import { canonicalDimension } from '../matching/rule-name.ts'
import type { Dimension } from '../rule-set/rule-set.ts'

/**
 * What an override puts in the place of a rule's own numbers. Exactly one of `limit`, `windows` and `multiplier`.
 */
export interface OverrideTerms {
  /**
   * Units; for an algorithm with a rate instead of a window, the rate changes in the same proportion. `'off'` does not
   * limit.
   */
  readonly limit?: number | 'off'
  /** With `limit`: another window. */
  readonly window?: Duration
  /** With `limit`: another burst. */
  readonly burst?: number
  /** For rules with several windows. */
  readonly windows?: readonly WindowSpec[]
  /** Multiplies all numbers of the rule. */
  readonly multiplier?: number
}

/**
 * Other numbers for one caller. They are taken as they are: tier, region and schedule do not change them, an incident
 * does.
 */
export interface Override {
  readonly dimension: Dimension
  /** Who; the parts of a joint dimension by `joinKey`. */
  readonly entity: string
  /** The resource of the rules it is for, as they write it; `*` for every rule of the dimension. */
  readonly resource: string
  readonly terms: OverrideTerms
  /** Milliseconds since 1970; from then on it has no effect. Default: never. */
  readonly expiresAt?: number
}

/** Which tier a caller belongs to. */
export interface Membership {
  readonly dimension: Dimension
  readonly entity: string
  readonly tier: string
  readonly expiresAt?: number
}

/** A caller that is denied everywhere for a time. */
export interface Block {
  readonly dimension: Dimension
  readonly entity: string
  /** Milliseconds since 1970. */
  readonly until: number
  /** How many blocks there were, this one included, since the caller was last forgotten. */
  readonly strikes: number
  /** Milliseconds since 1970 until which strikes are remembered. */
  readonly forgottenAt: number
  /** The rule that led to it, or undefined when it was set by hand. */
  readonly rule?: string
  readonly reason?: string
}

/** Whether an incident is declared, which cuts limits. */
export interface Incident {
  readonly active: boolean
  /** Ends by itself then; milliseconds since 1970. Default: not by itself. */
  readonly until?: number
}

/**
 * An entry or key with the caller written the way in which requests are counted: an IPv6 address as its network, an
 * IPv4 address in IPv6 form as IPv4, the names of a joint dimension in one order. The same object when it is written so
 * already.
 */
export function countedEntity<K extends { readonly dimension: string; readonly entity: string }>(
  key: K,
  ipv6PrefixLength: number,
): K {
  if (key.dimension === 'ip') {
    const entity = countedAddress(key.entity, ipv6PrefixLength)
    return entity === key.entity ? key : { ...key, entity }
  }
  const dimension = canonicalDimension(key.dimension)
  return dimension === key.dimension ? key : { ...key, dimension }
}
