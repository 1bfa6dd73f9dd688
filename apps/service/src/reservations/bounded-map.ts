/** A map with a maximum size. Drops the oldest entry when it is full. */
export class BoundedMap<K, V> {
  readonly #most: number
  readonly #entries = new Map<K, V>()

  /** @param most - 1 or more */
  constructor(most: number) {
    this.#most = most
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)
  }

  set(key: K, value: V): void {
    this.#entries.delete(key)
    this.#entries.set(key, value)
    if (this.#entries.size <= this.#most) return
    const [oldest] = this.#entries.keys()
    this.#entries.delete(oldest as K)
  }

  delete(key: K): void {
    this.#entries.delete(key)
  }
}
