import type { Correction, Verdict } from '../../algorithms/algorithm.ts'
import { algorithmOf, createVerdict } from '../../algorithms/algorithm.ts'
import type { OptionTaker } from '../../options/known-options.ts'
import { checkOptionNames, checkSources, checkWhole } from '../../options/known-options.ts'
import type { Limit } from '../../rule/limit.ts'
import type { Clock } from '../../system/clock-and-timers.ts'
import { systemClock } from '../../system/clock-and-timers.ts'
import type { Random } from '../../system/random.ts'
import { systemRandom } from '../../system/random.ts'
import { outcomeOf, receiptOf } from '../batch.ts'
import { remainingAfter } from '../decide-batch.ts'
import { rejectLease } from '../leased-units.ts'
import type { Batch, Receipt, Settlement, Store } from '../store.ts'
import { type BlockTerm, blockTermOf } from '../store.ts'
import { BlockList } from './block-list.ts'
import type { MemoryStoreStats } from './memory-counters.ts'
import { MemoryCounters } from './memory-counters.ts'
import { ReservationHeap } from './reservation-heap.ts'

/** Options of {@link memoryStore}. */
export interface MemoryStoreOptions {
  /**
   * Most keys held (for each size of state), 64 to 100,000,000. Default: 1,000,000. Memory is taken as keys arrive:
   * about 64 bytes each for most algorithms. Beyond it, see `docs/guides/concepts/memory.md`.
   */
  readonly maxKeys?: number
  readonly clock?: Clock
  readonly random?: Random
}

const TAKER: OptionTaker = {
  name: 'the memory store',
  options: ['maxKeys', 'clock', 'random'],
  example: '{ maxKeys: 100000 }',
}

/** Exact within one thread, synchronous, bounded. See {@link MemoryStoreOptions}. */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  checkOptionNames(options, TAKER)
  checkSources(options)
  const { maxKeys = 1_000_000 } = options
  checkWhole('maxKeys', maxKeys, { of: TAKER.name, least: 64, most: 100_000_000 })
  return new MemoryStore(maxKeys, options.clock ?? systemClock, options.random ?? systemRandom)
}

/** A store in the memory of this thread. */
export class MemoryStore implements Store<'sync'> {
  readonly mode = 'sync'
  readonly #counters: MemoryCounters
  /** Undefined until the first reservation. */
  #holds: ReservationHeap | undefined

  constructor(maxKeys: number, clock: Clock, random: Random) {
    this.#counters = new MemoryCounters(maxKeys, clock, random)
  }

  stats(): MemoryStoreStats {
    return this.#counters.stats()
  }

  decide(batch: Batch): void {
    const now = this.#counters.nowMicros()
    batch.now = now
    if (this.#holds !== undefined) this.#giveBackExpired(this.#holds, now)
    if (batch.holdMicros > 0) this.#holds?.checkRoom()
    if (batch.leaseMicros > 0) rejectLease(batch, 'the memory store')
    this.#counters.decide(batch)
    if (batch.allowed && batch.charge && batch.holdMicros > 0) {
      this.#holds ??= new ReservationHeap()
      this.#holds.add(receiptOf(batch), now + batch.holdMicros)
    }
  }

  settle(receipt: Receipt, actuals: readonly number[]): Settlement {
    const now = this.#counters.nowMicros()
    if (this.#holds !== undefined) this.#giveBackExpired(this.#holds, now)
    const late = receipt.held && this.#holds?.remove(receipt.holder) !== true
    return this.#correct(receipt, { now, actuals, alreadyGivenBack: late })
  }

  block(rule: string, key: string, term: BlockTerm): void {
    const counters = this.#counters
    const now = counters.nowMicros()
    const { micros, forgotten } = blockTermOf(term)
    if (micros === 0) {
      counters.blocks?.lift(rule, key)
      return
    }
    counters.blocks ??= new BlockList()
    counters.blocks.set(rule, key, { until: now + micros, now })
    for (const limit of forgotten) counters.forget(limit, key)
  }

  reset(limits: readonly Limit[], key: string): void {
    this.#counters.nowMicros()
    this.#counters.reset(limits, key)
  }

  close(): Promise<void> {
    this.#counters.close()
    return Promise.resolve()
  }

  #giveBackExpired(holds: ReservationHeap, now: number): void {
    for (let hold = holds.nextExpired(now); hold !== undefined; hold = holds.nextExpired(now)) {
      const { receipt, endsAt } = hold
      // As of the instant it ran out, so that it does not matter who comes by when.
      this.#correct(receipt, { now: endsAt, actuals: receipt.charges.map(() => 0), alreadyGivenBack: false })
    }
  }

  #correct(
    receipt: Receipt,
    { now, actuals, alreadyGivenBack }: { now: number; actuals: readonly number[]; alreadyGivenBack: boolean },
  ): Settlement {
    const verdict = createVerdict()
    let corrected = 0
    let gone = false
    for (const [index, charge] of receipt.charges.entries()) {
      const { limit, key } = charge
      const actual = actuals[index]!
      const correction = {
        now,
        units: alreadyGivenBack ? actual : actual - charge.cost,
        charge: { ...charge, holder: receipt.holder },
      }
      const state = this.#counters.load(limit, key)
      let units = algorithmOf(limit).correct(state, limit, correction, verdict)
      // A key that is not known has nothing to give back, and no room is taken for it.
      const changes = state.length > 0 || correction.units > 0
      const stored = !changes || this.#saveCorrected(limit, key, { verdict, now })
      // Keys without room are counted on the overflow counter, so that is where they hold slots and are charged.
      if (!stored || units === undefined) units = this.#correctOverflow(limit, correction, verdict)
      corrected += units ?? 0
      gone ||= units === undefined
    }
    return { outcome: outcomeOf(gone, alreadyGivenBack), corrected }
  }

  /** False when the key is new and there is no room for it. */
  #saveCorrected(limit: Limit, key: string, { verdict, now }: { verdict: Verdict; now: number }): boolean {
    if (verdict.freshAt <= now || verdict.nextLength === 0) {
      this.#counters.forget(limit, key)
      return true
    }
    verdict.remaining = remainingAfter(limit, verdict, now)
    return this.#counters.save(limit, key, { verdict, now })
  }

  /** Returns what `Algorithm.correct` does. */
  #correctOverflow(limit: Limit, correction: Correction, verdict: Verdict): number | undefined {
    let units: number | undefined
    this.#counters.changeOverflow(limit, verdict, (state) => {
      units = algorithmOf(limit).correct(state, limit, correction, verdict)
      return units !== undefined
    })
    return units
  }
}
