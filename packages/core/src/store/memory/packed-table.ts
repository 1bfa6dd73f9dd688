import type { Verdict } from '../../algorithms/algorithm.ts'
import type { Fingerprint } from '../../fingerprint.ts'
import { expirySecondsOf, useByte } from '../decide-batch.ts'

// One slot, in 32-bit words: fingerprint (2 words), 24 bits of fingerprint with 8 bits of use, expiry in seconds, then
// the state as doubles. Slots stand in one buffer, so that a lookup touches one or two cache lines. Linear probing;
// removal shifts later entries back, so a search may stop at the first empty slot (expiry 0).
const HEADER_WORDS = 4
const FINGERPRINT_2 = 0x00_ff_ff_ff
const MAX_LOAD = 0.85
const SMALLEST_SLOTS = 64

/**
 * How many keys a search for room looks at. Keys and not slots: so a crowded part of the table gives up more of them
 * than an empty one, and the table stays even.
 */
const ROOM_SEARCH_KEYS = 64

/** How many slots every insertion looks at to free what has expired, so that idle keys go without a timer. */
const SWEEP_STEP = 2

/** A use of 255 says that nothing is left: such a key is never evicted for another. */
export const USED_UP = 255

/** A slot number that is no slot. */
export const NO_SLOT = -1

/**
 * A bounded hash table from fingerprints to small fixed-size states. It holds at most `maxKeys`; when it is full, an
 * insertion frees expired keys first, then the least used of those it looks at, and fails when all of them are used up.
 */
export class PackedTable {
  readonly #width: number
  readonly #maxKeys: number
  readonly #slotWords: number
  #slots: number
  #words: Int32Array
  #values: Float64Array
  #count = 0
  #hand = 0
  /** Keys dropped to make room while they were still in use. */
  evictions = 0

  constructor(width: number, maxKeys: number) {
    this.#width = width
    this.#maxKeys = maxKeys
    this.#slotWords = HEADER_WORDS + 2 * width
    this.#slots = SMALLEST_SLOTS
    this.#words = new Int32Array(this.#slots * this.#slotWords)
    this.#values = new Float64Array(this.#words.buffer)
  }

  /** Keys held, expired ones not yet swept included. */
  get size(): number {
    return this.#count
  }

  /** The slot of a fingerprint, or {@link NO_SLOT}. */
  find(fingerprint: Fingerprint): number {
    const words = this.#words
    const stride = this.#slotWords
    const mask = this.#slots - 1
    const { word0, word1 } = fingerprint
    const word2 = fingerprint.word2 << 8
    let slot = word0 & mask
    for (;;) {
      const at = slot * stride
      if (words[at] === word0 && words[at + 1] === word1 && words[at + 2]! << 8 === word2) return slot
      if (words[at + 3] === 0) return NO_SLOT
      slot = (slot + 1) & mask
    }
  }

  /** Like {@link find}, and copies as many values of the state as `into` is long, two or more. */
  load(fingerprint: Fingerprint, into: number[]): number {
    const slot = this.find(fingerprint)
    if (slot === NO_SLOT) return NO_SLOT
    const values = this.#values
    const at = (slot * this.#slotWords + HEADER_WORDS) >> 1
    into[0] = values[at]!
    into[1] = values[at + 1]!
    for (let index = 2; index < into.length; index++) into[index] = values[at + index]!
    return slot
  }

  /** True when the state of a slot says no more than an empty one. */
  isExpired(slot: number, nowSeconds: number): boolean {
    return this.#words[slot * this.#slotWords + 3]! >>> 0 < nowSeconds
  }

  /** Stores the state after a verdict that allows, and what eviction must know: when it expires, how much it uses. */
  write(slot: number, verdict: Verdict, capacity: number): void {
    const at = slot * this.#slotWords
    const words = this.#words
    words[at + 2] = (words[at + 2]! & FINGERPRINT_2) | (useByte(capacity, verdict.remaining) << 24)
    words[at + 3] = expirySecondsOf(verdict)
    const first = (at + HEADER_WORDS) >> 1
    const { next } = verdict
    const values = this.#values
    values[first] = next[0]!
    values[first + 1] = next[1]!
    for (let index = 2; index < this.#width; index++) values[first + index] = next[index]!
  }

  /** A slot for a fingerprint that is not in the table, or {@link NO_SLOT} when there is no room. Write it at once. */
  insert(fingerprint: Fingerprint, nowSeconds: number): number {
    this.#sweep(nowSeconds)
    if (this.#count >= this.#maxKeys && !this.#makeRoom(nowSeconds)) return NO_SLOT
    if (this.#count + 1 > this.#slots * MAX_LOAD) this.#grow()
    const mask = this.#slots - 1
    let slot = fingerprint.word0 & mask
    while (this.#words[slot * this.#slotWords + 3] !== 0) slot = (slot + 1) & mask
    const at = slot * this.#slotWords
    this.#words[at] = fingerprint.word0
    this.#words[at + 1] = fingerprint.word1
    this.#words[at + 2] = fingerprint.word2 & FINGERPRINT_2
    this.#count++
    return slot
  }

  /** Removes a slot's entry, moving those after it that would no longer be found. */
  remove(slot: number): void {
    const mask = this.#slots - 1
    let hole = slot
    for (let next = (slot + 1) & mask; ; next = (next + 1) & mask) {
      const at = next * this.#slotWords
      if (this.#words[at + 3] === 0) break
      const home = this.#words[at]! & mask
      // An entry may move into the hole unless its home lies after the hole, on the way from the hole to the entry.
      if (((next - home) & mask) < ((next - hole) & mask)) continue
      this.#words.copyWithin(hole * this.#slotWords, at, at + this.#slotWords)
      hole = next
    }
    // All of it: a search compares fingerprints before it looks whether a slot is empty.
    this.#words.fill(0, hole * this.#slotWords, (hole + 1) * this.#slotWords)
    this.#count--
  }

  #sweep(nowSeconds: number): void {
    for (let step = 0; step < SWEEP_STEP; step++) {
      const slot = this.#hand
      if (this.#words[slot * this.#slotWords + 3] !== 0 && this.isExpired(slot, nowSeconds)) this.remove(slot)
      else this.#hand = (slot + 1) & (this.#slots - 1)
    }
  }

  #makeRoom(nowSeconds: number): boolean {
    let least = USED_UP
    let victim = NO_SLOT
    let seen = 0
    for (let step = 0; step < this.#slots && seen < ROOM_SEARCH_KEYS; step++) {
      const slot = this.#hand
      this.#hand = (slot + 1) & (this.#slots - 1)
      const at = slot * this.#slotWords
      if (this.#words[at + 3] === 0) continue
      if (this.isExpired(slot, nowSeconds)) {
        this.remove(slot)
        return true
      }
      seen++
      const used = this.#words[at + 2]! >>> 24
      if (used < least) {
        least = used
        victim = slot
      }
    }
    if (victim === NO_SLOT) return false
    this.remove(victim)
    this.evictions++
    return true
  }

  #grow(): void {
    const before = this.#words
    const slotsBefore = this.#slots
    this.#slots *= 2
    this.#words = new Int32Array(this.#slots * this.#slotWords)
    this.#values = new Float64Array(this.#words.buffer)
    this.#hand = 0
    const mask = this.#slots - 1
    for (let slot = 0; slot < slotsBefore; slot++) {
      const at = slot * this.#slotWords
      if (before[at + 3] === 0) continue
      let target = before[at]! & mask
      while (this.#words[target * this.#slotWords + 3] !== 0) target = (target + 1) & mask
      this.#words.set(before.subarray(at, at + this.#slotWords), target * this.#slotWords)
    }
  }
}
