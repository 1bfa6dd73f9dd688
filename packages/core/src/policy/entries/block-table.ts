import { ExpiryHeap, type HeapEntry } from '../../expiry-heap.ts'
import type { Dimension } from '../rule-set/rule-set.ts'
import type { Block } from './live-entry.ts'

/** Not from a reload: created by this process, and active whether or not a reload contains it. */
const OWN = -1

/** A block and its position in a heap. */
class HeldBlock implements HeapEntry {
  readonly block: Block
  /** The reload that set it, or {@link OWN}. */
  readonly reload: number
  readonly endsAt: number
  position = 0

  constructor(block: Block, reload: number) {
    this.block = block
    this.reload = reload
    this.endsAt = block.until
  }
}

/**
 * Blocks by dimension and entity. A block that has ended is kept until it is forgotten, for its strikes. Blocks caused
 * by rules are bounded in number, because callers control how many there are: if there are too many, the one that ends
 * first is dropped. Blocks that were set manually are not bounded, and never dropped for others.
 */
export class BlockTable {
  readonly #most: number
  readonly #dimensions = new Map<Dimension, Map<string, HeldBlock>>()
  readonly #ofRules = new ExpiryHeap<HeldBlock>()
  readonly #setByHand = new ExpiryHeap<HeldBlock>()
  #reload = 0
  #isReloading = false
  #dropped = 0

  /** `most`: maximum number of blocks caused by rules, 1 or more. */
  constructor(most: number) {
    this.#most = most
  }

  /** Number of blocks, possibly including forgotten ones. */
  get size(): number {
    return this.#ofRules.size + this.#setByHand.size
  }

  /** Whether `size` is 0. Every check calls this: a dimension is in the map only while it has blocks. */
  get isEmpty(): boolean {
    return this.#dimensions.size === 0
  }

  /** Number of blocks dropped for lack of space before they were forgotten. */
  get dropped(): number {
    return this.#dropped
  }

  /** The block of an entity, including one that has ended but is not forgotten. A forgotten one is dropped. */
  find(dimension: Dimension, entity: string, nowMs: number): Block | undefined {
    const held = this.#dimensions.get(dimension)?.get(entity)
    if (held === undefined) return undefined
    if (!isForgotten(held.block, nowMs)) return held.block
    this.#remove(held)
    return undefined
  }

  /** The blocks that have not ended, the first to end first. */
  active(nowMs: number): readonly Block[] {
    const found: Block[] = []
    for (const entities of this.#dimensions.values()) {
      for (const held of entities.values()) {
        if (held.block.until > nowMs) found.push(held.block)
        else if (isForgotten(held.block, nowMs)) this.#remove(held)
      }
    }
    return found.sort((one, other) => one.until - other.until)
  }

  /**
   * Sets a block from the configuration, replacing the one of the entity. A block caused by a rule does not replace a
   * later one of this process: it is outdated.
   */
  put(block: Block, nowMs: number): void {
    const held = this.#dimensions.get(block.dimension)?.get(block.entity)
    const isPast = held?.reload === OWN && block.rule !== undefined && block.strikes < held.block.strikes
    if (!isPast || isForgotten(held.block, nowMs)) this.#put(new HeldBlock(block, this.#reload), nowMs)
  }

  /** Sets a block created by this process: a reload does not remove it. */
  putOwn(block: Block, nowMs: number): void {
    this.#put(new HeldBlock(block, OWN), nowMs)
  }

  /** Lifts a block and forgets its strikes; false if there was none. */
  remove(dimension: Dimension, entity: string): boolean {
    const held = this.#dimensions.get(dimension)?.get(entity)
    if (held === undefined) return false
    this.#remove(held)
    return true
  }

  /** Begins a reload: blocks set from now on are recorded. Restarts one that has not ended. */
  beginReload(): void {
    this.#reload++
    this.#isReloading = true
  }

  /** Ends a reload: drops blocks that were not set since it began, except those of this process. */
  endReload(): void {
    if (!this.#isReloading) return
    this.#isReloading = false
    for (const entities of this.#dimensions.values()) {
      for (const held of entities.values()) {
        if (held.reload !== this.#reload && held.reload !== OWN) this.#remove(held)
      }
    }
  }

  #put(held: HeldBlock, nowMs: number): void {
    const { block } = held
    this.remove(block.dimension, block.entity)
    this.#forget(this.#ofRules, nowMs)
    this.#forget(this.#setByHand, nowMs)
    if (isForgotten(block, nowMs)) return
    const heap = this.#heapOf(block)
    if (heap === this.#ofRules && heap.size >= this.#most) {
      this.#remove(heap.first!)
      this.#dropped++
    }
    heap.add(held)
    let entities = this.#dimensions.get(block.dimension)
    if (entities === undefined) {
      entities = new Map()
      this.#dimensions.set(block.dimension, entities)
    }
    entities.set(block.entity, held)
  }

  #remove(held: HeldBlock): void {
    const { block } = held
    this.#heapOf(block).remove(held)
    const entities = this.#dimensions.get(block.dimension)!
    entities.delete(block.entity)
    if (entities.size === 0) this.#dimensions.delete(block.dimension)
  }

  #forget(heap: ExpiryHeap<HeldBlock>, nowMs: number): void {
    for (let { first } = heap; first !== undefined && isForgotten(first.block, nowMs); { first } = heap) {
      this.#remove(first)
    }
  }

  #heapOf(block: Block): ExpiryHeap<HeldBlock> {
    return block.rule === undefined ? this.#setByHand : this.#ofRules
  }
}

function isForgotten({ until, forgottenAt }: Block, nowMs: number): boolean {
  return until <= nowMs && forgottenAt <= nowMs
}
