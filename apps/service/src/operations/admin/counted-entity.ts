import type { EntityKey } from '@sluice/config-store'
import { countedEntity as countedByEngine } from '@sluice/core/internal'
import { IPV6_PREFIX_LENGTH } from '../../address-network.ts'

/**
 * The same entry or key with the caller written the way in which requests are counted: an IPv6 address as its network, the names
 * of a joint dimension in one order. So there is one entry for one caller, however it was spelled.
 */
export function countedEntity<K extends EntityKey>(key: K): K {
  return countedByEngine(key, IPV6_PREFIX_LENGTH)
}
