/** Values by the order in which they first came. */
export class Numbered<T> {
  readonly #numbers = new Map<T, number>()

  /** The number of a value: from 0, the same for the same value. */
  numberOf(value: T): number {
    const known = this.#numbers.get(value)
    if (known !== undefined) return known
    const number = this.#numbers.size
    this.#numbers.set(value, number)
    return number
  }

  /** Each value once, at the place of its number. */
  get values(): readonly T[] {
    return [...this.#numbers.keys()]
  }
}
