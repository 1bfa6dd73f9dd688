import { canonicalDimension } from '../rule-set/rule-name.ts'
import { countedAddress } from './counted-address.ts'

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
