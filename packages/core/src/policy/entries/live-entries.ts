import { SluiceError } from '../../errors.ts'
import type { Random } from '../../system/random.ts'
import type { Dimension } from '../rule-set/rule-set.ts'
import { BlockTable } from './block-table.ts'
import { EntityTable } from './entity-table.ts'
import type { ValueForm } from './interned-values.ts'
import type { Block, Incident, Membership, Override, OverrideTerms } from './live-entry.ts'
import type { OverrideScope } from './override-table.ts'
import { OverrideTable } from './override-table.ts'

/** What {@link LiveEntries} work with. */
export interface LiveEntriesOptions {
  /** Keys the hash tables. */
  readonly random: Random
  /** Most blocks that rules led to; beyond it the one that ends soonest goes. 1 to 10,000,000. Default: 100,000. */
  readonly mostBlocks?: number
}

/** How much there is. Entries that have expired are counted until somebody meets them. */
export interface LiveEntrySizes {
  readonly overrides: number
  /** Distinct terms of overrides. */
  readonly distinctTerms: number
  readonly members: number
  readonly blocks: number
  /** Blocks dropped for lack of room before they were forgotten, since the start. */
  readonly droppedBlocks: number
}

const MOST_BLOCKS = 100_000
const LARGEST_MOST_BLOCKS = 10_000_000

const NO_INCIDENT: Incident = Object.freeze({ active: false })

/** Names are their own text, and need no copy. */
const TIER_NAMES: ValueForm<string> = { textOf: (name) => name, keep: (name) => name }

/**
 * Everything that changes without a new rule set: overrides, memberships, blocks and the incident. Entries are taken as
 * given, checked by whoever reads them; entities are written as requests give them (addresses in the one spelling that the
 * engine counts them by). Whatever has expired has no effect from that instant on. For one thread.
 *
 * A reload brings everything anew while what is there stays in force: `beginReload`, then a put for every entry that
 * exists, then `endReload`. Changes may be made meanwhile. A reload that breaks off may be begun anew.
 */
export class LiveEntries {
  readonly #overrides: OverrideTable
  readonly #members: EntityTable<string>
  readonly #blocks: BlockTable
  #incident = NO_INCIDENT
  #isReloading = false
  /** Whether the incident was put since the reload was begun. */
  #hasNewIncident = false

  constructor({ random, mostBlocks = MOST_BLOCKS }: LiveEntriesOptions) {
    if (!Number.isInteger(mostBlocks) || mostBlocks < 1 || mostBlocks > LARGEST_MOST_BLOCKS) {
      throw new SluiceError('SLUICE_INVALID_OPTION', {
        problem: '"mostBlocks" cannot be used',
        received: mostBlocks,
        expected: `a whole number from 1 to ${LARGEST_MOST_BLOCKS}`,
      })
    }
    this.#overrides = new OverrideTable(random)
    this.#members = new EntityTable(random, TIER_NAMES)
    this.#blocks = new BlockTable(mostBlocks)
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
    return this.#blocks.size > 0
  }

  /** For metrics. */
  get sizes(): LiveEntrySizes {
    return {
      overrides: this.#overrides.size,
      distinctTerms: this.#overrides.distinctTerms,
      members: this.#members.size,
      blocks: this.#blocks.size,
      droppedBlocks: this.#blocks.dropped,
    }
  }

  /**
   * What holds for an entity in the place of a rule's own numbers: the terms of its override for the resource of the scope,
   * else of the one for every resource. Equal terms are always the same object.
   */
  overrideFor(scope: OverrideScope, entity: string, nowMs: number): OverrideTerms | undefined {
    return this.#overrides.find(scope, entity, nowMs)
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

  /** All blocks that have not ended, the soonest to end first. */
  blocks(nowMs: number): readonly Block[] {
    return this.#blocks.active(nowMs)
  }

  /** Whether an incident is declared. */
  isIncident(nowMs: number): boolean {
    const { active, until } = this.#incident
    return active && (until === undefined || until > nowMs)
  }

  putOverride(override: Override, nowMs: number): void {
    this.#overrides.put(override, nowMs)
  }

  /** False when it was not there. The resource may be spelled in any way that rules may. */
  removeOverride(dimension: Dimension, entity: string, resource: string): boolean {
    return this.#overrides.remove(dimension, entity, resource)
  }

  putMember({ dimension, entity, tier, expiresAt }: Membership, nowMs: number): void {
    this.#members.put({ place: dimension, entity }, { value: tier, expiresAt }, nowMs)
  }

  /** False when it was not there. */
  removeMember(dimension: Dimension, entity: string): boolean {
    return this.#members.remove(dimension, entity)
  }

  /**
   * Puts a block as the configuration has it. It takes the place of any other of that entity, except of one with more
   * strikes that {@link putOwnBlock} put when this one comes from a rule: then it is older news.
   */
  putBlock(block: Block, nowMs: number): void {
    this.#blocks.put(block, nowMs)
  }

  /** Puts a block that this process made itself. A reload leaves it alone, which may come from before it was known. */
  putOwnBlock(block: Block, nowMs: number): void {
    this.#blocks.putOwn(block, nowMs)
  }

  /** Lifts a block and forgets its strikes. False when there was none. */
  removeBlock(dimension: Dimension, entity: string): boolean {
    return this.#blocks.remove(dimension, entity)
  }

  putIncident(incident: Incident): void {
    this.#incident = incident
    this.#hasNewIncident = true
  }

  /** Begins a reload, or begins it anew. What is there stays in force. */
  beginReload(): void {
    this.#overrides.beginReload()
    this.#members.beginReload()
    this.#blocks.beginReload()
    this.#isReloading = true
    this.#hasNewIncident = false
  }

  /** Ends a reload: what was not put since it was begun is dropped, but for blocks that this process made. */
  endReload(nowMs: number): void {
    if (!this.#isReloading) return
    this.#isReloading = false
    this.#overrides.endReload(nowMs)
    this.#members.endReload(nowMs)
    this.#blocks.endReload()
    if (!this.#hasNewIncident) this.#incident = NO_INCIDENT
  }

  /** Drops everything, and ends a reload that is under way. */
  clear(): void {
    this.#isReloading = false
    this.#overrides.clear()
    this.#members.clear()
    this.#blocks.clear()
    this.#incident = NO_INCIDENT
  }
}
