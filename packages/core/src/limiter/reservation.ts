import { checkCost } from '../store/batch.ts'
import type { Answer, Mode, Receipt, Settlement, Store } from '../store/store.ts'
import type { Allowed } from './decision.ts'
import { settle as settleIn } from './release-listeners.ts'

/**
 * Units charged in advance, or a concurrency slot. Exactly one of `settle` and `release` takes effect; calling either
 * again returns the result of the first call. An unused reservation is returned when it expires.
 */
export interface Reservation<M extends Mode = Mode> {
  readonly allowed: true
  readonly decision: Allowed<M>
  /** Sets the charge to the actual usage, which may exceed the reservation. */
  settle(actual: number): Answer<M, Settlement>
  /** Returns all of it. */
  release(): Answer<M, Settlement>
  /**
   * Extends a concurrency slot by another lease (a heartbeat). `gone` if it had expired. Has no effect on other limits.
   */
  renew(): Answer<M, Settlement>
  /** Releases a reservation that was neither settled nor released. */
  [Symbol.asyncDispose](): Promise<void>
}

/** A reservation with the receipt of its charge. */
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
