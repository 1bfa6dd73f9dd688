import { USED_UP } from './packed-table.ts'

interface Entry {
  state: readonly number[]
  expirySeconds: number
  used: number
}

const ROOM_SEARCH = 32

/**
 * A bounded table for states of varying length, which do not fit a packed slot: the exact log, long rings, leases. Same
 * rules of room as the packed table.
 */
export class ListTable {
  readonly #maxKeys: number
  readonly #entries = new Map<string, Entry>()
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
      entry.state = state
      entry.expirySeconds = expirySeconds
      entry.used = used
      return true
    }
    this.#look(nowSeconds, 2)
    if (this.#entries.size >= this.#maxKeys && !this.#makeRoom(nowSeconds)) return false
    this.#entries.set(key, { state, expirySeconds, used })
    return true
  }

  /** Forgets a key. */
  remove(key: string): void {
    this.#entries.delete(key)
  }

  #makeRoom(nowSeconds: number): boolean {
    const victim = this.#look(nowSeconds, ROOM_SEARCH)
    if (this.#entries.size < this.#maxKeys) return true
    if (victim === undefined) return false
    this.#entries.delete(victim)
    this.evictions++
    return true
  }

  /** Passes over some entries, freeing the expired. Returns the least used key seen that is not used up. */
  #look(nowSeconds: number, count: number): string | undefined {
    let least = USED_UP
    let victim: string | undefined
    for (let step = 0; step < count; step++) {
      let { value, done } = this.#hand.next()
      if (done === true) {
        this.#hand = this.#entries.entries()
        ;({ value, done } = this.#hand.next())
        if (done === true) return victim
      }
      const [key, entry] = value as [string, Entry]
      if (entry.expirySeconds < nowSeconds) this.#entries.delete(key)
      else if (entry.used < least) {
        least = entry.used
        victim = key
      }
    }
    return victim
  }
}
