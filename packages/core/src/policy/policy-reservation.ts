import { settle as settleIn } from '../limiter/release-listeners.ts'
import { checkCost } from '../store/batch.ts'
import type { Answer, Mode, Receipt, Settlement, Store } from '../store/store.ts'
import type { PolicyDecision } from './policy-decision.ts'

/**
 * Units charged in advance under all limits of a request, or slots. Exactly one of `settle` and `release` takes effect;
 * calling either again returns the result of the first call. An unused reservation is returned when it expires.
 */
export interface PolicyReservation<M extends Mode = Mode> {
  readonly allowed: true
  readonly decision: PolicyDecision
  /** What another process needs to settle it, with the methods of the engine that take a claim. */
  readonly claim: ReservationClaim
  /**
   * Corrects the charges to the actual usage, in the unit of the request's cost. Rules with their own cost multiply it.
   * Slots are released.
   */
  settle(actual: number): Answer<M, Settlement>
  /** Returns all of it. */
  release(): Answer<M, Settlement>
  /** Extends slots by another lease (a heartbeat). `gone` if they had expired. */
  renew(): Answer<M, Settlement>
  /** Releases a reservation that was neither settled nor released. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * The charges behind a reservation, as plain data, so that another process with the same store can settle it. Verify
 * the origin of a claim before you use it.
 */
export interface ReservationClaim {
  readonly receipt: Receipt
  /** The cost of the request. */
  readonly cost: number
}

/** The claim of a request without charges. */
export const EMPTY_CLAIM: ReservationClaim = Object.freeze({
  receipt: Object.freeze({ holder: 0, held: false, leaseMicros: 0, charges: Object.freeze([]) }),
  cost: 1,
})

/** Sets the charges of a claim to `actual`, in the unit of the request's cost, and releases slots. */
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

/** Extends the slots of a claim by another lease. */
export function renewClaim<M extends Mode>(store: Store<M>, { receipt }: ReservationClaim): Answer<M, Settlement> {
  const actuals = receipt.charges.map((charge) => charge.cost)
  return store.settle({ ...receipt, held: false }, actuals)
}

/** A reservation for a claim. */
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
