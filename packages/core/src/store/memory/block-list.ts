import { SluiceError } from '../../errors.ts'

/** Maximum number of blocks. */
const LARGEST_LIST = 1_000_000

/** Keys that a rule denies until an instant. Expired ones are removed when they are found, or when the list is full. */
export class BlockList {
  readonly #rules = new Map<string, Map<string, number>>()
  #size = 0

  /** Number of blocks, including expired ones that have not been removed yet. */
  get size(): number {
    return this.#size
  }

  /** Until when `key` is blocked under `rule` (microseconds since 1970), 0 when it is not. */
  until(rule: string, key: string, now: number): number {
    const until = this.#rules.get(rule)?.get(key)
    if (until === undefined) return 0
    if (until > now) return until
    this.lift(rule, key)
    return 0
  }

  /** Blocks `key` until an instant. Throws `SLUICE_STORE_FULL` if there are a million active blocks. */
  set(rule: string, key: string, { until, now }: { until: number; now: number }): void {
    const isNew = this.#rules.get(rule)?.has(key) !== true
    if (isNew && this.#size >= LARGEST_LIST) this.#dropExpired(now)
    if (isNew && this.#size >= LARGEST_LIST) {
      throw new SluiceError('SLUICE_STORE_FULL', {
        problem: 'too many keys are blocked',
        received: this.#size,
        expected: `fewer than ${LARGEST_LIST}`,
        action: 'Block wider keys (a network instead of addresses), or for a shorter time.',
      })
    }
    let keys = this.#rules.get(rule)
    if (keys === undefined) {
      keys = new Map()
      this.#rules.set(rule, keys)
    }
    if (isNew) this.#size++
    keys.set(key, until)
  }

  /** Ends a block, if there is one. */
  lift(rule: string, key: string): void {
    const keys = this.#rules.get(rule)
    if (keys?.delete(key) !== true) return
    this.#size--
    if (keys.size === 0) this.#rules.delete(rule)
  }

  #dropExpired(now: number): void {
    for (const [rule, keys] of this.#rules) {
      for (const [key, until] of keys) if (until <= now) this.lift(rule, key)
    }
  }
}
