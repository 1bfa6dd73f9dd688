import { type NowMs, readClock } from '../clock-and-random.ts'
import { requireInteger } from '../option-range.ts'

/** Options of {@link TopK}. */
export interface TopKOptions {
  /**
   * Number of keys to track, 1 to 1,000,000. The error is at most `2 x total / (capacity + 1)`: start with 10 times the
   * number of keys to show.
   */
  readonly capacity: number
}

/** A key and its count: at least `count`, at most `count + missed`. */
export interface TopKEntry {
  readonly key: string
  readonly count: number
  /** Upper bound of the occurrences before the key was last added. */
  readonly missed: number
}

/** The state of a {@link TopK}: plain data that can be sent to another thread. */
export interface TopKSnapshot {
  /** Sum of all counts, of all keys. */
  readonly total: number
  /** Upper bound of the count of a key that is not among the entries. */
  readonly missed: number
  /** Sorted by descending `count`, then by key. */
  readonly entries: readonly TopKEntry[]
}

interface Tally {
  count: number
  readonly missed: number
}

/**
 * The most frequent keys, in bounded memory for any input (Misra-Gries counters, each with its error bound).
 *
 * Every key that makes up more than `2 / (capacity + 1)` of the total is among the entries. A count is never too high,
 * and too low by at most `missed`, which is at most `2 x total / (capacity + 1)`. With at most `capacity` different
 * keys, every count is exact.
 *
 * `add` takes amortized constant time: when there is one key too many, the lower half is dropped in `capacity x
 * log(capacity)`, and that many new keys must arrive before it happens again.
 */
export class TopK {
  readonly #capacity: number
  readonly #tallies = new Map<string, Tally>()
  #total = 0
  /** No dropped or unseen key has a higher count. */
  #missed = 0

  constructor(options: TopKOptions) {
    this.#capacity = requireInteger('capacity', options.capacity, { min: 1, max: 1_000_000 })
  }

  /** Counts `key` `amount` times: an integer, 1 or more. Default: 1. */
  add(key: string, amount = 1): void {
    requireInteger('amount', amount, { min: 1, max: Number.MAX_SAFE_INTEGER })
    this.#total += amount
    const known = this.#tallies.get(key)
    if (known !== undefined) {
      known.count += amount
      return
    }
    this.#tallies.set(key, { count: amount, missed: this.#missed })
    if (this.#tallies.size > this.#capacity) this.#dropLowerHalf()
  }

  /** The `most` most frequent keys, most frequent first. Default: all. */
  top(most: number = this.#tallies.size): TopKEntry[] {
    requireInteger('most', most, { min: 0, max: Number.MAX_SAFE_INTEGER })
    return Array.from(this.#tallies, ([key, { count, missed }]) => ({ key, count, missed }))
      .sort(byFallingCount)
      .slice(0, most)
  }

  /** The state, to be sent and merged. */
  snapshot(): TopKSnapshot {
    return { total: this.#total, missed: this.#missed, entries: this.top() }
  }

  /** Forgets everything. */
  clear(): void {
    this.#tallies.clear()
    this.#total = 0
    this.#missed = 0
  }

  // The bound of the error: dropping raises #missed by d, and takes d from what every key at or above the median has
  // beyond #missed. Those are at least half of capacity + 1 keys, and no more can be taken than was added.
  #dropLowerHalf(): void {
    const greatest = Float64Array.from(this.#tallies.values(), ({ count, missed }) => count + missed).sort()
    const median = greatest[(greatest.length - 1) >> 1] as number
    for (const [key, { count, missed }] of this.#tallies) {
      if (count + missed <= median) this.#tallies.delete(key)
    }
    this.#missed = median
  }
}

/**
 * Merges snapshots, as if one {@link TopK} had counted everything: counts and error bounds are added. The error stays
 * within `2 x total / (capacity + 1)` if all had that capacity. The result has at most as many entries as all of them
 * together.
 */
export function mergeTopK(snapshots: readonly TopKSnapshot[]): TopKSnapshot {
  const missed = snapshots.reduce((sum, snapshot) => sum + snapshot.missed, 0)
  const tallies = new Map<string, { count: number; missed: number }>()
  for (const snapshot of snapshots) {
    for (const entry of snapshot.entries) {
      let tally = tallies.get(entry.key)
      if (tally === undefined) {
        tally = { count: 0, missed }
        tallies.set(entry.key, tally)
      }
      tally.count += entry.count
      // Where it is kept, its own error holds, instead of that of keys that are not.
      tally.missed += entry.missed - snapshot.missed
    }
  }
  const total = snapshots.reduce((sum, snapshot) => sum + snapshot.total, 0)
  const entries = Array.from(tallies, ([key, tally]) => ({ key, ...tally })).sort(byFallingCount)
  return { total, missed, entries }
}

function byFallingCount(one: TopKEntry, other: TopKEntry): number {
  if (one.count !== other.count) return other.count - one.count
  return one.key < other.key ? -1 : 1
}

/** Options of {@link RecentTopK}. */
export interface RecentTopKOptions extends TopKOptions {
  /** Minimum time for which a key is remembered, in milliseconds: 1000 to 86400000 (a day). */
  readonly windowMs: number
  /** The clock. */
  readonly nowMs: NowMs
}

/** The state of a {@link RecentTopK}. */
export interface RecentTopKSnapshot extends TopKSnapshot {
  /** Start of the covered time: `windowMs` to twice that ago. */
  readonly startedAt: number
}

/**
 * The most frequent recent keys, in the memory of two {@link TopK}: one for the current generation and one for the
 * previous. A generation lasts `windowMs` and starts at a multiple of it on the clock, so those of several threads or
 * machines change together and can be merged.
 *
 * If the clock goes back by less than a generation, time stands still until it has caught up; if it goes back further,
 * everything is cleared.
 */
export class RecentTopK {
  readonly #windowMs: number
  readonly #nowMs: NowMs
  #current: TopK
  #previous: TopK
  #generation: number

  constructor(options: RecentTopKOptions) {
    this.#windowMs = requireInteger('windowMs', options.windowMs, { min: 1000, max: 86_400_000 })
    this.#nowMs = options.nowMs
    this.#current = new TopK(options)
    this.#previous = new TopK(options)
    this.#generation = this.#readGeneration()
  }

  /** Counts `key` `amount` times now: an integer, 1 or more. Default: 1. */
  add(key: string, amount = 1): void {
    this.#turn()
    this.#current.add(key, amount)
  }

  /** The `most` most frequent keys, most frequent first. */
  top(most: number): TopKEntry[] {
    requireInteger('most', most, { min: 0, max: Number.MAX_SAFE_INTEGER })
    return this.snapshot().entries.slice(0, most)
  }

  /** The state of both generations, to be sent and merged with {@link mergeTopK}. */
  snapshot(): RecentTopKSnapshot {
    this.#turn()
    const merged = mergeTopK([this.#current.snapshot(), this.#previous.snapshot()])
    return { ...merged, startedAt: (this.#generation - 1) * this.#windowMs }
  }

  #turn(): void {
    const generation = this.#readGeneration()
    if (generation === this.#generation || generation === this.#generation - 1) return
    const emptied = this.#previous
    this.#previous = this.#current
    this.#current = emptied
    this.#current.clear()
    if (generation !== this.#generation + 1) this.#previous.clear()
    this.#generation = generation
  }

  #readGeneration(): number {
    return Math.floor(readClock(this.#nowMs) / this.#windowMs)
  }
}
