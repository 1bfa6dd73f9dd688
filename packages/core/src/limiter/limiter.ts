import type { Duration } from '../rule/duration.ts'
import type { Answer, Mode, Settlement } from '../store/store.ts'
import type { AbortSignalLike } from '../system/abort.ts'
import type { Decision, Denied } from './decision.ts'
import type { Reservation } from './reservation.ts'

/** Options of `check` and `peek`. */
export interface CheckOptions {
  /** Cost of the call in units: whole, 0 or more. Default: 1. 0 checks without charging. */
  readonly cost?: number
  /** Charge what is left, up to the cost; the decision has the granted cost. Denied only if nothing is left. */
  readonly partial?: boolean
  /** Whether the burst of a `hybrid` rule (or a `burst` above a window) may be used. Default: true. */
  readonly entitled?: boolean
}

/** Options of `acquire`. */
export interface AcquireOptions {
  readonly cost?: number
  readonly entitled?: boolean
  /** Ends the wait with the reason of the signal. An aborted call costs nothing. */
  readonly signal?: AbortSignalLike
  /** Maximum wait. A wait that is known to be longer is denied at once. Default: no limit. */
  readonly maxWait?: Duration
}

/** Options of `reserve`. */
export interface ReserveOptions {
  readonly cost?: number
  readonly entitled?: boolean
  /**
   * An unsettled reservation is returned after this time. Default: 1 minute. Concurrency slots end with their lease.
   */
  readonly expiresAfter?: Duration
}

/** Options of `block`. */
export interface BlockOptions {
  /** Also reset the usage of the key, in the same step: it starts afresh when the block ends. Default: false. */
  readonly reset?: boolean
}

/** One key and cost of a joint decision. */
export interface KeyRequest {
  readonly key: string
  readonly cost?: number
}

/**
 * Limits calls by one rule. Results are synchronous on a local store and promises on a remote one. All methods may be
 * called concurrently. Misuse throws a coded error; a denial never does.
 */
export interface Limiter<M extends Mode = Mode> {
  /** Whether a call takes a slot, to be released when the work is done: true for concurrency rules. */
  readonly holdsSlots: boolean
  /** Whether the call is allowed. Charges one unit if so. Works the same for every algorithm and store. */
  tryAcquire(key: string): Answer<M, boolean>
  /** Decides, and charges if allowed. A denied call costs nothing. */
  check(key: string, options?: CheckOptions): Answer<M, Decision<M>>
  /** What `check` would return, without charging. */
  peek(key: string, options?: CheckOptions): Answer<M, Decision<M>>
  /** Decides for several keys in one atomic step: all are charged, or none. */
  checkAll(requests: readonly KeyRequest[]): Answer<M, Decision<M>>
  /**
   * Waits until the call is allowed, in order of arrival for each key. Resolves with a denial if it would never be
   * allowed, if the wait would exceed `maxWait`, or if too many callers are already waiting.
   */
  acquire(key: string, options?: AcquireOptions): Promise<Decision<M>>
  /** Charges units in advance, or takes a slot; settle or release it later. */
  reserve(key: string, options?: ReserveOptions): Answer<M, Reservation<M> | Denied<M>>
  /**
   * Returns the units of an earlier decision: all of them, or `units`. Never more than it charged, never below zero
   * use, never into a later window. Takes the object that `check` returned: a copy that charged units is
   * `SLUICE_INVALID_OPTION`.
   */
  refund(decision: Decision, units?: number): Answer<M, Settlement>
  /**
   * Changes the usage of the key by `units` (a whole number), without an earlier decision. Above 0 charges units, also
   * beyond the limit: later calls are then denied until the debt is paid off. Below 0 returns units, most recent first,
   * never below zero use. The result has the number of units changed, over all limits of the rule. Throws
   * `SLUICE_UNSUPPORTED` for `concurrency`, whose slots belong to their holders, and for returning delays of a
   * `leaky-bucket-queue`.
   */
  adjust(key: string, units: number): Answer<M, Settlement>
  /** Resets the usage of the key, and lifts its block. */
  reset(key: string): Answer<M, void>
  /** Denies the key for this long, whatever it has left. A later block replaces an earlier one. */
  block(key: string, duration: Duration, options?: BlockOptions): Answer<M, void>
  /** Lifts a block. */
  unblock(key: string): Answer<M, void>
  /** Rejects waiting callers, and closes the store if the limiter created it. May be called again. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** One rule, key and cost of a joint decision. */
export interface RuleRequest<Name extends string = string> {
  readonly rule: Name
  readonly key: string
  readonly cost?: number
}

/** Limits calls by several named rules that share a store. */
export interface LimiterSet<Name extends string = string, M extends Mode = Mode> {
  /** The limiter of one rule. */
  limiter(rule: Name): Limiter<M>
  /** Decides several rules in one atomic step: all are charged, or none. */
  checkAll(requests: readonly RuleRequest<Name>[]): Answer<M, Decision<M>>
  /** What `checkAll` would return, without charging. */
  peekAll(requests: readonly RuleRequest<Name>[]): Answer<M, Decision<M>>
  /** Returns what a joint decision charged. */
  refund(decision: Decision, units?: number): Answer<M, Settlement>
  /** Rejects waiting callers, and closes the store if it was created here. May be called again. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}
