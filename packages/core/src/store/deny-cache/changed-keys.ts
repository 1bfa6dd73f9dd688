/** So many changes are remembered: more than are made while one question is under way. */
const REMEMBERED = 4096

/**
 * Which keys were changed lately, so that an answer which was under way meanwhile is not taken for the latest. Bounded: of
 * what was forgotten, every key counts as changed.
 */
export class ChangedKeys {
  readonly #ring: (string | undefined)[] = []
  readonly #latest = new Map<string, number>()
  #count = 0

  /** Changes so far. */
  get count(): number {
    return this.#count
  }

  note(key: string): void {
    const place = this.#count % REMEMBERED
    const leaving = this.#ring[place]
    if (leaving !== undefined && this.#latest.get(leaving) === this.#count - REMEMBERED) this.#latest.delete(leaving)
    this.#ring[place] = key
    this.#latest.set(key, this.#count)
    this.#count++
  }

  /** Whether the key may have been changed since `count` was what is given. */
  changedSince(count: number, key: string): boolean {
    if (count === this.#count) return false
    return this.#count - count > REMEMBERED || (this.#latest.get(key) ?? -1) >= count
  }
}
