import {
  type Ask,
  algorithmOf,
  type Correction,
  createVerdict,
  type State,
  type Verdict,
} from '../../algorithms/algorithm.ts'
import { SluiceError } from '../../errors.ts'
import { Fingerprint, nameSpace } from '../../fingerprint.ts'
import type { Limit } from '../../rule/limit.ts'
import { type Clock, MICROS_PER_SECOND } from '../../system/clock-and-timers.ts'
import { outcomeOf, receiptOf } from '../batch.ts'
import {
  decideBatch,
  expirySecondsOf,
  isLastOverflow,
  overflowBefore,
  remainingAfter,
  stateAfter,
  useByte,
} from '../decide-batch.ts'
import { rejectLease } from '../leased-units.ts'
import { USED_UP } from '../memory/packed-table.ts'
import { ReservationHeap } from '../memory/reservation-heap.ts'
import type { Batch, Item, Receipt, Settlement, Store } from '../store.ts'
import { type BlockTerm, blockTermOf } from '../store.ts'
import { HEADER, MOST_ITEMS, type SharedLayout } from './layout.ts'
import { createPlace, type Place, type Search, SharedTable } from './shared-table.ts'
import type { CommitStep } from './transaction.ts'
import { WriteSet } from './write-set.ts'

/** Blocks are looked up in a place of their own, while the items of a batch keep theirs. */
const BLOCKS_PLACE = MOST_ITEMS

const NOTHING: readonly number[] = []

/** What a thread's view of the store works with. */
export interface ThreadParts {
  readonly clock: Clock
  /** Called at each step of a commit, for tests that stop a thread there. */
  readonly onStep?: (step: CommitStep) => void
}

/** A store in memory shared by the threads of a process: one thread's view of it. */
export class SharedMemoryStore implements Store<'sync'> {
  readonly mode = 'sync'
  readonly #buffer: SharedArrayBuffer
  readonly #halves: Int32Array
  readonly #layout: SharedLayout
  readonly #parts: ThreadParts
  readonly #thread: number
  readonly #table: SharedTable
  readonly #fingerprints: Fingerprint[]
  readonly #places: Place[]
  readonly #writes: WriteSet
  readonly #holds = new ReservationHeap()
  readonly #ask: Ask = { now: 0.5, cost: 0, holder: 0, entitled: true }
  readonly #search = { nowSeconds: 0, overflow: false, occupiedOnly: false, avoid: NOTHING }
  readonly #blockSpaces = new Map<string, { readonly space0: number; readonly space1: number }>()
  #closed = false

  constructor(buffer: SharedArrayBuffer, layout: SharedLayout, parts: ThreadParts) {
    this.#buffer = buffer
    this.#halves = new Int32Array(buffer)
    this.#layout = layout
    this.#parts = parts
    this.#thread = claimThread(this.#halves, layout.maxThreads)
    this.#table = new SharedTable(buffer, { layout, thread: this.#thread, onStep: parts.onStep })
    this.#writes = new WriteSet(this.#table)
    const secret = { low: this.#halves[HEADER.secretLow]!, high: this.#halves[HEADER.secretHigh]! }
    this.#fingerprints = Array.from({ length: MOST_ITEMS + 1 }, () => new Fingerprint(secret))
    this.#places = Array.from({ length: MOST_ITEMS + 1 }, createPlace)
  }

  /** For `attachSharedMemoryStore` in another thread. */
  handle(): { readonly buffer: SharedArrayBuffer } {
    return { buffer: this.#buffer }
  }

  /** Keys dropped while in use; decisions and settlements on an overflow counter. */
  stats(): { readonly evictions: number; readonly overflowed: number } {
    return { evictions: this.#table.counted('evictions'), overflowed: this.#table.counted('overflowed') }
  }

  decide(batch: Batch): void {
    this.#checkOpen()
    this.#checkFits(batch)
    batch.now = this.#parts.clock.nowMicros()
    if (this.#holds.size > 0) this.#giveBackExpired(batch.now)
    if (batch.holdMicros > 0) this.#holds.checkRoom()
    if (batch.leaseMicros > 0) rejectLease(batch, 'the shared-memory store')
    const simple = batch.items.length === 1 && !batch.partial && !this.#table.hasBlocks(secondsOf(batch.now))
    if (!simple || !this.#decideOne(batch, batch.items[0]!)) {
      const homeless = new Set<number>()
      while (!this.#decideOnce(batch, homeless)) batch.now = Math.max(batch.now, this.#parts.clock.nowMicros())
    }
    if (batch.allowed && batch.charge && batch.holdMicros > 0)
      this.#holds.add(receiptOf(batch), batch.now + batch.holdMicros)
  }

  settle(receipt: Receipt, actuals: readonly number[]): Settlement {
    this.#checkOpen()
    this.#giveBackExpired(this.#parts.clock.nowMicros())
    const late = receipt.held && !this.#holds.remove(receipt.holder)
    return this.#correct(receipt, { actuals, late, timeOf: () => this.#parts.clock.nowMicros() })
  }

  block(rule: string, key: string, term: BlockTerm): void {
    this.#checkOpen()
    const { micros, forgotten } = blockTermOf(term)
    const now = this.#parts.clock.nowMicros()
    if (micros === 0) {
      this.#removeKey(this.#blockSpace(rule), key)
      return
    }
    const nowSeconds = secondsOf(now)
    const count = 1 + forgotten.length
    const verdict = { ...createVerdict(), next: [now + micros], nextLength: 1, freshAt: now + micros, remaining: 0 }
    // Noted first: a thread that does not see the note yet decided before the block.
    this.#table.noteBlock(expirySecondsOf(verdict))
    let stored = false
    do {
      this.#locate(this.#blockSpace(rule), key, { index: 0, nowSeconds })
      for (const [place, limit] of forgotten.entries()) this.#locate(limit, key, { index: place + 1, nowSeconds })
      this.#avoidOthers(0, count, { nowSeconds })
      const room = this.#makeRoom(0, count, nowSeconds)
      if (room === 'none') throw fullError()
      stored = room === 'ready' && this.#storeBlock(verdict, count, now)
    } while (!stored)
  }

  reset(limits: readonly Limit[], key: string): void {
    this.#checkOpen()
    for (const limit of limits) {
      this.block(limit.rule, key, 0)
      this.#removeKey(limit, key)
    }
  }

  close(): Promise<void> {
    if (!this.#closed) {
      this.#table.records.stash()
      releaseThread(this.#halves, this.#thread)
    }
    this.#closed = true
    return Promise.resolve()
  }

  /**
   * The common case without detours: one limit whose key is in the table. False when it is not, so that it must be done
   * the long way; then nothing has been charged.
   */
  #decideOne(batch: Batch, item: Item): boolean {
    const { limit, key, verdict, cost } = item
    const fingerprint = this.#fingerprints[0]!
    const place = this.#places[0]!
    const algorithm = algorithmOf(limit)
    const ask = this.#ask
    const { records, words } = this.#table
    item.blockedUntil = 0
    fingerprint.of(limit.space0, limit.space1, key)
    for (;;) {
      this.#search.nowSeconds = secondsOf(batch.now)
      this.#table.locate(fingerprint, place, this.#search)
      ask.now = batch.now
      ask.cost = cost
      ask.holder = batch.holder
      ask.entitled = batch.entitled
      algorithm.decide(place.state, limit, ask, verdict)
      batch.allowed = verdict.ruling === 'allowed'
      if (!batch.allowed || !batch.charge || cost === 0) return true
      if (place.kind !== 'found') return false
      const record = records.take()
      const header = { expirySeconds: expirySecondsOf(verdict), used: useByte(limit.capacity, verdict.remaining) }
      records.write(record, fingerprint, header)
      records.writeState(record, verdict.next, verdict.nextLength)
      this.#parts.onStep?.('decided')
      const committed = words.advance(place.half, place, this.#table.payloadFor(place, record))
      records.giveBack(committed ? this.#table.recordIn(place.payload) : record)
      if (committed) return true
      batch.now = Math.max(batch.now, this.#parts.clock.nowMicros())
    }
  }

  /**
   * Reads, decides and commits; false when another thread changed something in between, so that it must be done again.
   */
  #decideOnce(batch: Batch, homeless: Set<number>): boolean {
    const { items, now } = batch
    this.#locateAll(batch, homeless)
    const stateOf = (index: number): State => {
      const before = homeless.has(index) ? overflowBefore(items, homeless, index) : -1
      return before < 0 ? this.#places[index]!.state : stateAfter(items[before]!.verdict, stateOf(before))
    }
    decideBatch(batch, stateOf)
    if (!batch.allowed || !batch.charge || items.every((item) => item.cost === 0)) return this.#stillAll(items.length)
    const changes: Change[] = []
    for (const [index, { limit, verdict, cost }] of items.entries()) {
      if (cost === 0 || (homeless.has(index) && !isLastOverflow(items, homeless, index))) continue
      const room = this.#makeRoom(index, items.length, secondsOf(now))
      if (room === 'none') {
        this.#table.count('overflowed', 1)
        homeless.add(index)
      }
      if (room !== 'ready') return false
      changes.push({ index, verdict, used: useByte(limit.capacity, verdict.remaining) })
    }
    this.#parts.onStep?.('decided')
    return this.#store(changes, items.length, now)
  }

  /** Looks all items up, and sees to it that no two of them are offered one slot. */
  #locateAll({ items, now }: Batch, homeless: ReadonlySet<number>): void {
    const blocked = this.#table.hasBlocks(secondsOf(now))
    for (const [index, item] of items.entries()) {
      item.blockedUntil = blocked ? this.#blockedUntil(item.limit.rule, item.key, now) : 0
      const overflow = homeless.has(index)
      this.#locate(item.limit, overflow ? '' : item.key, { index, nowSeconds: secondsOf(now), overflow })
    }
    for (let index = 0; index < items.length; index++)
      this.#avoidOthers(index, items.length, { nowSeconds: secondsOf(now) })
  }

  /** Offers another slot to a new key, if the one it was offered is that of another item. */
  #avoidOthers(index: number, count: number, search: Partial<Search>): void {
    const place = this.#places[index]!
    if (place.kind === 'found') return
    const avoid: number[] = []
    for (let other = 0; other < count; other++) {
      if (other !== index && this.#places[other]!.kind !== 'full') avoid.push(this.#places[other]!.half)
    }
    if (search.occupiedOnly !== true && !avoid.includes(place.half)) return
    const overflow = place.bucketHalf >= this.#table.overflowAt
    this.#table.locate(this.#fingerprints[index]!, place, { ...this.#search, ...search, overflow, avoid })
  }

  /**
   * Whether the key at a place can be stored: `ready` when it is there, or there is a slot and a record for it;
   * `changed` when looking for one found that another thread has stored the key meanwhile, so that what was decided no
   * longer holds.
   */
  #makeRoom(index: number, count: number, nowSeconds: number): 'ready' | 'changed' | 'none' {
    const place = this.#places[index]!
    if (place.kind === 'full') return 'none'
    if (place.payload > 0) return 'ready'
    const overflow = place.bucketHalf >= this.#table.overflowAt
    // The items before this one may need a record each as well.
    const growth = index + 1
    if (this.#table.records.canGrow(overflow, growth) || this.#table.reclaim(nowSeconds, growth)) return 'ready'
    this.#avoidOthers(index, count, { nowSeconds, occupiedOnly: true })
    return roomAt(place)
  }

  #stillAll(count: number): boolean {
    for (let index = 0; index < count; index++) if (!this.#table.isStill(this.#places[index]!)) return false
    return true
  }

  /** Commits a block at the first place and removes the keys at the others, all or none. */
  #storeBlock(verdict: Verdict, count: number, now: number): boolean {
    const writes = this.#writes
    writes.begin()
    writes.put(this.#places[0]!, this.#fingerprints[0]!, { verdict, used: USED_UP })
    for (let index = 1; index < count; index++) writes.remove(this.#places[index]!)
    return writes.commit(secondsOf(now))
  }

  /** Commits new states for places, all or none; the places of other items must be as they were read. */
  #store(changes: readonly Change[], count: number, now: number): boolean {
    const writes = this.#writes
    writes.begin()
    for (const { index, verdict, used } of changes) {
      writes.put(this.#places[index]!, this.#fingerprints[index]!, { verdict, used })
    }
    for (let index = 0; index < count; index++) {
      if (!changes.some((change) => change.index === index)) writes.keep(this.#places[index]!)
    }
    return writes.commit(secondsOf(now))
  }

  #correct(
    receipt: Receipt,
    { actuals, late, timeOf }: { actuals: readonly number[]; late: boolean; timeOf: () => number },
  ): Settlement {
    for (;;) {
      const now = timeOf()
      const changes: Change[] = []
      const homeless: { readonly limit: Limit; readonly correction: Correction }[] = []
      let corrected = 0
      let changed = false
      for (const [index, charge] of receipt.charges.entries()) {
        const units = late ? actuals[index]! : actuals[index]! - charge.cost
        const correction = { now, units, charge: { ...charge, holder: receipt.holder } }
        const { applied, change, room } = this.#correctOne(index, charge, correction)
        changed ||= room === 'changed'
        if (change !== undefined) changes.push(change)
        if (applied === undefined || room === 'none') homeless.push({ limit: charge.limit, correction })
        else corrected += applied
      }
      const stored = !changed && (changes.length === 0 || this.#store(changes, 0, now))
      if (!stored) continue
      // Keys without room are counted on the overflow counter, so that is where they hold slots and are charged.
      const onOverflow = homeless.map(({ limit, correction }) => this.#correctOverflow(limit, correction))
      for (const applied of onOverflow) corrected += applied ?? 0
      return { outcome: outcomeOf(onOverflow.includes(undefined), late), corrected }
    }
  }

  /** Corrects the overflow counter of a limit, in a step of its own. Returns what `Algorithm.correct` does. */
  #correctOverflow(limit: Limit, correction: Correction): number | undefined {
    const { now } = correction
    for (;;) {
      const place = this.#locate(limit, '', { index: 0, nowSeconds: secondsOf(now), overflow: true })
      const verdict = createVerdict()
      const applied = algorithmOf(limit).correct(place.state, limit, correction, verdict)
      if (applied === undefined) return undefined
      const room = this.#makeRoom(0, 1, secondsOf(now))
      if (room === 'none') return 0
      const used = useByte(limit.capacity, remainingAfter(limit, verdict, now))
      if (room === 'changed' || !this.#store([{ index: 0, verdict, used }], 1, now)) continue
      this.#table.count('overflowed', 1)
      return applied
    }
  }

  /** Works out the correction of one charge. Without a change there is nothing to store. */
  #correctOne(
    index: number,
    { limit, key }: Receipt['charges'][number],
    correction: Correction,
  ): { applied: number | undefined; change?: Change; room: 'ready' | 'changed' | 'none' } {
    const { now, units } = correction
    const place = this.#locate(limit, key, { index, nowSeconds: secondsOf(now) })
    // Two new keys of one receipt that were offered one slot could never be stored together.
    this.#avoidOthers(index, index + 1, { nowSeconds: secondsOf(now) })
    const isNew = place.kind !== 'found'
    const verdict = createVerdict()
    const applied = algorithmOf(limit).correct(place.state, limit, correction, verdict)
    if (isNew && units <= 0) return { applied, room: 'ready' }
    const room = isNew ? this.#makeRoom(index, index + 1, secondsOf(now)) : 'ready'
    return room === 'ready'
      ? {
          applied,
          room,
          change: { index, verdict, used: useByte(limit.capacity, remainingAfter(limit, verdict, now)) },
        }
      : { applied, room }
  }

  #giveBackExpired(now: number): void {
    for (let hold = this.#holds.nextExpired(now); hold !== undefined; hold = this.#holds.nextExpired(now)) {
      const { receipt, endsAt } = hold
      // As of the instant it ran out, so that it does not matter who comes by when.
      const actuals = receipt.charges.map(() => 0)
      this.#correct(receipt, { actuals, late: false, timeOf: () => endsAt })
    }
  }

  #blockedUntil(rule: string, key: string, now: number): number {
    const place = this.#locate(this.#blockSpace(rule), key, { index: BLOCKS_PLACE, nowSeconds: secondsOf(now) })
    const until = place.kind === 'found' ? (place.state[0] ?? 0) : 0
    return until > now ? until : 0
  }

  #removeKey(space: { readonly space0: number; readonly space1: number }, key: string): boolean {
    for (;;) {
      const place = this.#locate(space, key, { index: 0, nowSeconds: 0 })
      if (place.kind !== 'found') return false
      if (!this.#table.transactions.commit([this.#table.entryFor(place, -1)])) continue
      this.#table.records.giveBack(this.#table.recordIn(place.payload))
      return true
    }
  }

  #locate(
    space: { readonly space0: number; readonly space1: number },
    key: string,
    { index, nowSeconds, overflow = false }: { index: number; nowSeconds: number; overflow?: boolean },
  ): Place {
    const fingerprint = this.#fingerprints[index]!
    const place = this.#places[index]!
    fingerprint.of(space.space0, space.space1, key)
    this.#table.locate(fingerprint, place, { nowSeconds, overflow, occupiedOnly: false, avoid: [] })
    return place
  }

  #blockSpace(rule: string): { readonly space0: number; readonly space1: number } {
    let space = this.#blockSpaces.get(rule)
    if (space === undefined) {
      // "#" cannot be in a rule's name, so no limit has this name space.
      space = nameSpace(`${rule}#blocks`)
      this.#blockSpaces.set(rule, space)
    }
    return space
  }

  #checkFits(batch: Batch): void {
    if (batch.items.length > MOST_ITEMS) {
      throw new SluiceError('SLUICE_UNSUPPORTED', {
        problem: 'too many limits for one decision in shared memory',
        received: batch.items.length,
        expected: `at most ${MOST_ITEMS}`,
      })
    }
    for (let index = 0; index < batch.items.length; index++) {
      const { limit } = batch.items[index]!
      if (limit.stateSize <= this.#layout.maxStateSize) continue
      throw new SluiceError('SLUICE_UNSUPPORTED', {
        problem: `the state of rule "${limit.rule}" (${limit.algorithm}) does not fit the shared memory store`,
        received: limit.stateSize,
        expected: `at most ${this.#layout.maxStateSize} values`,
        action:
          `Create the store with maxStateSize: ${limit.stateSize}, or use an algorithm with a smaller state such ` +
          'as gcra.',
      })
    }
  }

  #checkOpen(): void {
    if (!this.#closed) return
    throw new SluiceError('SLUICE_CLOSED', {
      problem: 'the shared memory store is closed in this thread',
      action: 'Attach again.',
    })
  }
}

/** A new state for the place of an item. */
interface Change {
  readonly index: number
  readonly verdict: Verdict
  readonly used: number
}

/** What a search for an occupied slot came to. */
function roomAt(place: Place): 'ready' | 'changed' | 'none' {
  if (place.kind === 'found') return 'changed'
  return place.kind === 'vacant' ? 'ready' : 'none'
}

function secondsOf(micros: number): number {
  return Math.floor(micros / MICROS_PER_SECOND)
}

function fullError(): SluiceError {
  return new SluiceError('SLUICE_STORE_FULL', {
    problem: 'the shared memory store has no room for another block',
    action: 'Create it with a larger maxKeys.',
  })
}

/**
 * A number for this thread that no other attached thread has. A thread that ends without `close()` keeps its number
 * taken, because it may only be paused.
 */
function claimThread(halves: Int32Array, maxThreads: number): number {
  for (let thread = 0; thread < maxThreads; thread++) {
    const at = HEADER.threads + (thread >> 5)
    const bit = 1 << (thread & 31)
    if ((Atomics.or(halves, at, bit) & bit) === 0) return thread
  }
  throw new SluiceError('SLUICE_STORE_FULL', {
    problem: 'too many threads are attached to the shared memory store',
    received: maxThreads + 1,
    expected: `at most ${maxThreads}`,
    action: 'Call close() in threads that end, or create the store with a larger maxThreads.',
  })
}

/** Returns a number, for the next thread that attaches. */
function releaseThread(halves: Int32Array, thread: number): void {
  Atomics.and(halves, HEADER.threads + (thread >> 5), ~(1 << (thread & 31)))
}
