import type { Limit } from '../../rule/limit.ts'

/**
 * Limits that say where a charge was made: copies, each of one limit, that are known to have been made here. A receipt
 * carries its limits along, and so finds the way back.
 */
export class MarkedLimits {
  readonly #copies = new WeakMap<Limit, Limit>()
  readonly #made = new WeakSet<Limit>()

  of(limit: Limit): Limit {
    const known = this.#copies.get(limit)
    if (known !== undefined) return known
    const copy = Object.freeze({ ...limit })
    this.#copies.set(limit, copy)
    this.#made.add(copy)
    return copy
  }

  has(limit: Limit): boolean {
    return this.#made.has(limit)
  }
}
