import type { Limit } from '../rule/limit.ts'
import { copyBatch, copyDecision } from './batch-copy.ts'
import type { Batch, BlockTerm, Receipt, Settlement, Store } from './store.ts'

/**
 * A batch on its way to a decision, with the callbacks for its completion. Exactly one of `complete` and `fail` is
 * called, once. It may be called before `submit` returns. An interface and not a base class: there is one for each
 * check, and creating an object of a derived class takes twice as long.
 */
export interface PendingBatch {
  /** The batch to decide. At `complete()` it holds the decision, and may be another object than the submitted one. */
  batch: Batch
  /** Set by the store before the batch can be charged. */
  isSent: boolean
  /** Whether the caller has stopped waiting for the decision. A store drops such a batch unless it has sent it. */
  readonly isAbandoned: boolean
  /** For the store that has it: the next one in a list. */
  next: PendingBatch | undefined
  complete(): void
  /** There is no decision. */
  fail(error: unknown): void
}

/**
 * A store that decides by callback: the base of all asynchronous stores of this workspace. A check passes through
 * several of them, and a promise in each would cost more than the check.
 */
export abstract class CallbackStore implements Store<'async'> {
  readonly mode = 'async'

  /** Decides `pending.batch`, and calls `complete` or `fail`. Never throws. */
  abstract submit(pending: PendingBatch): void
  abstract settle(receipt: Receipt, actuals: readonly number[]): Promise<Settlement>
  abstract block(rule: string, key: string, term: BlockTerm): Promise<void>
  abstract reset(limits: readonly Limit[], key: string): Promise<void>
  abstract close(): Promise<void>

  /** The same with a promise, for callers of the `Store` interface. */
  decide(batch: Batch): Promise<void> {
    return new Promise((resolve, reject) => this.submit(new DecidePromise(batch, resolve, reject)))
  }
}

class DecidePromise implements PendingBatch {
  batch: Batch
  isSent = false
  readonly isAbandoned = false
  next: PendingBatch | undefined = undefined
  readonly #submitted: Batch
  readonly #resolve: () => void
  readonly fail: (error: unknown) => void

  constructor(batch: Batch, resolve: () => void, reject: (error: unknown) => void) {
    this.batch = batch
    this.#submitted = batch
    this.#resolve = resolve
    this.fail = reject
  }

  complete(): void {
    if (this.batch !== this.#submitted) copyDecision(this.batch, this.#submitted)
    this.#resolve()
  }
}

/** Adapts any asynchronous store to callbacks. */
export function callbackStore(store: Store<'async'>): CallbackStore {
  return store instanceof CallbackStore ? store : new PromiseStoreAdapter(store)
}

class PromiseStoreAdapter extends CallbackStore {
  readonly #store: Store<'async'>

  constructor(store: Store<'async'>) {
    super()
    this.#store = store
  }

  submit(pending: PendingBatch): void {
    completeAfter(pending, (batch) => this.#store.decide(batch))
  }

  settle(receipt: Receipt, actuals: readonly number[]): Promise<Settlement> {
    return this.#store.settle(receipt, actuals)
  }

  block(rule: string, key: string, term: BlockTerm): Promise<void> {
    return this.#store.block(rule, key, term)
  }

  reset(limits: readonly Limit[], key: string): Promise<void> {
    return this.#store.reset(limits, key)
  }

  close(): Promise<void> {
    return this.#store.close()
  }
}

/**
 * Completes a pending batch with a function that returns a promise. It decides a copy: the submitted batch stays
 * unchanged meanwhile, so that another store can still decide it.
 */
export function completeAfter(pending: PendingBatch, decide: (batch: Batch) => Promise<void>): void {
  const batch = copyBatch(pending.batch)
  pending.isSent = true
  try {
    decide(batch).then(
      () => {
        pending.batch = batch
        pending.complete()
      },
      (error: unknown) => pending.fail(error),
    )
  } catch (error) {
    // A store that throws instead of rejecting is no different.
    pending.fail(error)
  }
}
