import type { Duration } from '../../rule/duration.ts'
import type { WindowSpec } from '../../rule/rule.ts'
import { countedAddress } from '../matching/ip-address.ts'
import { canonicalDimension } from '../matching/rule-name.ts'
import type { Dimension } from '../rule-set/rule-set.ts'

/** The numbers of an override. Exactly one of `limit`, `windows` and `multiplier`. */
export interface OverrideTerms {
  /** Units; if the algorithm has a rate instead of a window, the rate changes in proportion. `'off'` does not limit. */
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

/** Other numbers for one caller. They are final: tier, region and schedule do not change them, but an incident does. */
export interface Override {
  readonly dimension: Dimension
  /** The entity; for a joint dimension the parts joined by `joinKey`. */
  readonly entity: string
  /** The resource of the rules it applies to, as they write it; `*` for every rule of the dimension. */
  readonly resource: string
  readonly terms: OverrideTerms
  /** Milliseconds since 1970; it has no effect from then on. Default: never. */
  readonly expiresAt?: number
}

/** The tier of a caller. */
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
  /** Number of blocks, including this one, since the caller was last forgotten. */
  readonly strikes: number
  /** Milliseconds since 1970 until which strikes are remembered. */
  readonly forgottenAt: number
  /** The rule that caused it; undefined if it was set manually. */
  readonly rule?: string
  readonly reason?: string
}

/** Whether an incident is declared, which cuts limits. */
export interface Incident {
  readonly active: boolean
  /** End in milliseconds since 1970. Default: none. */
  readonly until?: number
}

/**
 * An entry or key with its caller in canonical spelling: an IPv6 address as its network, an IPv4-mapped address as
 * IPv4, the names of a joint dimension sorted. Returns the same object if it is already canonical.
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
