import type { Duration } from '../rule/duration.ts'
import type { Answer, Mode, Settlement } from '../store/store.ts'
import type { AbortSignalLike } from '../system/abort.ts'
import type { Decision, Denied } from './decision.ts'
import type { Reservation } from './reservation.ts'

/** How to ask. */
export interface CheckOptions {
  /** Units the call takes: whole, 0 or more. Default: 1. 0 asks without taking. */
  readonly cost?: number
  /** Take as much as is left, up to the cost; the decision says how much. Denied only when nothing is left. */
  readonly partial?: boolean
  /** Whether the burst of a `hybrid` rule (or a `burst` above a window) may be used. Default: true. */
  readonly entitled?: boolean
}

/** How to wait. */
export interface AcquireOptions {
  readonly cost?: number
  readonly entitled?: boolean
  /** Ends the waiting with the signal's reason. A call that was aborted costs nothing. */
  readonly signal?: AbortSignalLike
  /** Longest wait; without it, as long as it takes. A wait known to be longer is denied at once. */
  readonly maxWait?: Duration
}

/** How to reserve. */
export interface ReserveOptions {
  readonly cost?: number
  readonly entitled?: boolean
  /**
   * After this time an unsettled reservation is given back. Default: 1 minute. Concurrency slots end with their lease.
   */
  readonly expiresAfter?: Duration
}

/** How to block. */
export interface BlockOptions {
  /** Also forget what the key has used, in the same step: it starts afresh when the block ends. Default: false. */
  readonly reset?: boolean
}

/** One key and cost of a joint decision. */
export interface KeyRequest {
  readonly key: string
  readonly cost?: number
}

/**
 * Limits calls by one rule. On a local store every answer is immediate, on a remote one it is a promise. All methods
 * may be called from any number of callers at once. Misuse throws a coded error; a denial never does.
 */
export interface Limiter<M extends Mode = Mode> {
  /** Whether what is taken is a slot, to be given back when the work is done: true for a rule of concurrency. */
  readonly holdsSlots: boolean
  /** May the call go on? Takes one unit if so. The one method that is the same for every algorithm and store. */
  tryAcquire(key: string): Answer<M, boolean>
  /** Decides, and charges when allowed. A denied call costs nothing. */
  check(key: string, options?: CheckOptions): Answer<M, Decision<M>>
  /** What `check` would answer, without charging. */
  peek(key: string, options?: CheckOptions): Answer<M, Decision<M>>
  /** Decides for several keys in one atomic step: all are charged, or none. */
  checkAll(requests: readonly KeyRequest[]): Answer<M, Decision<M>>
  /**
   * Waits until the call is allowed, in order of arrival for each key. Resolves with a denial when it would never be
   * allowed, when `maxWait` would pass, or when too many wait already.
   */
  acquire(key: string, options?: AcquireOptions): Promise<Decision<M>>
  /** Takes units in advance, or a slot; settle or release it later. */
  reserve(key: string, options?: ReserveOptions): Answer<M, Reservation<M> | Denied<M>>
  /**
   * Gives back the units of an earlier decision: all of them, or `units`. Never more than it charged, never below zero
   * use, never into a later window. Takes the object that `check` returned: a copy that charged units is
   * `SLUICE_INVALID_OPTION`.
   */
  refund(decision: Decision, units?: number): Answer<M, Settlement>
  /**
   * Changes the usage of the key by `units` (a whole number), without an earlier decision. Above 0 takes units, also
   * beyond the limit: later calls are then denied until the debt is paid off. Below 0 gives units back, those used last
   * first, never below zero use. The result has the number of units changed, over all limits of the rule. Throws
   * `SLUICE_UNSUPPORTED` for `concurrency`, whose slots belong to their holders, and for giving back turns of a
   * `leaky-bucket-queue`.
   */
  adjust(key: string, units: number): Answer<M, Settlement>
  /** Forgets what the key has used, and lifts its block. */
  reset(key: string): Answer<M, void>
  /** Denies the key for this long, whatever it has left. A later block replaces an earlier one. */
  block(key: string, duration: Duration, options?: BlockOptions): Answer<M, void>
  /** Lifts a block. */
  unblock(key: string): Answer<M, void>
  /** Turns waiting callers away and closes the store if the limiter made it. May be called again. */
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
  /** What `checkAll` would answer, without charging. */
  peekAll(requests: readonly RuleRequest<Name>[]): Answer<M, Decision<M>>
  /** Gives back what a joint decision charged. */
  refund(decision: Decision, units?: number): Answer<M, Settlement>
  /** Turns waiting callers away and closes the store if it was made here. May be called again. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}
