import type { Clock } from '../../system/clock.ts'
import { MICROS_PER_MS } from '../../system/clock.ts'
import { countedEntity } from '../matching/counted-address.ts'
import type { LiveEntries, LiveEntrySizes } from './live-entries.ts'
import type { Block, Incident, Membership, Override } from './live-entry.ts'

/** What entries of an engine are kept with. */
export interface EngineEntriesParts {
  readonly live: LiveEntries
  readonly clock: Clock
  readonly ipv6PrefixLength: number
  /** Lifts in the store what a block put there. */
  readonly lift: (block: Block) => void
}

/**
 * The live entries of an engine, as configuration writes them: overrides, memberships of tiers, blocks and the incident
 * switch. Entries are taken as given; whoever reads them from outside checks them first (`checkOverride` and so on). Changes
 * hold from the next request on.
 */
export class EngineEntries {
  readonly #live: LiveEntries
  readonly #clock: Clock
  /** Bits of an IPv6 address that make one caller: entries for two addresses of one network are for the same. */
  readonly ipv6PrefixLength: number
  readonly #lift: (block: Block) => void

  constructor({ live, clock, ipv6PrefixLength, lift }: EngineEntriesParts) {
    this.#live = live
    this.#clock = clock
    this.ipv6PrefixLength = ipv6PrefixLength
    this.#lift = lift
  }

  /** How many there are, for metrics. */
  get sizes(): LiveEntrySizes {
    return this.#live.sizes
  }

  putOverride(override: Override): void {
    this.#live.putOverride(this.#counted(override), this.#nowMs())
  }

  /** False when it was not there. */
  removeOverride({ dimension, entity, resource }: Pick<Override, 'dimension' | 'entity' | 'resource'>): boolean {
    const counted = this.#counted({ dimension, entity })
    return this.#live.removeOverride(counted.dimension, counted.entity, resource)
  }

  putMember(member: Membership): void {
    this.#live.putMember(this.#counted(member), this.#nowMs())
  }

  /** False when it was not there. */
  removeMember({ dimension, entity }: Pick<Membership, 'dimension' | 'entity'>): boolean {
    const counted = this.#counted({ dimension, entity })
    return this.#live.removeMember(counted.dimension, counted.entity)
  }

  /** Puts a block as the configuration has it. Use `PolicyEngine.block` to make one. */
  putBlock(block: Block): void {
    this.#live.putBlock(this.#counted(block), this.#nowMs())
  }

  /**
   * Forgets a block that the configuration no longer has, also in a store that only this node counts in: it was lifted, maybe on
   * another node. Use `PolicyEngine.unblock` to lift one. False when it was not there.
   */
  removeBlock({ dimension, entity }: Pick<Block, 'dimension' | 'entity'>): boolean {
    const counted = this.#counted({ dimension, entity })
    const running = this.#live.blockOf(counted.dimension, counted.entity, this.#nowMs())
    if (running !== undefined) this.#lift(running)
    return this.#live.removeBlock(counted.dimension, counted.entity)
  }

  /** All blocks that have not ended, the soonest to end first. */
  blocks(): readonly Block[] {
    return this.#live.blocks(this.#nowMs())
  }

  setIncident(incident: Incident): void {
    this.#live.putIncident(incident)
  }

  /** Begins to bring everything anew: what is there stays in force, and goes at the end unless it was put again. */
  beginReload(): void {
    this.#live.beginReload()
  }

  endReload(): void {
    this.#live.endReload(this.#nowMs())
  }

  /** An entry under the spelling that requests are counted by. */
  #counted<E extends { readonly dimension: string; readonly entity: string }>(entry: E): E {
    return countedEntity(entry, this.ipv6PrefixLength)
  }

  #nowMs(): number {
    return this.#clock.nowMicros() / MICROS_PER_MS
  }
}
