/** While hits are rare, one lookup in this many uses the cache. */
const SPARSE = 8

/** The cache is worthwhile if one lookup in this many is a hit: a miss costs about half of what a hit saves. */
const WORTHWHILE = 3

/**
 * Caches up to `capacity` values by kind and string. Evicts by generation: when the young generation is full, it
 * becomes the old one, and the previous old one is dropped; a hit moves an entry to the young one. While hits are rare,
 * as in a flood of random strings, only one lookup in eight uses the cache. That costs little and detects when hits
 * return.
 */
export class MatchCache<V> {
  readonly #half: number
  #young: Map<string, V>[]
  #old: Map<string, V>[]
  #youngSize = 0
  #oldSize = 0
  #asked = 0
  #found = 0
  #isSparse = false
  #turn = 0

  /**
   * `kinds`: number of kinds, numbered from 0. `capacity`: maximum number of entries of all kinds together, even, 2 or
   * more.
   */
  constructor(kinds: number, capacity: number) {
    this.#half = capacity / 2
    this.#young = mapsOf(kinds)
    this.#old = mapsOf(kinds)
  }

  /** Number of entries. */
  get size(): number {
    return this.#youngSize + this.#oldSize
  }

  /** The cached value of a string. Undefined if there is none, or if this lookup does not use the cache. */
  get(kind: number, key: string): V | undefined {
    if (this.#isSparse) {
      this.#turn = (this.#turn + 1) % SPARSE
      if (this.#turn !== 0) return undefined
    }
    if (this.#asked >= this.#half) this.#judge()
    this.#asked++
    const value = this.#young[kind]!.get(key)
    if (value !== undefined) {
      this.#found++
      return value
    }
    const older = this.#old[kind]!.get(key)
    if (older !== undefined) {
      this.#found++
      this.#keep(kind, key, older)
    }
    return older
  }

  /** Stores the value for the last lookup that missed, unless that lookup did not use the cache. */
  add(kind: number, key: string, value: V): void {
    if (this.#turn === 0) this.#keep(kind, key, value)
  }

  #judge(): void {
    this.#isSparse = this.#found * WORTHWHILE < this.#asked
    this.#asked = 0
    this.#found = 0
  }

  #keep(kind: number, key: string, value: V): void {
    if (this.#youngSize >= this.#half) {
      this.#old = this.#young
      this.#oldSize = this.#youngSize
      this.#young = mapsOf(this.#old.length)
      this.#youngSize = 0
    }
    this.#young[kind]!.set(key, value)
    this.#youngSize++
  }
}

function mapsOf<V>(kinds: number): Map<string, V>[] {
  return Array.from({ length: kinds }, () => new Map<string, V>())
}
