import type { DecisionLike } from '@sluice/contract'
import type { Eventually } from '../http/maybe-promise.ts'

/** What becomes of a charge: it stands as it is, it is given back, or it stands at so many units. */
export type ChargeFate = 'stands' | 'given-back' | number

/** What a request was charged, until it has ended. */
export interface Charge {
  readonly decision: DecisionLike
  /** Whether it has to be ended whatever becomes of the request, because slots are held, or units reserved. */
  readonly isHeld: boolean
  /** How long slots are held without `renew`, in milliseconds; 0 when there are none, or when they cannot be renewed. */
  readonly leaseMs: number
  /** Ends it, and gives slots back. Called once, and only when the decision allowed the request. */
  end(fate: ChargeFate): Eventually<unknown>
  /** Keeps slots for another lease. */
  renew?(): Eventually<unknown>
  /** Says with which status the request was answered, where that has a bearing on later decisions. */
  report?(status: number): void
}

/** A decision that can not be corrected later: a refusal, or one of somebody who takes nothing back. */
export class FinalCharge implements Charge {
  readonly decision: DecisionLike
  readonly isHeld = false
  readonly leaseMs = 0

  constructor(decision: DecisionLike) {
    this.decision = decision
  }

  end(): void {
    // It stands by itself.
  }
}
