import type { Fingerprint } from '../../fingerprint.ts'
import { USED_UP } from '../memory/packed-table.ts'
import { BUCKET_WORDS, HEADER, OVERFLOW_BUCKETS, type SharedLayout } from './layout.ts'
import { RecordPool } from './record-pool.ts'
import { SharedWords } from './shared-words.ts'
import { type Entry, isReference, type TransactionParts, Transactions } from './transaction.ts'

const RECORD_MASK = 0x00ff_ffff
const TAG_SHIFT = 24

const NO_STATE: readonly number[] = []

/** How many buckets a search for expired records looks at. */
const RECLAIM_BUCKETS = 4

/** What became of looking for a key. */
export interface Place {
  /** `found`: the slot holds the key. `vacant`: the key may go into the slot. `full`: there is no slot for it. */
  kind: 'found' | 'vacant' | 'full'
  /** The slot, in 32-bit halves, as it was read. */
  half: number
  version: number
  payload: number
  /** The bucket's own word as it was read before the slots: unchanged, no key has come into the bucket since. */
  bucketHalf: number
  bucketVersion: number
  bucketPayload: number
  /** Copy of the fingerprint's tag, to make the payload of a new record. */
  tag: number
  /** The state found; empty when none was. */
  state: readonly number[]
  /** Where states are copied to. */
  readonly room: number[]
}

/** How to look for a key. */
export interface Search {
  readonly nowSeconds: number
  /** Look among the counters of keys that found no room, where any slot may be taken. */
  readonly overflow: boolean
  /** Consider only slots that hold a key: their records are replaced, so none is used up. */
  readonly occupiedOnly: boolean
  /** Slots that must not be offered. */
  readonly avoid: readonly number[]
}

/** A place to be filled by {@link SharedTable.locate}. */
export function createPlace(): Place {
  return {
    kind: 'full',
    half: 0,
    version: 0,
    payload: 0,
    bucketHalf: 0,
    bucketVersion: 0,
    bucketPayload: 0,
    tag: 0,
    state: NO_STATE,
    room: [],
  }
}

/** A hash table in shared memory, as one thread sees it. See `transaction.ts` for how several words change at once. */
export class SharedTable {
  readonly words: SharedWords
  readonly records: RecordPool
  readonly transactions: Transactions
  readonly #halves: Int32Array
  readonly #layout: SharedLayout

  constructor(buffer: SharedArrayBuffer, parts: TransactionParts) {
    const { layout, thread } = parts
    this.#halves = new Int32Array(buffer)
    this.#layout = layout
    this.words = new SharedWords(buffer)
    this.records = new RecordPool(this.#halves, { words: this.words, layout, thread })
    this.transactions = new Transactions(this.words, this.#halves, parts)
  }

  /** Adds to one of the header's counters. */
  count(counter: 'evictions' | 'overflowed', by: number): void {
    Atomics.add(this.#halves, HEADER[counter], by)
  }

  /** One of the header's counters. */
  counted(counter: 'evictions' | 'overflowed'): number {
    return Atomics.load(this.#halves, HEADER[counter])
  }

  #bucketOf(fingerprint: Fingerprint, overflow: boolean): number {
    if (overflow) return this.#layout.buckets + (fingerprint.word0 & (OVERFLOW_BUCKETS - 1))
    return fingerprint.word0 & (this.#layout.buckets - 1)
  }

  /** Whether any block can be in force. */
  hasBlocks(nowSeconds: number): boolean {
    return Atomics.load(this.#halves, HEADER.blockedUntilSeconds) >>> 0 >= nowSeconds
  }

  /** Notes that a block is in force until a second. */
  noteBlock(untilSeconds: number): void {
    for (;;) {
      const noted = Atomics.load(this.#halves, HEADER.blockedUntilSeconds)
      if (noted >>> 0 >= untilSeconds) return
      if (Atomics.compareExchange(this.#halves, HEADER.blockedUntilSeconds, noted, untilSeconds | 0) === noted) return
    }
  }

  /**
   * Looks for a key and copies its state, all as of one instant. When it is not there, finds a slot it could have: an
   * empty one, else that of an expired key, else that of the least used key that is not used up.
   */
  locate(fingerprint: Fingerprint, place: Place, search: Search): void {
    place.tag = fingerprint.word2 >>> (TAG_SHIFT + 1)
    place.bucketHalf = this.#layout.bucketsAt + this.#bucketOf(fingerprint, search.overflow) * BUCKET_WORDS * 2
    while (!this.#findOnce(fingerprint, place, search));
  }

  /** True when a place is still as it was read; then everything read there holds now. */
  isStill(place: Place): boolean {
    if (place.kind === 'found') return this.words.isStill(place.half, place.version, place.payload)
    return this.words.isStill(place.bucketHalf, place.bucketVersion, place.bucketPayload)
  }

  /** The payload of a slot that points to `record` for the key of `place`. */
  payloadFor(place: Place, record: number): number {
    return (place.tag << TAG_SHIFT) | (record + 1)
  }

  /** The record a payload points to; -1 for an empty slot. */
  recordIn(payload: number): number {
    return (payload & RECORD_MASK) - 1
  }

  /** The change that makes the slot of a place point to `record` (-1 empties it). */
  entryFor(place: Place, record: number): Entry {
    const to = record < 0 ? 0 : this.payloadFor(place, record)
    return { half: place.half, version: place.version, from: place.payload, to }
  }

  /** The change that tells everybody that a new key has come into the bucket. */
  bucketEntry(place: Place): Entry {
    return { half: place.bucketHalf, version: place.bucketVersion, from: place.bucketPayload, to: place.bucketPayload }
  }

  /** No change, but only if the slot is still as it was read. */
  sameEntry(place: Place): Entry {
    return { half: place.half, version: place.version, from: place.payload, to: place.payload }
  }

  /** Where the overflow buckets begin, in 32-bit halves. */
  get overflowAt(): number {
    return this.#layout.bucketsAt + this.#layout.buckets * BUCKET_WORDS * 2
  }

  /** Frees expired records somewhere in the table. True when it can grow by `count` afterwards. */
  reclaim(nowSeconds: number, count: number): boolean {
    const buckets = this.#layout.buckets
    const first = Atomics.add(this.#halves, HEADER.hand, RECLAIM_BUCKETS) >>> 0
    for (let step = 0; step < RECLAIM_BUCKETS; step++) {
      const at = this.#layout.bucketsAt + ((first + step) % buckets) * BUCKET_WORDS * 2
      for (let slot = 1; slot < BUCKET_WORDS; slot++) this.#freeIfExpired(at + 2 * slot, nowSeconds)
    }
    return this.records.canGrow(false, count)
  }

  #freeIfExpired(half: number, nowSeconds: number): void {
    const version = this.words.version(half)
    const payload = this.words.payload(half)
    if (payload <= 0) return
    const record = this.recordIn(payload)
    if (this.records.expirySeconds(record) >= nowSeconds || !this.words.isStill(half, version, payload)) return
    if (this.words.advance(half, { version, payload }, 0)) this.records.giveBack(record)
  }

  /** One pass over the bucket; false when it changed under our eyes and must be read again. */
  #findOnce(fingerprint: Fingerprint, place: Place, search: Search): boolean {
    const halves = this.#halves
    const bucket = place.bucketHalf
    place.bucketVersion = Atomics.load(halves, bucket)
    place.bucketPayload = Atomics.load(halves, bucket + 1)
    if (isReference(place.bucketPayload)) return this.#meetReference(bucket)
    for (let half = bucket + 2; half < bucket + 2 * BUCKET_WORDS; half += 2) {
      const payload = Atomics.load(halves, half + 1)
      if (isReference(payload)) return this.#meetReference(half)
      if (payload >>> TAG_SHIFT !== place.tag || payload === 0) continue
      // The version first, then what it is the version of.
      const version = Atomics.load(halves, half)
      const record = (payload & RECORD_MASK) - 1
      if (!this.records.matches(record, fingerprint)) {
        // Another key, unless the slot has just moved on to another record and this one already belongs to another key.
        if (this.words.isStill(half, version, payload)) continue
        return false
      }
      place.kind = 'found'
      place.half = half
      place.version = version
      place.payload = payload
      place.state = this.records.readState(record, place.room)
      return this.words.isStill(half, version, payload)
    }
    place.state = NO_STATE
    this.#findVacant(place, search)
    return this.words.isStill(bucket, place.bucketVersion, place.bucketPayload)
  }

  /** A slot for a new key. What is read here is checked by the commit. */
  #findVacant(place: Place, search: Search): void {
    place.kind = 'full'
    let least = search.overflow ? USED_UP + 1 : USED_UP
    for (let half = place.bucketHalf + 2; half < place.bucketHalf + 2 * BUCKET_WORDS; half += 2) {
      const version = this.words.version(half)
      const payload = this.words.payload(half)
      if (isReference(payload)) continue
      const rank = this.#rankOf(payload, search)
      if (rank >= least || search.avoid.includes(half)) continue
      least = rank
      place.kind = 'vacant'
      place.half = half
      place.version = version
      place.payload = payload
    }
  }

  /** Finishes the transaction of another thread. Always false: the bucket must be read again. */
  #meetReference(half: number): false {
    const version = this.words.version(half)
    const payload = this.words.payload(half)
    if (isReference(payload)) this.transactions.resolve(half, version, payload)
    return false
  }

  /** Which slot to take first: an empty one, then one of an expired key, then by how little of its limit a key uses. */
  #rankOf(payload: number, { nowSeconds, occupiedOnly }: Search): number {
    if (payload === 0) return occupiedOnly ? Number.POSITIVE_INFINITY : -2
    const record = this.recordIn(payload)
    return this.records.expirySeconds(record) < nowSeconds ? -1 : this.records.used(record)
  }
}
