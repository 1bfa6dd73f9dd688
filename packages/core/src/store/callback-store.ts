import type { Limit } from '../rule/limit.ts'
import { copyAnswers, copyQuestion } from './batch-copy.ts'
import type { Batch, BlockTerm, Receipt, Settlement, Store } from './store.ts'

/** Hears how a question ended. Exactly one of its methods is called, once; it may be before `ask` has returned. */
export interface AnswerListener {
  /** The answers are on the sheet. */
  answered(sheet: Batch): void
  /** There is no answer. */
  unanswered(error: unknown): void
}

/** A question that is under way. */
export interface AskedQuestion {
  /** Where the answer will be written. Whoever asked may put a copy here that nobody reads, and go on without it. */
  sheet: Batch
  /** False while it is certain that nothing has been charged, nor will be once a copy is put in place of the sheet. */
  readonly hasLeft?: boolean
}

/**
 * A store that tells a listener instead of keeping a promise. A check passes several decorators, and a promise in each would
 * cost more than the check; so limiter and decorators talk this way where a store can.
 */
export interface ListenedStore extends Store<'async'> {
  ask(batch: Batch, listener: AnswerListener): AskedQuestion
}

/** Whether a store can be listened to. */
export function isListened(store: Store): store is ListenedStore {
  return 'ask' in store
}

/** Any store that answers by promise, as one that can be listened to. */
export function asListened(store: Store<'async'>): ListenedStore {
  return isListened(store) ? store : new PromiseStoreAdapter(store)
}

class PromiseStoreAdapter implements ListenedStore {
  readonly mode = 'async'
  readonly #store: Store<'async'>

  constructor(store: Store<'async'>) {
    this.#store = store
  }

  ask(batch: Batch, listener: AnswerListener): AskedQuestion {
    return askByPromise((sheet) => this.#store.decide(sheet), batch, listener)
  }

  decide(batch: Batch): Promise<void> {
    return this.#store.decide(batch)
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

/** Asks something that answers by promise, on a sheet of its own. */
export function askByPromise(
  decide: (sheet: Batch) => Promise<void>,
  batch: Batch,
  listener: AnswerListener,
): AskedQuestion {
  const asked = { sheet: batch }
  const own = copyQuestion(batch)
  try {
    decide(own).then(
      () => {
        copyAnswers(own, asked.sheet)
        listener.answered(asked.sheet)
      },
      (error: unknown) => listener.unanswered(error),
    )
  } catch (error) {
    listener.unanswered(error)
  }
  return asked
}

/** The promise of an answer, of a store that can be listened to. */
export function decideByListening(store: Pick<ListenedStore, 'ask'>, batch: Batch): Promise<void> {
  return new Promise((resolve, reject) => {
    store.ask(batch, { answered: () => resolve(), unanswered: reject })
  })
}
