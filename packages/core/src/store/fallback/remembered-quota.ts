import type { Verdict } from '../../algorithms/algorithm.ts'
import { createVerdict } from '../../algorithms/algorithm.ts'
import { drawSecret, Fingerprint } from '../../fingerprint.ts'
import type { Limit } from '../../rule/limit.ts'
import { MICROS_PER_SECOND } from '../../system/clock-and-timers.ts'
import type { Random } from '../../system/random.ts'
import { NO_SLOT, PackedTable } from '../memory/packed-table.ts'
import type { Batch, Item } from '../store.ts'

/** What a node last saw of one key under one limit. Times are the store's, in microseconds since 1970. */
export interface SeenQuota {
  /** Units taken of the limit. */
  readonly taken: number
  /** When the store answered. */
  readonly seenAt: number
  /** From this time on the units taken do not count any more. */
  readonly resetAt: number
  /** False when the answer was for a caller that may not use the burst, and so says nothing about the burst. */
  readonly entitled: boolean
  /** The node count of the first local decision since the answer; 0 before it. */
  readonly nodes: number
}

/** A large table is split, so that growing one part takes a fraction of a millisecond. */
const SHARD_BITS = 4
const SHARDED_FROM_KEYS = 65_536

/** Values in a slot: units taken, seenAt, resetAt, and twice the node count plus 1 when entitled. */
const WIDTH = 4

/**
 * What this node last saw of each key, for shares of what remains. Holds at most `maxKeys` keys. When it is full,
 * expired keys go first, then those that have used the least of their limit. A key that is used up is never evicted:
 * when there are only such keys, a new one is not remembered.
 */
export class RememberedQuota {
  readonly #fingerprint: Fingerprint
  readonly #shardShift: number
  readonly #tables: readonly PackedTable[]
  /** Carries the values to a slot, so that remembering an answer allocates nothing. */
  readonly #row: Verdict = createVerdict()
  readonly #values: number[] = [0.5, 0.5, 0.5, 0.5]

  constructor(maxKeys: number, random: Random) {
    const shards = maxKeys >= SHARDED_FROM_KEYS ? 1 << SHARD_BITS : 1
    this.#fingerprint = new Fingerprint(drawSecret(random))
    this.#shardShift = shards === 1 ? 32 : 32 - SHARD_BITS
    this.#tables = Array.from(
      { length: shards },
      (_, shard) => new PackedTable(WIDTH, Math.floor((maxKeys + shard) / shards)),
    )
  }

  /** Remembers an answer of the store to one item of a batch. */
  note(item: Item, batch: Batch): void {
    const { limit, verdict } = item
    const quota = quotaOf(limit, batch.entitled)
    const isCharged = batch.allowed && batch.charge
    // An item that would be allowed says what remains after its charge, also when nothing was charged.
    const uncharged = verdict.ruling === 'allowed' && !isCharged ? item.cost : 0
    const taken = quota - verdict.remaining - uncharged
    const now = item.at || batch.now
    const table = this.#tableOf(limit, item.key)
    const slot = table.find(this.#fingerprint)
    if (taken <= 0 || verdict.resetAt <= now) {
      if (slot !== NO_SLOT) table.remove(slot)
      return
    }
    const place = slot === NO_SLOT ? table.insert(this.#fingerprint, Math.floor(now / MICROS_PER_SECOND)) : slot
    if (place === NO_SLOT) return
    const { next } = this.#row
    next[0] = taken
    next[1] = now
    next[2] = verdict.resetAt
    next[3] = batch.entitled ? 1 : 0
    this.#write(table, place, quota)
  }

  /** What was last seen of a key; undefined when nothing is remembered. It may have expired. */
  find(limit: Limit, key: string): SeenQuota | undefined {
    const values = this.#values
    if (this.#tableOf(limit, key).load(this.#fingerprint, values) === NO_SLOT) return undefined
    const [taken, seenAt, resetAt, rest] = values as [number, number, number, number]
    return { taken, seenAt, resetAt, entitled: rest % 2 === 1, nodes: Math.floor(rest / 2) }
  }

  /** Replaces what is remembered of a key. */
  put(limit: Limit, key: string, seen: SeenQuota): void {
    const table = this.#tableOf(limit, key)
    const found = table.find(this.#fingerprint)
    const slot =
      found === NO_SLOT ? table.insert(this.#fingerprint, Math.floor(seen.seenAt / MICROS_PER_SECOND)) : found
    if (slot === NO_SLOT) return
    const { next } = this.#row
    next[0] = seen.taken
    next[1] = seen.seenAt
    next[2] = seen.resetAt
    next[3] = 2 * seen.nodes + (seen.entitled ? 1 : 0)
    this.#write(table, slot, quotaOf(limit, seen.entitled))
  }

  /** Forgets a key. */
  forget(limit: Limit, key: string): void {
    const table = this.#tableOf(limit, key)
    const slot = table.find(this.#fingerprint)
    if (slot !== NO_SLOT) table.remove(slot)
  }

  /** Writes the values in the row, with what eviction needs to know. */
  #write(table: PackedTable, slot: number, quota: number): void {
    const row = this.#row
    row.remaining = quota - row.next[0]!
    row.freshAt = row.next[2]!
    table.write(slot, row, quota)
  }

  /** The table of a key. Leaves the key's fingerprint in `#fingerprint`. */
  #tableOf(limit: Limit, key: string): PackedTable {
    this.#fingerprint.of(limit.space0, limit.space1, key)
    const shard = this.#shardShift === 32 ? 0 : this.#fingerprint.word1 >>> this.#shardShift
    return this.#tables[shard]!
  }
}

/** Units that a key of the limit has when nothing was taken, for a caller with or without the burst. */
export function quotaOf(limit: Limit, entitled: boolean): number {
  // Units carried over from the window before come on top: they are not there for every key.
  if (limit.algorithm === 'fixed-window') return limit.limit
  return limit.algorithm === 'hybrid' && !entitled ? limit.base.limit : limit.capacity
}
