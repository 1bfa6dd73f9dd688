import { USED_UP } from './packed-table.ts'

interface Entry {
  state: readonly number[]
  expirySeconds: number
  used: number
}

/** How many entries a search for room looks at, to free what has expired. */
const ROOM_SEARCH = 64

/** How many entries every insertion looks at, so that idle keys go without a timer. */
const SWEEP_STEP = 2

/** Levels of use by which keys are grouped: eighths of the limit, and used up. */
const LEVELS = 9

function levelOf(used: number): number {
  return used === USED_UP ? LEVELS - 1 : used >> 5
}

/**
 * A bounded table for states of varying length, which do not fit a packed slot: the exact log, long rings, leases. When
 * it is full, an insertion frees expired keys first, then the key that has used least, the oldest of those to an
 * eighth, and fails when all of them are used up.
 */
export class VariableSizeTable {
  readonly #maxKeys: number
  readonly #entries = new Map<string, Entry>()
  /** The keys of each level of use: who must go is found without a search. */
  readonly #levels: readonly Set<string>[] = Array.from({ length: LEVELS }, () => new Set<string>())
  #hand: MapIterator<[string, Entry]>
  /** Keys dropped to make room while they were still in use. */
  evictions = 0

  constructor(maxKeys: number) {
    this.#maxKeys = maxKeys
    this.#hand = this.#entries.entries()
  }

  /** Keys held, expired ones not yet swept included. */
  get size(): number {
    return this.#entries.size
  }

  /** The state of a key, or undefined. */
  read(key: string): readonly number[] | undefined {
    return this.#entries.get(key)?.state
  }

  /** Stores a state; false when the key is new and there is no room. */
  write(
    key: string,
    state: readonly number[],
    { expirySeconds, used, nowSeconds }: { expirySeconds: number; used: number; nowSeconds: number },
  ): boolean {
    const entry = this.#entries.get(key)
    if (entry !== undefined) {
      if (levelOf(entry.used) !== levelOf(used)) {
        this.#levels[levelOf(entry.used)]!.delete(key)
        this.#levels[levelOf(used)]!.add(key)
      }
      entry.state = state
      entry.expirySeconds = expirySeconds
      entry.used = used
      return true
    }
    this.#sweep(nowSeconds, SWEEP_STEP)
    if (this.#entries.size >= this.#maxKeys && !this.#makeRoom(nowSeconds)) return false
    this.#entries.set(key, { state, expirySeconds, used })
    this.#levels[levelOf(used)]!.add(key)
    return true
  }

  /** Forgets a key. */
  remove(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#entries.delete(key)
    this.#levels[levelOf(entry.used)]!.delete(key)
  }

  #makeRoom(nowSeconds: number): boolean {
    this.#sweep(nowSeconds, ROOM_SEARCH)
    if (this.#entries.size < this.#maxKeys) return true
    const lowest = this.#levels.findIndex((keys) => keys.size > 0)
    if (lowest === LEVELS - 1) return false
    const [victim] = this.#levels[lowest]!
    this.remove(victim!)
    this.evictions++
    return true
  }

  /** Passes over some entries and frees the expired. */
  #sweep(nowSeconds: number, count: number): void {
    for (let step = 0; step < count; step++) {
      let { value, done } = this.#hand.next()
      if (done === true) {
        this.#hand = this.#entries.entries()
        ;({ value, done } = this.#hand.next())
        if (done === true) return
      }
      const [key, entry] = value as [string, Entry]
      if (entry.expirySeconds < nowSeconds) this.remove(key)
    }
  }
}
