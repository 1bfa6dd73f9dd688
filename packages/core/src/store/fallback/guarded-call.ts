import { copyBatch } from '../batch-copy.ts'
import type { CallbackStore, PendingBatch } from '../callback-store.ts'
import type { Batch } from '../store.ts'
import { type StoreFailure, storeErrorOf } from '../store-error.ts'
import { NOT_ADMITTED } from './breaker.ts'
import type { DeadlineQueue, WaitingCall } from './deadline-queue.ts'

/**
 * A call to the underlying store, made once. It ends once: with an answer, `fallBack` or `reject`. The bookkeeping of
 * queue and store about a call is stored in it, because there are very many calls.
 */
export interface GuardedCall extends WaitingCall {
  hasEnded: boolean
  /** The queue of its deadline: an urgent call joins at once, others when they are made. */
  readonly queue: DeadlineQueue
  isQueued: boolean
  /** Whether its caller was answered without the store while the breaker waits for the outcome. */
  isOverdue: boolean
  /** Of the breaker. {@link NOT_ADMITTED} before the call is made. */
  ticket: number
  /** Whether the underlying store may have changed something. */
  readonly isSent: boolean
  start(): void
  /** The deadline has passed, or the store is closed. */
  abandon(): void
  /** There is no usable answer. `error`: that of the store, if there is one. */
  fallBack(failure: StoreFailure, error: unknown): void
  /** The caller made a mistake, or closed the store. */
  reject(error: unknown): void
}

/** The store that makes the calls, and receives the outcome of each. */
export interface CallGuard {
  /** A call was answered. Returns false if it had ended before: the answer is too late. */
  answered(call: GuardedCall): boolean
  /** The underlying store failed a call. */
  failed(call: GuardedCall, error: unknown): void
  /** The deadline of a call has passed; it has left the queue. */
  expired(call: GuardedCall, nowMs: number): void
  /** Remembers what local decisions need from a decision of the store. */
  note(batch: Batch): void
  /** Decides a batch without the store. Throws if that is impossible. */
  decideWithout(batch: Batch, failure: StoreFailure, error: unknown): void
  /** The store decided a batch whose caller already has another decision. The charge of a denied caller is returned. */
  decidedLate(batch: Batch, wasDenied: boolean): void
}

interface DecideCallParts {
  readonly caller: PendingBatch
  readonly queue: DeadlineQueue
}

/** The decision of one batch: the pending batch for the underlying store, on behalf of the caller's. */
export class DecideCall implements GuardedCall, PendingBatch {
  sentMs = 0.5
  older: WaitingCall | undefined = undefined
  newer: WaitingCall | undefined = undefined
  hasEnded = false
  ticket: number = NOT_ADMITTED
  batch: Batch
  isSent = false
  isAbandoned = false
  isQueued = false
  isOverdue = false
  next: PendingBatch | undefined = undefined
  readonly queue: DeadlineQueue
  readonly #guard: CallGuard
  readonly #store: CallbackStore
  readonly #caller: PendingBatch
  #wasDenied = true

  constructor(guard: CallGuard, store: CallbackStore, { caller, queue }: DecideCallParts) {
    this.queue = queue
    this.#guard = guard
    this.#store = store
    this.#caller = caller
    this.batch = caller.batch
  }

  start(): void {
    this.#store.submit(this)
  }

  complete(): void {
    if (!this.#guard.answered(this)) {
      this.#guard.decidedLate(this.batch, this.#wasDenied)
      return
    }
    this.#guard.note(this.batch)
    this.#caller.batch = this.batch
    this.#caller.complete()
  }

  fail(error: unknown): void {
    this.#guard.failed(this, error)
  }

  expire(nowMs: number): void {
    this.#guard.expired(this, nowMs)
  }

  /** The underlying store keeps the batch, and may still write to it. The caller gets a copy. */
  abandon(): void {
    this.isAbandoned = true
    this.#caller.batch = copyBatch(this.batch)
  }

  fallBack(failure: StoreFailure, error: unknown): void {
    const { batch } = this.#caller
    try {
      this.#guard.decideWithout(batch, failure, error)
    } catch (problem) {
      this.#caller.fail(problem)
      return
    }
    this.#wasDenied = !batch.allowed
    this.#caller.complete()
  }

  reject(error: unknown): void {
    this.#caller.fail(error)
  }
}

/** A call that returns a promise: a settlement, a block or a reset. Its result or failure goes to the caller. */
export class PromiseCall<T> implements GuardedCall {
  sentMs = 0.5
  older: WaitingCall | undefined = undefined
  newer: WaitingCall | undefined = undefined
  hasEnded = false
  ticket: number = NOT_ADMITTED
  readonly isSent = true
  isQueued = false
  isOverdue = false
  readonly queue: DeadlineQueue
  readonly #guard: CallGuard
  readonly #call: PromiseCallParts<T>

  constructor(guard: CallGuard, queue: DeadlineQueue, call: PromiseCallParts<T>) {
    this.queue = queue
    this.#guard = guard
    this.#call = call
  }

  start(): void {
    const answered = (value: T): void => {
      if (this.#guard.answered(this)) this.#call.resolve(value)
    }
    this.#call.start().then(answered, (error: unknown) => this.#guard.failed(this, error))
  }

  expire(nowMs: number): void {
    this.#guard.expired(this, nowMs)
  }

  abandon(): void {
    // It cannot be withdrawn.
  }

  fallBack(failure: StoreFailure, error: unknown): void {
    this.#call.reject(storeErrorOf(failure, error))
  }

  reject(error: unknown): void {
    this.#call.reject(error)
  }
}

interface PromiseCallParts<T> {
  readonly start: () => Promise<T>
  readonly resolve: (value: T) => void
  readonly reject: (error: unknown) => void
}
