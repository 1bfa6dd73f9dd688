import { requireInteger } from '../option-range.ts'
import { type NowMs, readClock } from '../system.ts'

/** How many keys a {@link TopK} keeps apart. */
export interface TopKOptions {
  /** 1 to 1,000,000. The error is at most `2 x total / (capacity + 1)`: 10 times the keys to be shown is a good start. */
  readonly capacity: number
}

/** A key and how often it came: at least `count`, at most `count + missed`. */
export interface TopKEntry {
  readonly key: string
  readonly count: number
  /** What may have come of this key before it was last taken up. */
  readonly missed: number
}

/** The keys of a {@link TopK} at one moment: plain data that can be sent to another thread. */
export interface TopKSnapshot {
  /** Everything that was added, of all keys. */
  readonly total: number
  /** A key that is not among the entries came at most so often. */
  readonly missed: number
  /** By falling `count`, those of one count by key. */
  readonly entries: readonly TopKEntry[]
}

interface Tally {
  count: number
  readonly missed: number
}

/**
 * The keys that come most often, in bounded memory, whatever keys come (the counters of Misra and Gries, each with the
 * error it may have).
 *
 * Every key that makes up more than `2 / (capacity + 1)` of the total is among the entries. A count is never too high,
 * and too low by at most `missed`, which is itself at most `2 x total / (capacity + 1)`; while no more than `capacity`
 * different keys came, every count is exact.
 *
 * `add` takes constant time on average: when there is one key too many, the lower half is dropped at once, in time
 * `capacity x log(capacity)`, and that many new keys have to come before it happens again.
 */
export class TopK {
  readonly #capacity: number
  readonly #tallies = new Map<string, Tally>()
  #total = 0
  /** No key that was dropped, or never came, has come more often. */
  #missed = 0

  constructor(options: TopKOptions) {
    this.#capacity = requireInteger('capacity', options.capacity, { min: 1, max: 1_000_000 })
  }

  /** Counts `key` `amount` times: a whole number, 1 or more. Default 1. */
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

  /** The `most` keys that came most often, best first; all that are kept when left out. */
  top(most: number = this.#tallies.size): TopKEntry[] {
    requireInteger('most', most, { min: 0, max: Number.MAX_SAFE_INTEGER })
    return Array.from(this.#tallies, ([key, { count, missed }]) => ({ key, count, missed }))
      .sort(byFallingCount)
      .slice(0, most)
  }

  /** Everything that is known, to be sent and merged. */
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
 * One snapshot of several, as if one {@link TopK} had seen everything: counts are added, and so is what each may have
 * missed. The error stays within `2 x total / (capacity + 1)` when all had that capacity. There are at most as many
 * entries as in all of them together.
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

/** What a {@link RecentTopK} remembers. */
export interface RecentTopKOptions extends TopKOptions {
  /** How long a key is remembered at least: 1000 (a second) to 86400000 (a day). */
  readonly windowMs: number
  /** The clock. */
  readonly nowMs: NowMs
}

/** The keys of a {@link RecentTopK} at one moment. */
export interface RecentTopKSnapshot extends TopKSnapshot {
  /** What came before this instant is forgotten: `windowMs` to twice that ago. */
  readonly startedAt: number
}

/**
 * The keys that come most often lately, in the memory of two {@link TopK}: one for the current generation and one for
 * the generation before. A generation lasts `windowMs` and begins at a multiple of it on the clock, so those of several
 * threads or machines change together and can be merged.
 *
 * When the clock goes back by less than a generation, time stands still until it has caught up; when it goes back
 * further, the clock was wrong before, and everything is forgotten.
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

  /** Counts `key` `amount` times now: a whole number, 1 or more. Default 1. */
  add(key: string, amount = 1): void {
    this.#turn()
    this.#current.add(key, amount)
  }

  /** The `most` keys that came most often, best first. */
  top(most: number): TopKEntry[] {
    requireInteger('most', most, { min: 0, max: Number.MAX_SAFE_INTEGER })
    return this.snapshot().entries.slice(0, most)
  }

  /** Everything that is known of both generations, to be sent and merged with {@link mergeTopK}. */
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
