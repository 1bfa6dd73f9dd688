import type { EntityKey } from '@sluice/config-store'
import type { Block, Clock, Duration } from '@sluice/core'
import { memoryStore, PolicyEngine } from '@sluice/core'

/** How callers are counted. */
export interface CountedEntitiesOptions {
  readonly clock: Clock
  /** As the engine has it; its own default when left out. */
  readonly ipv6PrefixLength?: number | undefined
}

/**
 * Writes callers the way in which requests are counted: an IPv6 address as its network, the names of a joint dimension in one
 * order. So there is one entry for one caller, however it was spelled.
 */
export class CountedEntities {
  /** Knows how callers are counted and how blocks are made. It decides nothing, and keeps nothing. */
  readonly #reader: PolicyEngine<'sync'>

  constructor({ clock, ipv6PrefixLength }: CountedEntitiesOptions) {
    this.#reader = new PolicyEngine({
      store: memoryStore({ maxKeys: 64, clock }),
      clock,
      ...(ipv6PrefixLength === undefined ? {} : { ipv6PrefixLength }),
    })
  }

  /** The same entry or key, with dimension and entity as they are counted. */
  of<K extends EntityKey>(key: K): K {
    if (key.dimension !== 'ip' && !key.dimension.includes('+')) return key
    const { dimension, entity } = this.blockOf(key, { duration: '1d' })
    return { ...key, dimension, entity }
  }

  /** A first block of this caller, from now on. Throws `SLUICE_INVALID_DURATION`. */
  blockOf({ dimension, entity }: EntityKey, options: { readonly duration: Duration; readonly reason?: string }): Block {
    const block = this.#reader.block(dimension.split('+').sort().join('+'), entity, options)
    this.#reader.entries.removeBlock(block)
    return block
  }
}
