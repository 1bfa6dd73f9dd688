import type { Fingerprint } from '../../fingerprint.ts'
import { DESCRIPTOR_HALVES, HEADER, RECORD_HEADER_HALVES, RECORDS_PER_THREAD, type SharedLayout } from './layout.ts'
import type { SharedWords } from './shared-words.ts'

const FINGERPRINT_2 = 0x00ff_ffff
const HALF = 0x1_0000_0000

/** What a record says besides its state. */
export interface RecordHeader {
  readonly expirySeconds: number
  readonly used: number
}

/**
 * The records of a shared table, as one thread sees them. A record that no slot points to belongs to one thread, which
 * alone may write it. Reading one that a slot points to must be followed by a look whether the slot still does.
 */
export class RecordPool {
  readonly #halves: Int32Array
  readonly #words: SharedWords
  readonly #layout: SharedLayout
  readonly #stashAt: number
  readonly #spare: number[] = []

  constructor(
    halves: Int32Array,
    { words, layout, thread }: { words: SharedWords; layout: SharedLayout; thread: number },
  ) {
    this.#halves = halves
    this.#words = words
    this.#layout = layout
    this.#stashAt = layout.descriptorsAt + thread * DESCRIPTOR_HALVES + 1
    const stashed = Atomics.load(halves, this.#stashAt)
    for (let index = 0; index < (stashed > 0 ? stashed : RECORDS_PER_THREAD); index++) {
      const first = layout.threadRecordsFrom + thread * RECORDS_PER_THREAD
      this.#spare.push(stashed > 0 ? Atomics.load(halves, this.#stashAt + 1 + index) : first + index)
    }
  }

  /** Leaves as many spare records as a thread starts with to the next thread of this number, and the rest to all. */
  stash(): void {
    while (this.#spare.length > RECORDS_PER_THREAD) this.#release(this.#spare.pop()!)
    for (const [index, record] of this.#spare.entries()) Atomics.store(this.#halves, this.#stashAt + 1 + index, record)
    Atomics.store(this.#halves, this.#stashAt, this.#spare.length)
    this.#spare.length = 0
  }

  /** A record of this thread's own. There is always one: replacing a record gives the old one back. */
  take(): number {
    return this.#spare.pop()!
  }

  /** Returns a record that no slot points to any more. What a thread does not need for its next decision is for all. */
  giveBack(record: number): void {
    this.#spare.push(record)
    while (this.#spare.length > RECORDS_PER_THREAD) this.#release(this.#spare.pop()!)
  }

  /**
   * Makes sure that `count` records can be used up for good, by new keys in empty slots. False when there are too few.
   */
  canGrow(overflow: boolean, count: number): boolean {
    while (this.#spare.length < RECORDS_PER_THREAD + count) {
      const record = this.#claim(overflow)
      if (record < 0) return false
      this.#spare.push(record)
    }
    return true
  }

  /** Puts a record on the list of those that no thread has. */
  #release(record: number): void {
    for (;;) {
      const version = this.#words.version(HEADER.freeRecords)
      const payload = this.#words.payload(HEADER.freeRecords)
      Atomics.store(this.#halves, this.#at(record), payload)
      if (this.#words.advance(HEADER.freeRecords, { version, payload }, record + 1)) return
    }
  }

  /** Takes a record off that list; -1 when it is empty. */
  #claimFree(): number {
    for (;;) {
      const version = this.#words.version(HEADER.freeRecords)
      const payload = this.#words.payload(HEADER.freeRecords)
      if (payload === 0) return -1
      // Another thread may take this record first and write it; then the version has moved on and this is not used.
      const next = Atomics.load(this.#halves, this.#at(payload - 1))
      if (this.#words.advance(HEADER.freeRecords, { version, payload }, next)) return payload - 1
    }
  }

  /** A record that no thread has; -1 when there is none. */
  #claim(overflow: boolean): number {
    const free = this.#claimFree()
    if (free >= 0) return free
    const { overflowRecordsFrom, threadRecordsFrom } = this.#layout
    return overflow
      ? this.#claimUnused(HEADER.nextOverflowRecord, { from: overflowRecordsFrom, to: threadRecordsFrom })
      : this.#claimUnused(HEADER.nextRecord, { from: 0, to: overflowRecordsFrom })
  }

  #claimUnused(counter: number, { from, to }: { from: number; to: number }): number {
    // Looked at first, so that the counter does not run on for ever once the supply is used up.
    if (from + Atomics.load(this.#halves, counter) >= to) return -1
    const record = from + Atomics.add(this.#halves, counter, 1)
    return record < to ? record : -1
  }

  /** True when the record has this fingerprint. */
  matches(record: number, fingerprint: Fingerprint): boolean {
    const at = this.#at(record)
    return (
      Atomics.load(this.#halves, at) === fingerprint.word0 &&
      Atomics.load(this.#halves, at + 1) === fingerprint.word1 &&
      (Atomics.load(this.#halves, at + 2) & FINGERPRINT_2) === (fingerprint.word2 & FINGERPRINT_2)
    )
  }

  /** How much of its limit the record uses, 0 to 255. */
  used(record: number): number {
    return Atomics.load(this.#halves, this.#at(record) + 2) >>> 24
  }

  /** When the record says no more than none, in seconds since 1970. */
  expirySeconds(record: number): number {
    return Atomics.load(this.#halves, this.#at(record) + 3) >>> 0
  }

  /** Copies the state into `room` and returns it. */
  readState(record: number, room: number[]): readonly number[] {
    const halves = this.#halves
    const at = this.#at(record)
    const length = Math.min(Atomics.load(halves, at + 4), this.#layout.maxStateSize)
    if (room.length !== length) room.length = length
    for (let index = 0; index < length; index++) {
      const place = at + RECORD_HEADER_HALVES + 2 * index
      room[index] = Atomics.load(halves, place + 1) * HALF + (Atomics.load(halves, place) >>> 0)
    }
    return room
  }

  /** Writes a record of this thread's own. */
  write(record: number, fingerprint: Fingerprint, header: RecordHeader): void {
    const at = this.#at(record)
    const halves = this.#halves
    halves[at] = fingerprint.word0
    halves[at + 1] = fingerprint.word1
    halves[at + 2] = (fingerprint.word2 & FINGERPRINT_2) | (header.used << 24)
    halves[at + 3] = header.expirySeconds
  }

  /** Writes the state of a record of this thread's own: the first `length` values, whole numbers. */
  writeState(record: number, state: readonly number[], length: number): void {
    const at = this.#at(record)
    const halves = this.#halves
    halves[at + 4] = length
    for (let index = 0; index < length; index++) {
      const place = at + RECORD_HEADER_HALVES + 2 * index
      const value = state[index]!
      const high = Math.floor(value / HALF)
      halves[place] = value - high * HALF
      halves[place + 1] = high
    }
  }

  #at(record: number): number {
    return this.#layout.recordsAt + record * this.#layout.recordHalves
  }
}
