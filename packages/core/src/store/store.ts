import type { Verdict } from '../algorithms/algorithm.ts'
import type { Limit } from '../rule/limit.ts'
import type { FailureMode } from '../rule/rule.ts'

/** Whether a store answers at once or by promise. */
export type Mode = 'sync' | 'async'

/** `T` from a synchronous store, a promise of it from any other. */
export type Answer<M extends Mode, T> = M extends 'sync' ? T : Promise<T>

/** One limit of a batch, and its decision. Fields marked "Answer" are written by the store. */
export interface Item {
  limit: Limit
  key: string
  /** Units wanted of this limit: whole, 0 or more. */
  cost: number
  /** Answer of the algorithm. */
  readonly verdict: Verdict
  /** Answer: until when the key is blocked under the rule (microseconds since 1970), 0 when it is not. */
  blockedUntil: number
  /** Answer: the time this limit was decided at, where that may differ from the batch's; 0 stands for `batch.now`. */
  at: number
}

/**
 * Several limits that are decided together, and their decision. Fields marked "Answer" are written by the store. No two
 * items may have the same limit and key.
 */
export interface Batch {
  readonly items: readonly Item[]
  /** False asks only: nothing is charged whatever the answer. */
  charge: boolean
  /** Take as much as every limit has left, up to the cost, and be denied only when that is nothing. */
  partial: boolean
  /** Whether a burst on top of a window may be used. */
  entitled: boolean
  /** Unique number of this charge, above 0: names a concurrency slot and a held reservation. */
  holder: number
  /** Above 0: give the charge back after this many microseconds unless it is settled before. */
  holdMicros: number
  /**
   * Above 0: take the units as a lease. Until it is settled, or this many microseconds have passed, they count in full,
   * whatever leaks or resets meanwhile. What was used of them is charged as of the settlement; when the time is over,
   * all of them are charged as of that instant. Stores that cannot do it answer `SLUICE_UNSUPPORTED`.
   */
  leaseMicros: number
  /** Whether the caller waits for less than others do: stores with an `urgentDeadlineMs` answer by then. */
  isUrgent: boolean
  /** Answer: every item was allowed (and, when `charge`, charged). */
  allowed: boolean
  /** Answer: the store's time, microseconds since 1970. */
  now: number
  /** Answer: set when the store could not be asked and the decision was made without it. */
  failure: Failure | undefined
}

/** What must be known to correct a charge later. */
export interface Receipt {
  readonly holder: number
  /** Whether the store would give it back by itself. */
  readonly held: boolean
  /** How long a lease was taken for; 0 when it is none. */
  readonly leaseMicros: number
  readonly charges: readonly {
    readonly limit: Limit
    readonly key: string
    readonly at: number
    readonly cost: number
    readonly mark: number
  }[]
}

/** What became of a settlement. */
export interface Settlement {
  /**
   * `settled`: the charge now stands at the actual cost. `late`: the reservation had run out and been given back, so
   * the actual cost was charged again. `gone`: the slot to renew or release is no longer held.
   */
  readonly outcome: 'settled' | 'late' | 'gone'
  /** Units changed, over all limits: below 0 given back, above 0 charged. May be fractional for metered limits. */
  readonly corrected: number
}

/**
 * Where counters live. A store applies the algorithms atomically; what it promises about several threads or machines is
 * said by each. Every implementation passes the store suite of `@sluice/testing`.
 */
export interface Store<M extends Mode = Mode> {
  readonly mode: M
  /** Decides all items of a batch in one atomic step: all are charged, or none. Writes the decision into the batch. */
  decide(batch: Batch): Answer<M, void>
  /**
   * Makes an earlier charge stand at `actuals[i]` units for its i-th limit (0 gives it back whole; the cost itself
   * renews a concurrency slot). Never gives back more than is still owed; may charge beyond the limit, because it did
   * happen. A charge whose `at` is `LATEST` was never made: units are taken, or given back of what was used last.
   */
  settle(receipt: Receipt, actuals: readonly number[]): Answer<M, Settlement>
  /**
   * Denies `key` under the rule for this many microseconds from now; 0 lifts the block. With `forgotten`, blocking and
   * deleting those counters are one atomic step.
   */
  block(rule: string, key: string, term: BlockTerm): Answer<M, void>
  /** Forgets the counters of `key` under these limits, and a block under their rules. */
  reset(limits: readonly Limit[], key: string): Answer<M, void>
  /** Frees what is held. May be called again; anything else afterwards is `SLUICE_CLOSED`. */
  close(): Promise<void>
}

/** How long a block lasts, in microseconds from now (0 lifts it); and what is forgotten in the same step. */
export type BlockTerm = number | ForgettingBlock

/** A block that starts counters afresh. */
export interface ForgettingBlock {
  readonly micros: number
  /** Limits under which the counters of the key are forgotten. Not when a block is lifted. */
  readonly forgotten: readonly Limit[]
}

/** Both parts of a term. */
export function blockTermOf(term: BlockTerm): ForgettingBlock {
  if (typeof term === 'number') return { micros: term, forgotten: [] }
  return term.micros > 0 ? term : { micros: term.micros, forgotten: [] }
}

/** Says that a decision was made without the store, and why. */
export interface Failure {
  /** How it was decided instead. */
  readonly mode: FailureMode
  /**
   * `deadline`: no answer in time. `unreachable`: there is no connection, or it broke. `refused`: the store answered
   * with an error. `breaker`: it was not asked, because it failed so often just before.
   */
  readonly cause: 'deadline' | 'unreachable' | 'refused' | 'breaker'
  /** Whether the store may have charged the call all the same: `unknown` when it was asked and no answer came. */
  readonly charged: 'no' | 'unknown'
  /**
   * What the store said last before this, and what to do about it, for people; undefined when it said nothing. Not for
   * callers from outside: it may name servers.
   */
  readonly detail?: string | undefined
}
