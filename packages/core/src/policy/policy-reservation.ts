import { settle as settleIn } from '../limiter/release-listeners.ts'
import { checkCost } from '../store/batch.ts'
import type { Answer, Mode, Receipt, Settlement, Store } from '../store/store.ts'
import type { PolicyDecision } from './policy-decision.ts'

/**
 * Units taken in advance under all limits of a request, or slots. Exactly one of `settle` and `release` takes effect;
 * calling either again answers what the first one did. Left alone, it is given back by itself when its time is over.
 */
export interface PolicyReservation<M extends Mode = Mode> {
  readonly allowed: true
  readonly decision: PolicyDecision
  /** What another process needs to settle it, with the methods of the engine that take one. */
  readonly claim: ReservationClaim
  /**
   * Corrects the charges to the actual usage, in the unit of the request's cost. Rules with a cost of their own
   * multiply it. Slots are released.
   */
  settle(actual: number): Answer<M, Settlement>
  /** Gives all of it back. */
  release(): Answer<M, Settlement>
  /** Keeps slots for another lease (a heartbeat). `gone` when they had run out. */
  renew(): Answer<M, Settlement>
  /** Releases what was neither settled nor released. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * The charges behind a reservation, as plain data, so that another process with the same store can settle it. Verify
 * the origin of a claim before you use it.
 */
export interface ReservationClaim {
  readonly receipt: Receipt
  /** The cost the request was made with. */
  readonly cost: number
}

/** The claim of a request that nothing was charged for. */
export const EMPTY_CLAIM: ReservationClaim = Object.freeze({
  receipt: Object.freeze({ holder: 0, held: false, leaseMicros: 0, charges: Object.freeze([]) }),
  cost: 1,
})

/** Makes the charges of a claim stand at `actual`, in the unit of the request's cost, and gives slots back. */
export function settleClaim<M extends Mode>(
  store: Store<M>,
  { receipt, cost }: ReservationClaim,
  actual: number,
): Answer<M, Settlement> {
  checkCost(actual)
  const actuals = receipt.charges.map((charge) => {
    if (charge.limit.algorithm === 'concurrency' || cost === 0) return 0
    return Math.ceil((charge.cost / cost) * actual)
  })
  return settleIn(store, receipt, actuals)
}

/** Keeps the slots of a claim for another lease. */
export function renewClaim<M extends Mode>(store: Store<M>, { receipt }: ReservationClaim): Answer<M, Settlement> {
  const actuals = receipt.charges.map((charge) => charge.cost)
  return store.settle({ ...receipt, held: false }, actuals)
}

/** A reservation over a claim. */
export function createPolicyReservation<M extends Mode>(
  store: Store<M>,
  decision: PolicyDecision,
  claim: ReservationClaim,
): PolicyReservation<M> {
  let ended: Answer<M, Settlement> | undefined
  const settle = (actual: number): Answer<M, Settlement> => {
    ended ??= settleClaim(store, claim, actual)
    return ended
  }
  return {
    allowed: true,
    decision,
    claim,
    settle,
    release: () => settle(0),
    renew: () => ended ?? renewClaim(store, claim),
    async [Symbol.asyncDispose]() {
      await settle(0)
    },
  }
}
