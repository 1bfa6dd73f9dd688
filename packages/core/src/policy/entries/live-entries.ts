import type { Clock } from '../../system/clock-and-timers.ts'
import { MICROS_PER_MS } from '../../system/clock-and-timers.ts'
import type { Random } from '../../system/random.ts'
import type { Dimension } from '../rule-set/rule-set.ts'
import { BlockTable } from './block-table.ts'
import { EntityTable, type ValueForm } from './entity-table.ts'
import {
  type Block,
  countedEntity,
  type Incident,
  type Membership,
  type Override,
  type OverrideTerms,
} from './live-entry.ts'
import { type OverrideScope, OverrideTable } from './override-table.ts'

/** Dependencies of {@link LiveEntries}. */
export interface LiveEntriesOptions {
  /** Secret of the hash tables. */
  readonly random: Random
  /** Time for expiry when entries are put. */
  readonly clock: Clock
  /** Leading bits of an IPv6 address that identify a caller. */
  readonly ipv6PrefixLength: number
  /** Lifts a block in the store. */
  readonly lift: (block: Block) => void
  /** See {@link PolicyEngineOptions}. */
  readonly apiKeyDigest?: ((apiKey: string) => string) | undefined
}

/** Numbers of entries. Expired ones count until a lookup finds them. */
export interface LiveEntrySizes {
  readonly overrides: number
  /** Distinct terms of overrides. */
  readonly distinctTerms: number
  readonly members: number
  readonly blocks: number
  /** Blocks dropped for lack of space before they were forgotten, since the start. */
  readonly droppedBlocks: number
}

/** Maximum number of blocks caused by rules; beyond it, the one that ends first is dropped. */
const MOST_BLOCKS = 100_000

const NO_INCIDENT: Incident = Object.freeze({ active: false })

/** Names are their own text, and need no copy. */
const TIER_NAMES: ValueForm<string> = { textOf: (name) => name, keep: (name) => name }

/**
 * The live entries of an engine, as configuration writes them: overrides, memberships of tiers, blocks and the incident
 * switch. Entries are not checked; the configuration store checks what it reads. Changes apply from the next request
 * on.
 *
 * A reload sends everything again while the existing entries stay active: `beginReload`, then a put for every entry
 * that exists, then `endReload`. Other changes may be made meanwhile. An interrupted reload may be restarted.
 */
export type EngineEntries = Pick<
  LiveEntries,
  | 'ipv6PrefixLength'
  | 'sizes'
  | 'putOverride'
  | 'removeOverride'
  | 'putMember'
  | 'removeMember'
  | 'putBlock'
  | 'removeBlock'
  | 'blocks'
  | 'setIncident'
  | 'beginReload'
  | 'endReload'
>

/**
 * Everything that changes without a new rule set. {@link EngineEntries} is the part for configuration: it accepts
 * entities in any spelling. The rest is for decisions, which pass their time and the entity in canonical spelling.
 * Expired entries have no effect. For one thread.
 */
export class LiveEntries {
  /**
   * Leading bits of an IPv6 address that identify a caller: entries for two addresses of one network are the same
   * entry.
   */
  readonly ipv6PrefixLength: number
  readonly #clock: Clock
  readonly #lift: (block: Block) => void
  readonly #overrides: OverrideTable
  readonly #members: EntityTable<string>
  readonly #blocks = new BlockTable(MOST_BLOCKS)
  #incident = NO_INCIDENT
  #isReloading = false
  /** Whether the incident was set since the reload began. */
  #hasNewIncident = false

  constructor({ random, clock, ipv6PrefixLength, lift, apiKeyDigest }: LiveEntriesOptions) {
    this.ipv6PrefixLength = ipv6PrefixLength
    this.#clock = clock
    this.#lift = lift
    this.#overrides = new OverrideTable(random, apiKeyDigest)
    this.#members = new EntityTable(random, TIER_NAMES)
  }

  /** False if no caller has an override. */
  get hasOverrides(): boolean {
    return this.#overrides.size > 0
  }

  /** False if no caller is a member of a tier. */
  get hasMembers(): boolean {
    return this.#members.size > 0
  }

  /** False if no caller is or was recently blocked. */
  get hasBlocks(): boolean {
    return !this.#blocks.isEmpty
  }

  /** For metrics. */
  get sizes(): LiveEntrySizes {
    return {
      overrides: this.#overrides.size,
      distinctTerms: this.#overrides.distinctValues,
      members: this.#members.size,
      blocks: this.#blocks.size,
      droppedBlocks: this.#blocks.dropped,
    }
  }

  /**
   * The terms that replace the numbers of a rule for an entity: of its override for the resource of the scope, else of
   * the one for every resource. Equal terms are always the same object.
   */
  overrideFor(scope: OverrideScope, entity: string, nowMs: number): OverrideTerms | undefined {
    return this.#overrides.termsOf(scope, entity, nowMs)
  }

  /** The name of the tier of an entity. */
  tierOf(dimension: Dimension, entity: string, nowMs: number): string | undefined {
    const place = this.#members.placeOf(dimension)
    return place === undefined ? undefined : this.#members.find(place, entity, nowMs)
  }

  /** The block that denies an entity, or undefined. */
  blockOf(dimension: Dimension, entity: string, nowMs: number): Block | undefined {
    const block = this.#blocks.find(dimension, entity, nowMs)
    return block !== undefined && block.until > nowMs ? block : undefined
  }

  /** The block whose strikes count when an entity is blocked again: also one that has ended, until it is forgotten. */
  strikesOf(dimension: Dimension, entity: string, nowMs: number): Block | undefined {
    return this.#blocks.find(dimension, entity, nowMs)
  }

  /** Whether an incident is declared. */
  isIncident(nowMs: number): boolean {
    const { active, until } = this.#incident
    return active && (until === undefined || until > nowMs)
  }

  /** Puts a block that this process created. A reload does not remove it: the reload may have started before. */
  putOwnBlock(block: Block, nowMs: number): void {
    this.#blocks.putOwn(block, nowMs)
  }

  /** Lifts a block that denied a request, and forgets its strikes. False if there was none. */
  liftBlock(dimension: Dimension, entity: string): boolean {
    return this.#blocks.remove(dimension, entity)
  }

  putOverride(override: Override): void {
    this.#overrides.putOverride(this.#counted(override), this.#nowMs())
  }

  /** False if it did not exist. The resource may have any spelling that is valid in rules. */
  removeOverride({ dimension, entity, resource }: Pick<Override, 'dimension' | 'entity' | 'resource'>): boolean {
    const counted = this.#counted({ dimension, entity })
    return this.#overrides.removeOverride(counted.dimension, counted.entity, resource)
  }

  putMember(member: Membership): void {
    const { dimension, entity, tier, expiresAt } = this.#counted(member)
    this.#members.put({ place: dimension, entity }, { value: tier, expiresAt }, this.#nowMs())
  }

  /** False if it did not exist. */
  removeMember({ dimension, entity }: Pick<Membership, 'dimension' | 'entity'>): boolean {
    const counted = this.#counted({ dimension, entity })
    return this.#members.remove(counted.dimension, counted.entity)
  }

  /**
   * Puts a block from the configuration; `PolicyEngine.block` creates one. It replaces any other block of that entity,
   * except one with more strikes that this process created if this one comes from a rule: then it is older.
   */
  putBlock(block: Block): void {
    this.#blocks.put(this.#counted(block), this.#nowMs())
  }

  /**
   * Forgets a block that the configuration no longer has, also in a store that only this node uses: it was lifted,
   * maybe on another node. Use `PolicyEngine.unblock` to lift one. False if it did not exist.
   */
  removeBlock({ dimension, entity }: Pick<Block, 'dimension' | 'entity'>): boolean {
    const counted = this.#counted({ dimension, entity })
    const running = this.blockOf(counted.dimension, counted.entity, this.#nowMs())
    if (running !== undefined) this.#lift(running)
    return this.#blocks.remove(counted.dimension, counted.entity)
  }

  /** All blocks that have not ended, the first to end first. */
  blocks(): readonly Block[] {
    return this.#blocks.active(this.#nowMs())
  }

  setIncident(incident: Incident): void {
    this.#incident = incident
    this.#hasNewIncident = true
  }

  /**
   * Begins or restarts a reload: existing entries stay active, and are removed at the end unless they were put again.
   */
  beginReload(): void {
    this.#overrides.beginReload()
    this.#members.beginReload()
    this.#blocks.beginReload()
    this.#isReloading = true
    this.#hasNewIncident = false
  }

  /** Ends a reload: removes what was not put since it began, except blocks that this process created. */
  endReload(): void {
    if (!this.#isReloading) return
    this.#isReloading = false
    this.#overrides.endReload(this.#nowMs())
    this.#members.endReload(this.#nowMs())
    this.#blocks.endReload()
    if (!this.#hasNewIncident) this.#incident = NO_INCIDENT
  }

  /** An entry in the canonical spelling of requests. */
  #counted<E extends { readonly dimension: string; readonly entity: string }>(entry: E): E {
    return countedEntity(entry, this.ipv6PrefixLength)
  }

  #nowMs(): number {
    return this.#clock.nowMicros() / MICROS_PER_MS
  }
}
