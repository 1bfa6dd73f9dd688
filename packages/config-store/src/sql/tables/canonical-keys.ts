import { countedEntity, PatternSpellings } from '@sluice/core/internal'
import type { EntityKey } from '../../entries.ts'

/** The key of an entry of any kind, or the entry. */
export type EntryKey = EntityKey & { readonly resource?: string }

/**
 * Spells keys of entries as engines do, so that entries which are one to an engine are one row: the resource and the dimension in
 * their one form, an address as what is counted for it. For one thread.
 */
export class KeySpelling {
  /** Bits of an IPv6 address that make one caller. */
  readonly ipv6PrefixLength: number
  readonly #patterns = new PatternSpellings()

  constructor(ipv6PrefixLength: number) {
    this.ipv6PrefixLength = ipv6PrefixLength
  }

  /** The key or entry with its key so spelled; the same object when it is already. */
  canonical<K extends EntryKey>(key: K): K {
    const counted = countedEntity(key, this.ipv6PrefixLength)
    if (counted.resource === undefined) return counted
    const resource = this.#patterns.canonical(counted.resource)
    return resource === counted.resource ? counted : { ...counted, resource }
  }
}
