import type { Rule, RuleRequest } from '@sluice/core'
import { SluiceError } from '@sluice/core'
import { countedAddress, DEFAULT_IPV6_PREFIX_LENGTH, MatchCache, nearestName, scaleRule } from '@sluice/core/internal'
import { type Identity, identityKey } from './identity.ts'

/** How IPv6 addresses are grouped. */
export interface Ipv6Options {
  /** Prefix length of one caller, 16 to 128 bits. One customer has at least a /64. Default: 64. */
  readonly prefixLength?: number
  /** Wider networks that every request also counts on, narrowest first. Default: none. */
  readonly tiers?: readonly AddressTier[]
}

/** A wider network with its own limit. Homes often have a /56, businesses a /48. */
export interface AddressTier {
  /** Prefix length, 16 to 127 bits, shorter than that of the previous tier. */
  readonly prefixLength: number
  /** Limit as a multiple of the limit of one caller, larger than that of the previous tier. */
  readonly multiply: number
}

const NARROWEST = 128
const WIDEST = 16

/** Cached keys of IPv6 networks: normalizing an address takes longer than deciding. */
const MOST_KEYS = 4096

/** Networks that an address counts on, and the rules of the wider ones. */
export class AddressTiers {
  /** Bits of an IPv6 address that make one caller. */
  readonly prefixLength: number
  /** Wider networks, narrowest first. */
  readonly tiers: readonly AddressTier[]
  readonly #prefixes: readonly number[]
  /** By address: the key of the caller, then those of the wider networks. */
  readonly #keys: MatchCache<string>

  constructor(prefixLength: number, tiers: readonly AddressTier[]) {
    this.prefixLength = prefixLength
    this.tiers = tiers
    this.#prefixes = [prefixLength, ...tiers.map((tier) => tier.prefixLength)]
    this.#keys = new MatchCache(this.#prefixes.length, MOST_KEYS)
  }

  /** Key of an identity. IPv6 addresses use the key of their network. */
  keyOf(identity: Identity): string {
    return isIpv6(identity) ? this.#keyAt(0, identity) : identityKey(identity)
  }

  /** The rule and its scaled copies for wider networks, by name: `default`, `default/56`, `default/48`. */
  rulesOf(name: string, rule: Rule): Readonly<Record<string, Rule>> {
    const rules: Record<string, Rule> = { [name]: rule }
    for (const { prefixLength, multiply } of this.tiers) rules[tierName(name, prefixLength)] = scaleRule(rule, multiply)
    return rules
  }

  /** The requests for {@link rulesOf}, decided atomically. */
  requestsOf(name: string, identity: Identity, cost: number): readonly RuleRequest[] {
    const requests: RuleRequest[] = [{ rule: name, key: this.keyOf(identity), cost }]
    if (!isIpv6(identity)) return requests
    for (const [index, { prefixLength }] of this.tiers.entries()) {
      requests.push({ rule: tierName(name, prefixLength), key: this.#keyAt(index + 1, identity), cost })
    }
    return requests
  }

  #keyAt(place: number, { kind, value }: Identity): string {
    const known = this.#keys.get(place, value)
    if (known !== undefined) return known
    const key = identityKey({ kind, value: countedAddress(value, this.#prefixes[place]!) })
    this.#keys.add(place, value, key)
    return key
  }
}

/** Validates the `ipv6` option. Throws `SLUICE_INVALID_OPTION`. */
export function compileIpv6(options: Ipv6Options = {}): AddressTiers {
  checkNames('ipv6', options, ['prefixLength', 'tiers'])
  const { prefixLength = DEFAULT_IPV6_PREFIX_LENGTH, tiers = [] } = options
  checkPrefix('ipv6.prefixLength', prefixLength, NARROWEST)
  if (!Array.isArray(tiers)) {
    throw invalid('"ipv6.tiers" cannot be used', tiers, 'a list of { prefixLength, multiply }, the narrowest first')
  }
  let narrower = { prefixLength, multiply: 1 }
  for (const [index, tier] of tiers.entries()) {
    const place = `ipv6.tiers[${index}]`
    checkNames(place, tier, ['prefixLength', 'multiply'])
    checkPrefix(`${place}.prefixLength`, tier.prefixLength, narrower.prefixLength - 1)
    if (!(Number.isFinite(tier.multiply) && tier.multiply > narrower.multiply)) {
      throw invalid(`"${place}.multiply" cannot be used`, tier.multiply, `a number above ${narrower.multiply}`)
    }
    narrower = tier
  }
  return new AddressTiers(
    prefixLength,
    tiers.map((tier) => ({ ...tier })),
  )
}

function isIpv6({ kind, value }: Identity): boolean {
  return kind === 'ip' && value.includes(':')
}

function tierName(name: string, prefixLength: number): string {
  return `${name}/${prefixLength}`
}

function checkNames(place: string, options: unknown, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw invalid(`"${place}" cannot be used`, options, `an object with ${known.join(' and ')}`)
  }
  const unknown = Object.keys(options).find((option) => !known.includes(option))
  if (unknown === undefined) return
  const meant = nearestName(unknown, known)
  const hint = meant === undefined ? '' : `; did you mean "${meant}"?`
  throw invalid(`"${place}" has no such option`, unknown, `${known.join(' and ')}${hint}`)
}

function checkPrefix(place: string, prefixLength: unknown, most: number): void {
  const isPrefix = Number.isInteger(prefixLength) && (prefixLength as number) >= WIDEST
  if (isPrefix && (prefixLength as number) <= most) return
  throw invalid(`"${place}" cannot be used`, prefixLength, `a whole number of bits, ${WIDEST} to ${most}`)
}

function invalid(problem: string, received: unknown, expected: string): SluiceError {
  return new SluiceError('SLUICE_INVALID_OPTION', { problem, received, expected })
}
