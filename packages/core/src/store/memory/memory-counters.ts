import type { Ask, State, Verdict } from '../../algorithms/algorithm.ts'
import { algorithmOf } from '../../algorithms/algorithm.ts'
import { SluiceError } from '../../errors.ts'
import { Fingerprint } from '../../fingerprint.ts'
import type { Limit } from '../../rule/limit.ts'
import type { Clock } from '../../system/clock-and-timers.ts'
import { MICROS_PER_SECOND } from '../../system/clock-and-timers.ts'
import type { Random } from '../../system/random.ts'
import { decideBatch, expirySecondsOf, isLastOverflow, overflowBefore, stateAfter, useByte } from '../decide-batch.ts'
import { joinKey } from '../key.ts'
import type { Batch, Item } from '../store.ts'
import type { BlockList } from './block-list.ts'
import { NO_SLOT, PackedTable } from './packed-table.ts'
import { VariableSizeTable } from './variable-size-table.ts'

/** Statistics of a memory store. */
export interface MemoryStoreStats {
  /** Number of keys, including expired ones that were not removed yet. */
  readonly keys: number
  /** Keys dropped while in use, to make space for new ones. */
  readonly evictions: number
  /** Decisions and settlements on overflow counters, because there was no space for the key. */
  readonly overflowed: number
}

/** Log2 of the number of shards. Growing one shard takes a fraction of a millisecond, growing all takes tens. */
const SHARD_BITS = 6
const SHARDED_FROM_KEYS = 65_536

/** Maximum number of values of a state that fits a packed slot. */
const PACKED_SIZE = 4

const EMPTY: State = []

/**
 * The counters of a memory store: decisions and eviction. Enough for a limiter that only checks; the memory store adds
 * blocks, reservations and corrections.
 */
export class MemoryCounters {
  /** Callers that are denied for a time, from the first one on. */
  blocks: BlockList | undefined
  readonly #clock: Clock
  readonly #fingerprint: Fingerprint
  readonly #shardShift: number
  readonly #narrow: PackedTable[]
  readonly #wide: PackedTable[]
  readonly #lists: VariableSizeTable
  readonly #overflow = new Map<string, number[]>()
  readonly #ask: Ask = { now: 0.5, cost: 0, holder: 0, entitled: true }
  /** Reused for reading states of 0 to 4 values, so that the common decision allocates nothing. */
  readonly #scratch: number[][] = [[], [0.5], [0.5, 0.5], [0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 0.5]]
  #overflowed = 0
  #closed = false

  constructor(maxKeys: number, clock: Clock, random: Random) {
    const shards = maxKeys >= SHARDED_FROM_KEYS ? 1 << SHARD_BITS : 1
    // Rounded so that all shards together hold exactly maxKeys.
    const keysIn = (shard: number): number => Math.floor((maxKeys + shard) / shards)
    this.#clock = clock
    this.#fingerprint = new Fingerprint(random)
    this.#shardShift = shards === 1 ? 32 : 32 - SHARD_BITS
    this.#narrow = Array.from({ length: shards }, (_, shard) => new PackedTable(2, keysIn(shard)))
    this.#wide = Array.from({ length: shards }, (_, shard) => new PackedTable(4, keysIn(shard)))
    this.#lists = new VariableSizeTable(maxKeys)
  }

  stats(): MemoryStoreStats {
    let [keys, evictions] = [this.#lists.size, this.#lists.evictions]
    for (const table of [...this.#narrow, ...this.#wide]) {
      keys += table.size
      evictions += table.evictions
    }
    return { keys, evictions, overflowed: this.#overflowed }
  }

  /** The time now. Throws if this is closed. */
  nowMicros(): number {
    if (this.#closed)
      throw new SluiceError('SLUICE_CLOSED', { problem: 'the memory store is closed', action: 'Create a new one.' })
    return this.#clock.nowMicros()
  }

  /** Decides a batch at `batch.now`. */
  decide(batch: Batch): void {
    if (batch.items.length === 1 && !batch.partial && isPacked(batch.items[0]!.limit)) {
      this.#decideOne(batch, batch.items[0]!)
    } else {
      this.#decideMany(batch)
    }
  }

  /** Forgets the counters of `key` under these limits, and a block under their rules. */
  reset(limits: readonly Limit[], key: string): void {
    for (const limit of limits) {
      this.blocks?.lift(limit.rule, key)
      this.forget(limit, key)
    }
  }

  close(): void {
    this.#closed = true
  }

  forget(limit: Limit, key: string): void {
    if (!isPacked(limit)) {
      this.#lists.remove(joinKey([limit.id, key]))
      return
    }
    const table = this.#tableOf(limit, key)
    const slot = table.find(this.#fingerprint)
    if (slot !== NO_SLOT) table.remove(slot)
  }

  /** The state of a key; empty if there is none. */
  load(limit: Limit, key: string): State {
    if (!isPacked(limit)) return this.#lists.read(joinKey([limit.id, key])) ?? EMPTY
    const table = this.#tableOf(limit, key)
    const state = this.#scratch[limit.stateSize]!.slice()
    return table.load(this.#fingerprint, state) === NO_SLOT ? EMPTY : state
  }

  /** Stores what a verdict says. False when the key is new and there is no room for it. */
  save(limit: Limit, key: string, { verdict, now }: { verdict: Verdict; now: number }): boolean {
    if (!isPacked(limit)) {
      return this.#lists.write(joinKey([limit.id, key]), verdict.next.slice(0, verdict.nextLength), {
        expirySeconds: expirySecondsOf(verdict),
        used: useByte(limit.capacity, verdict.remaining),
        nowSeconds: Math.floor(now / MICROS_PER_SECOND),
      })
    }
    const table = this.#tableOf(limit, key)
    return this.#write(table, table.find(this.#fingerprint), { limit, verdict, now })
  }

  /** Changes the counter that keys without room share. `change` gets its state, and returns whether to store. */
  changeOverflow(limit: Limit, verdict: Verdict, change: (state: State) => boolean): void {
    if (!change(this.#overflow.get(limit.id) ?? EMPTY)) return
    this.#overflowed++
    this.#overflow.set(limit.id, verdict.next.slice(0, verdict.nextLength))
  }

  /** The common case, without allocation: one limit, whose state fits a packed slot. */
  #decideOne(batch: Batch, item: Item): void {
    const { limit, key, verdict } = item
    const now = batch.now
    const ask = this.#ask
    ask.now = now
    ask.cost = item.cost
    ask.holder = batch.holder
    ask.entitled = batch.entitled
    item.blockedUntil = this.blocks === undefined ? 0 : this.blocks.until(limit.rule, key, now)
    const table = this.#tableOf(limit, key)
    const scratch = this.#scratch[limit.stateSize]!
    const slot = table.load(this.#fingerprint, scratch)
    const state = slot === NO_SLOT ? EMPTY : scratch
    const algorithm = algorithmOf(limit)
    algorithm.decide(state, limit, ask, verdict)
    batch.allowed = verdict.ruling === 'allowed' && item.blockedUntil === 0
    if (!batch.allowed || !batch.charge || item.cost === 0) return
    if (slot !== NO_SLOT) {
      table.write(slot, verdict, limit.capacity)
      return
    }
    if (this.#write(table, slot, { limit, verdict, now })) return
    this.#overflowed++
    algorithm.decide(this.#overflow.get(limit.id) ?? EMPTY, limit, ask, verdict)
    batch.allowed = verdict.ruling === 'allowed'
    if (batch.allowed) this.#overflow.set(limit.id, verdict.next.slice(0, verdict.nextLength))
  }

  /** Any batch: look at all, decide all, then charge all. Nothing else runs in between, so it is one step. */
  #decideMany(batch: Batch): void {
    const states = batch.items.map((item) => {
      item.blockedUntil = this.blocks?.until(item.limit.rule, item.key, batch.now) ?? 0
      return this.load(item.limit, item.key)
    })
    decideBatch(batch, (index) => states[index]!)
    if (!batch.allowed || !batch.charge) return
    const homeless = new Set<number>()
    for (const [index, item] of batch.items.entries()) {
      if (item.cost > 0 && !this.save(item.limit, item.key, { verdict: item.verdict, now: batch.now }))
        homeless.add(index)
    }
    if (homeless.size > 0) this.#decideHomeless(batch, states, homeless)
  }

  /** Some keys of a batch have no room: they count on the overflow of their limit. If that denies, all is undone. */
  #decideHomeless(batch: Batch, states: readonly State[], homeless: ReadonlySet<number>): void {
    const { items, now } = batch
    this.#overflowed += homeless.size
    const stateOf = (index: number): State => {
      if (!homeless.has(index)) return states[index]!
      const before = overflowBefore(items, homeless, index)
      return before < 0
        ? (this.#overflow.get(items[index]!.limit.id) ?? EMPTY)
        : stateAfter(items[before]!.verdict, stateOf(before))
    }
    decideBatch(batch, stateOf)
    for (const [index, item] of items.entries()) {
      if (item.cost === 0 || homeless.has(index)) continue
      const before = states[index]!
      if (batch.allowed) this.save(item.limit, item.key, { verdict: item.verdict, now })
      else if (before.length === 0) this.forget(item.limit, item.key)
      else this.save(item.limit, item.key, { verdict: asVerdict(item.verdict, before), now })
    }
    if (!batch.allowed) return
    for (const index of homeless) {
      const { limit, verdict } = items[index]!
      if (isLastOverflow(items, homeless, index))
        this.#overflow.set(limit.id, verdict.next.slice(0, verdict.nextLength))
    }
  }

  #write(
    table: PackedTable,
    slot: number,
    { limit, verdict, now }: { limit: Limit; verdict: Verdict; now: number },
  ): boolean {
    const place = slot === NO_SLOT ? table.insert(this.#fingerprint, Math.floor(now / MICROS_PER_SECOND)) : slot
    if (place === NO_SLOT) return false
    table.write(place, verdict, limit.capacity)
    return true
  }

  /** The table a key of the limit belongs to. Leaves the key's fingerprint in `#fingerprint`. */
  #tableOf(limit: Limit, key: string): PackedTable {
    this.#fingerprint.of(limit.space0, limit.space1, key)
    const shard = this.#shardShift === 32 ? 0 : this.#fingerprint.word1 >>> this.#shardShift
    return (limit.stateSize <= 2 ? this.#narrow : this.#wide)[shard]!
  }
}

function isPacked(limit: Limit): boolean {
  return limit.fixedSize && limit.stateSize <= PACKED_SIZE
}

/** A verdict that stores `state` again. */
function asVerdict(verdict: Verdict, state: State): Verdict {
  return { ...verdict, next: [...state], nextLength: state.length }
}
