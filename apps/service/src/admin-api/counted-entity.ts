import type { EntityKey } from '@sluice/config-store'
import { canonicalDimension } from '@sluice/core/internal'
import { addressNetwork } from '../address-network.ts'

/**
 * The same entry or key with the caller written the way in which requests are counted: an IPv6 address as its network, the names
 * of a joint dimension in one order. So there is one entry for one caller, however it was spelled.
 */
export function countedEntity<K extends EntityKey>(key: K): K {
  const dimension = canonicalDimension(key.dimension)
  const entity = dimension === 'ip' ? addressNetwork(key.entity) : key.entity
  return { ...key, dimension, entity }
}
