import type { Dimension } from '../rule-set/rule-set.ts'
import type { Block } from './live-entry.ts'

/** Of no reload: made by this process, and in force whether or not a reload has it. */
const OWN = -1

/** A block and where it stands. */
class HeldBlock {
  block: Block
  /** The reload it was put in, or {@link OWN}. */
  reload: number
  /** Its place in the heap it is in. */
  at = 0

  constructor(block: Block, reload: number) {
    this.block = block
    this.reload = reload
  }
}

/** Blocks by when they end, the soonest on top: a binary heap whose entries know their place. */
class EndHeap {
  readonly #blocks: HeldBlock[] = []

  get size(): number {
    return this.#blocks.length
  }

  /** The block that ends soonest. */
  get top(): HeldBlock | undefined {
    return this.#blocks[0]
  }

  add(held: HeldBlock): void {
    this.#rise(held, this.#blocks.length)
  }

  remove(held: HeldBlock): void {
    const last = this.#blocks.pop()!
    if (last === held) return
    // The last one takes the free place, and goes up or down from there.
    if (held.at > 0 && last.block.until < this.#blocks[(held.at - 1) >> 1]!.block.until) this.#rise(last, held.at)
    else this.#sink(last, held.at)
  }

  #rise(held: HeldBlock, from: number): void {
    let at = from
    while (at > 0) {
      const above = this.#blocks[(at - 1) >> 1]!
      if (above.block.until <= held.block.until) break
      this.#set(above, at)
      at = (at - 1) >> 1
    }
    this.#set(held, at)
  }

  #sink(held: HeldBlock, from: number): void {
    let at = from
    for (;;) {
      let below = at * 2 + 1
      if (below >= this.#blocks.length) break
      if (below + 1 < this.#blocks.length && this.#until(below + 1) < this.#until(below)) below++
      if (held.block.until <= this.#until(below)) break
      this.#set(this.#blocks[below]!, at)
      at = below
    }
    this.#set(held, at)
  }

  #until(at: number): number {
    return this.#blocks[at]!.block.until
  }

  #set(held: HeldBlock, at: number): void {
    this.#blocks[at] = held
    held.at = at
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
  readonly #ofRules = new EndHeap()
  readonly #setByHand = new EndHeap()
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

  /** From now on it is noted what is put. One that was begun before and not ended is begun anew. */
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
      this.#remove(heap.top!)
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

  #forget(heap: EndHeap, nowMs: number): void {
    for (let { top } = heap; top !== undefined && isForgotten(top.block, nowMs); { top } = heap) this.#remove(top)
  }

  #heapOf(block: Block): EndHeap {
    return block.rule === undefined ? this.#setByHand : this.#ofRules
  }
}

function isForgotten({ until, forgottenAt }: Block, nowMs: number): boolean {
  return until <= nowMs && forgottenAt <= nowMs
}
