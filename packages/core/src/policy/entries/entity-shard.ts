import type { Fingerprint } from '../../fingerprint.ts'

// One slot, in 32-bit words: fingerprint (3 words), then the number shifted by two flag bits: whether it expires, and
// its mark. One byte of the fingerprint is in a separate array, 0 for an empty slot: small enough to stay in the CPU
// cache, so that a lookup of a missing entry, the common case, does not wait for memory. Expiry times are separate too,
// and exist only once an entry expires. Linear probing; removal shifts later entries back, so a lookup ends at an empty
// slot.
const SLOT_WORDS = 4
const HELD = 3
const HELD_SHIFT = 2
const EXPIRES = 2
const MARK = 1

const MOST_LOAD = 0.8
/** If it is fuller than this without expired entries, it grows. */
const GROW_LOAD = 0.6
const LEAST_LOAD = 0.1
const SMALLEST_SLOTS = 8

/** The arrays of an empty shard: nothing to allocate, and a lookup ends at once. Never written to. */
const NO_WORDS = new Int32Array(SLOT_WORDS)
const NO_TAGS = new Uint8Array(1)

/** No slot. */
export const NO_SLOT = -1

/** Called with the numbers that a shard no longer holds. */
interface HeldNumbers {
  release(held: number): void
}

/** The value of a fingerprint. */
interface ShardEntry {
  /** 1 to 2^29 - 1. */
  readonly held: number
  /** 0 or 1. */
  readonly mark: number
  /** Milliseconds since 1970; infinite for never. */
  readonly expiresAt: number
}

/** Which entries to drop. */
interface Leaving {
  /** Entries that have expired by then. */
  readonly nowMs: number
  /** Entries with this mark; none if undefined. */
  readonly mark: number | undefined
}

const NOTHING: Leaving = { nowMs: Number.NEGATIVE_INFINITY, mark: undefined }

/** A hash table from fingerprints to numbers, which may expire. It grows and shrinks automatically. */
export class EntityShard {
  readonly #numbers: HeldNumbers
  #slots = 1
  #words: Int32Array = NO_WORDS
  #tags: Uint8Array = NO_TAGS
  #expiries: Float64Array | undefined = undefined
  #count = 0

  constructor(numbers: HeldNumbers) {
    this.#numbers = numbers
  }

  /** Entries, including expired ones that no lookup has found. */
  get size(): number {
    return this.#count
  }

  /** The slot of a fingerprint, or {@link NO_SLOT}. Valid until the next change. */
  find(fingerprint: Fingerprint): number {
    const words = this.#words
    const tags = this.#tags
    const mask = this.#slots - 1
    const { word0, word1, word2 } = fingerprint
    const tag = tagOf(word2)
    let slot = word0 & mask
    for (;;) {
      const seen = tags[slot]
      if (seen === 0) return NO_SLOT
      if (seen === tag) {
        const at = slot * SLOT_WORDS
        if (words[at] === word0 && words[at + 1] === word1 && words[at + 2] === word2) return slot
      }
      slot = (slot + 1) & mask
    }
  }

  /** The number held in a slot. */
  heldAt(slot: number): number {
    return this.#words[slot * SLOT_WORDS + HELD]! >>> HELD_SHIFT
  }

  /** Whether the entry in a slot has expired. */
  isExpired(slot: number, nowMs: number): boolean {
    if ((this.#words[slot * SLOT_WORDS + HELD]! & EXPIRES) === 0) return false
    return this.#expiries![slot]! <= nowMs
  }

  /** Sets a number. `nowMs`: entries that have expired by then may be dropped to make space. */
  put(fingerprint: Fingerprint, { held, mark, expiresAt }: ShardEntry, nowMs: number): void {
    let slot = this.find(fingerprint)
    if (slot === NO_SLOT) slot = this.#insert(fingerprint, nowMs)
    else this.#numbers.release(this.heldAt(slot))
    const expires = expiresAt === Number.POSITIVE_INFINITY ? 0 : EXPIRES
    this.#words[slot * SLOT_WORDS + HELD] = (held << HELD_SHIFT) | expires | mark
    if (expires === 0) return
    this.#expiries ??= new Float64Array(this.#slots)
    this.#expiries[slot] = expiresAt
  }

  /** Empties a slot, and moves later entries that would no longer be found. */
  remove(slot: number): void {
    const words = this.#words
    const tags = this.#tags
    const mask = this.#slots - 1
    this.#numbers.release(this.heldAt(slot))
    let hole = slot
    for (let next = (slot + 1) & mask; tags[next] !== 0; next = (next + 1) & mask) {
      const at = next * SLOT_WORDS
      const home = words[at]! & mask
      // An entry may move into the gap unless its home position is after the gap, on the way from the gap to the entry.
      if (((next - home) & mask) < ((next - hole) & mask)) continue
      words.copyWithin(hole * SLOT_WORDS, at, at + SLOT_WORDS)
      tags[hole] = tags[next]!
      if (this.#expiries !== undefined) this.#expiries[hole] = this.#expiries[next]!
      hole = next
    }
    tags[hole] = 0
    this.#count--
    if (this.#count < this.#slots * LEAST_LOAD && this.#slots > SMALLEST_SLOTS) this.#rebuild(this.#slots >> 2, NOTHING)
  }

  /** Gives every entry the same mark. */
  markAll(mark: number): void {
    const words = this.#words
    for (let at = HELD; at < words.length; at += SLOT_WORDS) words[at] = (words[at]! & ~MARK) | mark
  }

  /** Drops expired entries, and those with a mark. */
  drop(leaving: Leaving): void {
    const staying = this.#countStaying(leaving)
    if (staying === this.#count) return
    let slots = this.#slots
    while (slots > SMALLEST_SLOTS && staying < slots * LEAST_LOAD) slots >>= 2
    this.#rebuild(slots, leaving)
  }

  #insert(fingerprint: Fingerprint, nowMs: number): number {
    if (this.#count + 1 > this.#slots * MOST_LOAD) {
      const leaving = { nowMs, mark: undefined }
      const grows = this.#countStaying(leaving) + 1 > this.#slots * GROW_LOAD
      this.#rebuild(grows ? this.#slots * 2 : this.#slots, leaving)
    }
    const words = this.#words
    const slot = emptySlot(this.#tags, fingerprint.word0)
    this.#tags[slot] = tagOf(fingerprint.word2)
    const at = slot * SLOT_WORDS
    words[at] = fingerprint.word0
    words[at + 1] = fingerprint.word1
    words[at + 2] = fingerprint.word2
    this.#count++
    return slot
  }

  #leaves(slot: number, { nowMs, mark }: Leaving): boolean {
    return (this.#words[slot * SLOT_WORDS + HELD]! & MARK) === mark || this.isExpired(slot, nowMs)
  }

  #countStaying(leaving: Leaving): number {
    let count = 0
    for (let slot = 0; slot < this.#slots; slot++) {
      if (this.#tags[slot] !== 0 && !this.#leaves(slot, leaving)) count++
    }
    return count
  }

  /** Moves the remaining entries to a table of that many slots, or the smallest one. */
  #rebuild(leastSlots: number, leaving: Leaving): void {
    const slots = Math.max(SMALLEST_SLOTS, leastSlots)
    const words = new Int32Array(slots * SLOT_WORDS)
    const tags = new Uint8Array(slots)
    let expiries: Float64Array | undefined
    const before = this.#words
    let count = 0
    for (let slot = 0; slot < this.#slots; slot++) {
      const tag = this.#tags[slot]!
      if (tag === 0) continue
      if (this.#leaves(slot, leaving)) {
        this.#numbers.release(this.heldAt(slot))
        continue
      }
      const from = slot * SLOT_WORDS
      const target = emptySlot(tags, before[from]!)
      tags[target] = tag
      for (let word = 0; word < SLOT_WORDS; word++) words[target * SLOT_WORDS + word] = before[from + word]!
      if ((before[from + HELD]! & EXPIRES) !== 0) {
        expiries ??= new Float64Array(slots)
        expiries[target] = this.#expiries![slot]!
      }
      count++
    }
    this.#slots = slots
    this.#words = words
    this.#tags = tags
    this.#expiries = expiries
    this.#count = count
  }
}

/** The byte that represents a fingerprint; not 0. */
function tagOf(word2: number): number {
  return word2 & 0xff || 0xff
}

/** Home position for `word0` in a table that is not full. */
function emptySlot(tags: Uint8Array, word0: number): number {
  const mask = tags.length - 1
  let slot = word0 & mask
  while (tags[slot] !== 0) slot = (slot + 1) & mask
  return slot
}
