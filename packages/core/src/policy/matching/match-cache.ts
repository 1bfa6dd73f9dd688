/** While the cache does not pay, one lookup in this many uses it. */
const SPARSE = 8

/** The cache pays when one lookup in this many is a hit: a miss costs about half of what a hit saves. */
const WORTHWHILE = 3

/**
 * Remembers values by a kind and a text, `capacity` of them at most. It forgets by generations: when the young one is
 * full it becomes the old one, and the old one goes as a whole; what is used stays young. While little is used again,
 * as in a flood of random texts, only one question in eight is looked at: that costs next to nothing, and notices when
 * it changes.
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

  /** `kinds` are the numbers from 0 on; `capacity` is the number of entries of all kinds together, even, 2 or more. */
  constructor(kinds: number, capacity: number) {
    this.#half = capacity / 2
    this.#young = mapsOf(kinds)
    this.#old = mapsOf(kinds)
  }

  /** Entries held. */
  get size(): number {
    return this.#youngSize + this.#oldSize
  }

  /** The value of a text, if it is remembered and this question is looked at. */
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

  /** Remembers what the last question did not find; not when that was not looked at. */
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
