import { ExpiryHeap, type HeapEntry } from '../../expiry-heap.ts'
import type { Dimension } from '../rule-set/rule-set.ts'
import type { Block } from './live-entry.ts'

/** Of no reload: made by this process, and in force whether or not a reload has it. */
const OWN = -1

/** A block and its position in a heap. */
class HeldBlock implements HeapEntry {
  readonly block: Block
  /** The reload it was put in, or {@link OWN}. */
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
 * Blocks by dimension and entity. One that has ended is kept until it is forgotten, for its strikes. Those that rules
 * led to are bounded in number, because callers decide how many there are: when there are too many, the one that ends
 * soonest goes. Those that were set by hand are not bounded, and never go for another.
 */
export class BlockTable {
  readonly #most: number
  readonly #dimensions = new Map<Dimension, Map<string, HeldBlock>>()
  readonly #ofRules = new ExpiryHeap<HeldBlock>()
  readonly #setByHand = new ExpiryHeap<HeldBlock>()
  #reload = 0
  #isReloading = false
  #dropped = 0

  /** `most`: blocks that rules led to, 1 or more. */
  constructor(most: number) {
    this.#most = most
  }

  /** Blocks held; some that have ended and are forgotten may be among them. */
  get size(): number {
    return this.#ofRules.size + this.#setByHand.size
  }

  /** Whether `size` is 0. Every check asks: a dimension is in the map only while it has blocks. */
  get isEmpty(): boolean {
    return this.#dimensions.size === 0
  }

  /** Blocks that were dropped to make room before they were forgotten. */
  get dropped(): number {
    return this.#dropped
  }

  /** The block of an entity, also one that has ended but is not forgotten. One that is forgotten is dropped. */
  find(dimension: Dimension, entity: string, nowMs: number): Block | undefined {
    const held = this.#dimensions.get(dimension)?.get(entity)
    if (held === undefined) return undefined
    if (!isForgotten(held.block, nowMs)) return held.block
    this.#remove(held)
    return undefined
  }

  /** The blocks that have not ended, the soonest to end first. */
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
   * Puts a block as the configuration has it, in the place of the one the entity had. A block that a rule led to does
   * not take the place of a later one made by this process: it is news of the past.
   */
  put(block: Block, nowMs: number): void {
    const held = this.#dimensions.get(block.dimension)?.get(block.entity)
    const isPast = held?.reload === OWN && block.rule !== undefined && block.strikes < held.block.strikes
    if (!isPast || isForgotten(held.block, nowMs)) this.#put(new HeldBlock(block, this.#reload), nowMs)
  }

  /** Puts a block made by this process: a reload that does not have it leaves it alone. */
  putOwn(block: Block, nowMs: number): void {
    this.#put(new HeldBlock(block, OWN), nowMs)
  }

  /** Lifts a block and forgets its strikes; false when there was none. */
  remove(dimension: Dimension, entity: string): boolean {
    const held = this.#dimensions.get(dimension)?.get(entity)
    if (held === undefined) return false
    this.#remove(held)
    return true
  }

  /** From now on it is noted what is put. One that was begun before and not ended is restarted. */
  beginReload(): void {
    this.#reload++
    this.#isReloading = true
  }

  /** Drops what was not put since the reload was begun, but for blocks made by this process. */
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
