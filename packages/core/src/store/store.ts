import type { Verdict } from '../algorithms/algorithm.ts'
import type { Limit } from '../rule/limit.ts'
import type { FailureMode } from '../rule/rule.ts'

/** Whether a store returns results synchronously or as promises. */
export type Mode = 'sync' | 'async'

/** `T` from a synchronous store, a promise of it from any other. */
export type Answer<M extends Mode, T> = M extends 'sync' ? T : Promise<T>

/** One limit of a batch, and its decision. Fields marked "Result" are written by the store. */
export interface Item {
  limit: Limit
  key: string
  /** Units requested of this limit: whole, 0 or more. */
  cost: number
  /** Result of the algorithm. */
  readonly verdict: Verdict
  /** Result: until when the rule blocks the key (microseconds since 1970), or 0. */
  blockedUntil: number
  /** Result: the time this limit was decided at, if it may differ from the batch's; 0 means `batch.now`. */
  at: number
}

/**
 * Several limits that are decided together, and their decision. Fields marked "Result" are written by the store. No two
 * items may have the same limit and key.
 */
export interface Batch {
  readonly items: readonly Item[]
  /** False peeks: nothing is charged, whatever the result is. */
  charge: boolean
  /** Charge what every limit has left, up to the cost; denied only if that is nothing. */
  partial: boolean
  /** Whether a burst on top of a window may be used. */
  entitled: boolean
  /** Unique number of this charge, above 0: identifies a concurrency slot and a held reservation. */
  holder: number
  /** Above 0: return the charge after this many microseconds unless it is settled before. */
  holdMicros: number
  /**
   * Above 0: take the units as a lease. Until it is settled, or this many microseconds have passed, they count in full,
   * whatever leaks or resets meanwhile. Used units are charged as of the settlement; when the lease expires, all of
   * them are charged as of that instant. Stores without leases answer `SLUICE_UNSUPPORTED`.
   */
  leaseMicros: number
  /** Whether the caller waits less long than others: stores with an `urgentDeadlineMs` answer by then. */
  isUrgent: boolean
  /** Result: every item was allowed (and, if `charge`, charged). */
  allowed: boolean
  /** Result: the store's time, microseconds since 1970. */
  now: number
  /** Result: set if the decision was made without the store. */
  failure: Failure | undefined
}

/** The data needed to correct a charge later. */
export interface Receipt {
  readonly holder: number
  /** Whether the store returns it automatically. */
  readonly held: boolean
  /** Duration of a lease; 0 if it is not one. */
  readonly leaseMicros: number
  readonly charges: readonly {
    readonly limit: Limit
    readonly key: string
    readonly at: number
    readonly cost: number
    readonly mark: number
  }[]
}

/** The result of a settlement. */
export interface Settlement {
  /**
   * `settled`: the charge now equals the actual cost. `late`: the reservation had expired and been returned, so the
   * actual cost was charged again. `gone`: the slot to renew or release is no longer held.
   */
  readonly outcome: 'settled' | 'late' | 'gone'
  /** Units changed, over all limits: below 0 returned, above 0 charged. May be fractional for metered limits. */
  readonly corrected: number
}

/**
 * Keeps counters, and applies the algorithms atomically. Each store documents what it guarantees across threads and
 * machines. Every implementation passes the store suite of `@sluice/testing`.
 */
export interface Store<M extends Mode = Mode> {
  readonly mode: M
  /** Decides all items of a batch in one atomic step: all are charged, or none. Writes the decision into the batch. */
  decide(batch: Batch): Answer<M, void>
  /**
   * Sets an earlier charge to `actuals[i]` units for its i-th limit (0 returns all of it; the cost itself renews a
   * concurrency slot). Never returns more than is still owed; may exceed the limit, because the usage has happened. A
   * charge whose `at` is `LATEST` was never made: units are charged, or the most recently used ones are returned.
   */
  settle(receipt: Receipt, actuals: readonly number[]): Answer<M, Settlement>
  /**
   * Denies `key` under the rule for this many microseconds from now; 0 lifts the block. With `forgotten`, blocking and
   * deleting those counters are one atomic step.
   */
  block(rule: string, key: string, term: BlockTerm): Answer<M, void>
  /** Resets the counters of `key` under these limits, and lifts a block under their rules. */
  reset(limits: readonly Limit[], key: string): Answer<M, void>
  /** Frees all resources. May be called again; any other call afterwards is `SLUICE_CLOSED`. */
  close(): Promise<void>
}

/** Length of a block in microseconds from now (0 lifts it), and the counters to reset in the same step. */
export type BlockTerm = number | ForgettingBlock

/** A block that resets counters. */
export interface ForgettingBlock {
  readonly micros: number
  /** Limits whose counters of the key are reset. Not when a block is lifted. */
  readonly forgotten: readonly Limit[]
}

/** Both parts of a term. */
export function blockTermOf(term: BlockTerm): ForgettingBlock {
  if (typeof term === 'number') return { micros: term, forgotten: [] }
  return term.micros > 0 ? term : { micros: term.micros, forgotten: [] }
}

/** A decision was made without the store, and why. */
export interface Failure {
  /** The failure mode that decided. */
  readonly mode: FailureMode
  /**
   * `deadline`: no answer in time. `unreachable`: no connection, or it broke. `refused`: the store answered with an
   * error. `breaker`: it was not asked, because it had just failed too often.
   */
  readonly cause: 'deadline' | 'unreachable' | 'refused' | 'breaker'
  /** Whether the store may have charged the call nevertheless: `unknown` if it was asked and no answer came. */
  readonly charged: 'no' | 'unknown'
  /**
   * The last error of the store, and what to do about it, for people; undefined if there was none. Do not send it to
   * external callers: it may name servers.
   */
  readonly detail?: string | undefined
}
