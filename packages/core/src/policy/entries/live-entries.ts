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

/** What {@link LiveEntries} work with. */
export interface LiveEntriesOptions {
  /** Keys the hash tables. */
  readonly random: Random
  /** The time by which entries that are put have expired or not. */
  readonly clock: Clock
  /** Bits of an IPv6 address that make one caller. */
  readonly ipv6PrefixLength: number
  /** Lifts in the store what a block put there. */
  readonly lift: (block: Block) => void
  /** See {@link PolicyEngineOptions}. */
  readonly apiKeyDigest?: ((apiKey: string) => string) | undefined
}

/** How much there is. Expired entries count until a lookup finds them. */
export interface LiveEntrySizes {
  readonly overrides: number
  /** Distinct terms of overrides. */
  readonly distinctTerms: number
  readonly members: number
  readonly blocks: number
  /** Blocks dropped for lack of room before they were forgotten, since the start. */
  readonly droppedBlocks: number
}

/** Maximum number of blocks that rules led to; beyond it the one that ends soonest goes. */
const MOST_BLOCKS = 100_000

const NO_INCIDENT: Incident = Object.freeze({ active: false })

/** Names are their own text, and need no copy. */
const TIER_NAMES: ValueForm<string> = { textOf: (name) => name, keep: (name) => name }

/**
 * The live entries of an engine, as configuration writes them: overrides, memberships of tiers, blocks and the incident
 * switch. Entries are not checked; the configuration store checks what it reads. Changes apply from the next request
 * on.
 *
 * A reload sends everything again while what is there stays in force: `beginReload`, then a put for every entry that
 * exists, then `endReload`. Changes may be made meanwhile. A reload that breaks off may be restarted.
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
 * Everything that changes without a new rule set. {@link EngineEntries} is the part for configuration: there, entities
 * may have any spelling. The rest is for decisions, which pass their time and the entity in the spelling that is
 * counted. What has expired has no effect from that instant on. For one thread.
 */
export class LiveEntries {
  /** Bits of an IPv6 address that make one caller: entries for two addresses of one network are for the same. */
  readonly ipv6PrefixLength: number
  readonly #clock: Clock
  readonly #lift: (block: Block) => void
  readonly #overrides: OverrideTable
  readonly #members: EntityTable<string>
  readonly #blocks = new BlockTable(MOST_BLOCKS)
  #incident = NO_INCIDENT
  #isReloading = false
  /** Whether the incident was set since the reload was begun. */
  #hasNewIncident = false

  constructor({ random, clock, ipv6PrefixLength, lift, apiKeyDigest }: LiveEntriesOptions) {
    this.ipv6PrefixLength = ipv6PrefixLength
    this.#clock = clock
    this.#lift = lift
    this.#overrides = new OverrideTable(random, apiKeyDigest)
    this.#members = new EntityTable(random, TIER_NAMES)
  }

  /** False when no caller has an override: then none has to be looked for. */
  get hasOverrides(): boolean {
    return this.#overrides.size > 0
  }

  /** False when no caller belongs to a tier. */
  get hasMembers(): boolean {
    return this.#members.size > 0
  }

  /** False when no caller is blocked, nor was lately. */
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
   * What holds for an entity in the place of a rule's own numbers: the terms of its override for the resource of the
   * scope, else of the one for every resource. Equal terms are always the same object.
   */
  overrideFor(scope: OverrideScope, entity: string, nowMs: number): OverrideTerms | undefined {
    return this.#overrides.termsOf(scope, entity, nowMs)
  }

  /** The name of the tier an entity belongs to. */
  tierOf(dimension: Dimension, entity: string, nowMs: number): string | undefined {
    const place = this.#members.placeOf(dimension)
    return place === undefined ? undefined : this.#members.find(place, entity, nowMs)
  }

  /** The block that an entity is denied by, or undefined. */
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

  /** Puts a block that this process made itself. A reload leaves it alone, which may come from before it was known. */
  putOwnBlock(block: Block, nowMs: number): void {
    this.#blocks.putOwn(block, nowMs)
  }

  /** Lifts a block that a request was denied by, and forgets its strikes. False when there was none. */
  liftBlock(dimension: Dimension, entity: string): boolean {
    return this.#blocks.remove(dimension, entity)
  }

  putOverride(override: Override): void {
    this.#overrides.putOverride(this.#counted(override), this.#nowMs())
  }

  /** False when it was not there. The resource may be spelled in any way that rules may. */
  removeOverride({ dimension, entity, resource }: Pick<Override, 'dimension' | 'entity' | 'resource'>): boolean {
    const counted = this.#counted({ dimension, entity })
    return this.#overrides.removeOverride(counted.dimension, counted.entity, resource)
  }

  putMember(member: Membership): void {
    const { dimension, entity, tier, expiresAt } = this.#counted(member)
    this.#members.put({ place: dimension, entity }, { value: tier, expiresAt }, this.#nowMs())
  }

  /** False when it was not there. */
  removeMember({ dimension, entity }: Pick<Membership, 'dimension' | 'entity'>): boolean {
    const counted = this.#counted({ dimension, entity })
    return this.#members.remove(counted.dimension, counted.entity)
  }

  /**
   * Puts a block as the configuration has it; `PolicyEngine.block` makes one. It replaces any other block of that
   * entity, except one with more strikes that this process made itself when this one comes from a rule: then it is
   * older news.
   */
  putBlock(block: Block): void {
    this.#blocks.put(this.#counted(block), this.#nowMs())
  }

  /**
   * Forgets a block that the configuration no longer has, also in a store that only this node counts in: it was lifted,
   * maybe on another node. Use `PolicyEngine.unblock` to lift one. False when it was not there.
   */
  removeBlock({ dimension, entity }: Pick<Block, 'dimension' | 'entity'>): boolean {
    const counted = this.#counted({ dimension, entity })
    const running = this.blockOf(counted.dimension, counted.entity, this.#nowMs())
    if (running !== undefined) this.#lift(running)
    return this.#blocks.remove(counted.dimension, counted.entity)
  }

  /** All blocks that have not ended, the soonest to end first. */
  blocks(): readonly Block[] {
    return this.#blocks.active(this.#nowMs())
  }

  setIncident(incident: Incident): void {
    this.#incident = incident
    this.#hasNewIncident = true
  }

  /** Begins a reload, or restarts it: what is there stays in force, and goes at the end unless it was put again. */
  beginReload(): void {
    this.#overrides.beginReload()
    this.#members.beginReload()
    this.#blocks.beginReload()
    this.#isReloading = true
    this.#hasNewIncident = false
  }

  /** Ends a reload: what was not put since it was begun is dropped, but for blocks that this process made. */
  endReload(): void {
    if (!this.#isReloading) return
    this.#isReloading = false
    this.#overrides.endReload(this.#nowMs())
    this.#members.endReload(this.#nowMs())
    this.#blocks.endReload()
    if (!this.#hasNewIncident) this.#incident = NO_INCIDENT
  }

  /** An entry under the spelling that requests are counted by. */
  #counted<E extends { readonly dimension: string; readonly entity: string }>(entry: E): E {
    return countedEntity(entry, this.ipv6PrefixLength)
  }

  #nowMs(): number {
    return this.#clock.nowMicros() / MICROS_PER_MS
  }
}
