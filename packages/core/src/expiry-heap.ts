/** An entry of an {@link ExpiryHeap}. It is in one heap at a time. */
export interface HeapEntry {
  /** Must not change while the entry is in the heap. */
  readonly endsAt: number
  /** Position in the heap. Belongs to the heap. */
  position: number
}

/** Entries by the time they end, the soonest first: a binary heap whose entries know their position. */
export class ExpiryHeap<T extends HeapEntry> {
  readonly #entries: T[] = []

  get size(): number {
    return this.#entries.length
  }

  /** The entry that ends soonest. */
  get first(): T | undefined {
    return this.#entries[0]
  }

  add(entry: T): void {
    this.#rise(entry, this.#entries.length)
  }

  /** `entry` must be in this heap. */
  remove(entry: T): void {
    const { position } = entry
    const last = this.#entries.pop()!
    if (last === entry) return
    // The last entry takes the free position, and goes up or down from there.
    if (position > 0 && last.endsAt < this.#entries[(position - 1) >> 1]!.endsAt) this.#rise(last, position)
    else this.#sink(last, position)
  }

  #rise(entry: T, from: number): void {
    const entries = this.#entries
    let position = from
    while (position > 0) {
      const parent = entries[(position - 1) >> 1]!
      if (parent.endsAt <= entry.endsAt) break
      this.#set(parent, position)
      position = (position - 1) >> 1
    }
    this.#set(entry, position)
  }

  #sink(entry: T, from: number): void {
    const entries = this.#entries
    let position = from
    for (;;) {
      let child = position * 2 + 1
      if (child >= entries.length) break
      if (child + 1 < entries.length && entries[child + 1]!.endsAt < entries[child]!.endsAt) child++
      if (entry.endsAt <= entries[child]!.endsAt) break
      this.#set(entries[child]!, position)
      position = child
    }
    this.#set(entry, position)
  }

  #set(entry: T, position: number): void {
    this.#entries[position] = entry
    entry.position = position
  }
}
