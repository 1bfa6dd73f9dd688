import { IpAddress } from './ip-address.ts'
import { canonicalDimension } from './rule-name.ts'

const COLON = ':'

/** Read anew by every call. */
const address = new IpAddress()

/**
 * The identity that an address is counted by: IPv4 as it is, IPv6 by its first `ipv6PrefixLength` bits (`2001:db8:0:1::/64`), an
 * IPv4 address in IPv6 form as IPv4. Networks may be given too (`2001:db8:0:1::/64`). What is no address stands for itself: it
 * is counted too, and cannot be mistaken for one.
 */
export function countedAddress(text: string, ipv6PrefixLength: number): string {
  // Dotted decimal without leading zeros has one spelling only.
  if (!text.includes(COLON)) return text
  const slash = text.indexOf('/')
  if (!address.read(slash < 0 ? text : text.slice(0, slash))) return text
  if (address.isIpv4) return address.toString()
  address.mask(ipv6PrefixLength)
  return ipv6PrefixLength === 128 ? address.toString() : `${address.toString()}/${ipv6PrefixLength}`
}

/**
 * An entry or key with the caller written the way in which requests are counted: an IPv6 address as its network, an IPv4 address
 * in IPv6 form as IPv4, the names of a joint dimension in one order. The same object when it is written so already.
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
