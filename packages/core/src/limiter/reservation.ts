import { checkCost } from '../store/batch.ts'
import type { Answer, Mode, Receipt, Settlement, Store } from '../store/store.ts'
import type { Allowed } from './decision.ts'
import { settle as settleIn } from './release-listeners.ts'

/**
 * Units taken in advance, or a concurrency slot. Exactly one of `settle` and `release` takes effect; calling either
 * again answers what the first one did. Left alone, it is given back by itself when its time is over.
 */
export interface Reservation<M extends Mode = Mode> {
  readonly allowed: true
  readonly decision: Allowed<M>
  /** Makes the charge stand at what was really used, which may be more than was reserved. */
  settle(actual: number): Answer<M, Settlement>
  /** Gives all of it back. */
  release(): Answer<M, Settlement>
  /**
   * Keeps a concurrency slot for another lease (a heartbeat). `gone` when it had run out. For other limits it does
   * nothing.
   */
  renew(): Answer<M, Settlement>
  /** Releases what was neither settled nor released. */
  [Symbol.asyncDispose](): Promise<void>
}

/** A reservation over the receipt of its charge. */
export function createReservation<M extends Mode>(
  store: Store<M>,
  decision: Allowed<M>,
  receipt: Receipt,
): Reservation<M> {
  let ended: Answer<M, Settlement> | undefined
  const settle = (actual: number): Answer<M, Settlement> => {
    checkCost(actual)
    ended ??= settleIn(
      store,
      receipt,
      receipt.charges.map(() => actual),
    )
    return ended
  }
  return {
    allowed: true,
    decision,
    settle,
    release: () => settle(0),
    renew: () =>
      ended ??
      store.settle(
        { ...receipt, held: false },
        receipt.charges.map((charge) => charge.cost),
      ),
    async [Symbol.asyncDispose]() {
      await settle(0)
    },
  }
}
