import type { DecisionLike } from '@sluice/contract'
import type { Decision, Limiter, Rule } from '@sluice/core'
import { compileRule, createBatch, createItem, decisionOn } from '@sluice/core/internal'
import type { HttpRequest } from '../http/http-request.ts'
import type { MaybePromise } from '../http/maybe-promise.ts'
import { andThen } from '../http/maybe-promise.ts'
import type { LimitDescription } from '../http/response-headers.ts'

/** Decides requests, whatever the source of the limits. */
export interface Checker<Context> {
  /** Describes the limit of decisions without reports. Undefined if unknown or varying. */
  readonly description: LimitDescription | undefined
  /**
   * Decides a request, charges it if allowed, and calls `go` with the charge. A continuation instead of a returned
   * promise saves one microtask per request on a remote store.
   */
  ask<R>(context: Context, request: HttpRequest, go: (charge: Charge) => MaybePromise<R>): MaybePromise<R>
  /** Frees resources. Safe to call again. */
  close(): Promise<void>
}

/** Result of a charge: it is kept, refunded, or changed to a number of units. */
export type Settlement = 'keep' | 'refund' | number

/** The charge of a request until the request completes. */
export interface Charge {
  readonly decision: DecisionLike
  /** Whether it must be settled in any case, because slots are held or units reserved. */
  readonly isHeld: boolean
  /** How long slots are held without `renew`, in milliseconds. 0: no slots, or not renewable. */
  readonly leaseMs: number
  /** Settles the charge and releases slots. Called once, and only for allowed requests. */
  end(settlement: Settlement): MaybePromise<unknown>
  /** Extends the lease of slots. */
  renew?(): MaybePromise<unknown>
  /** Reports the response status, if later decisions depend on it. */
  report?(status: number): void
}

/** A charge that cannot be corrected: a denial, or a decider without refunds. */
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

/** Describes the only limit of a rule. Undefined if there are none or several, which describe themselves. */
export function describeLimit(rule: Rule): LimitDescription | undefined {
  const [limit, ...others] = compileRule('rule', rule)
  if (limit === undefined || others.length > 0) return undefined
  // A decision on two limits reports on each.
  return decisionOn(createBatch([createItem(limit, 'a', 0), createItem(limit, 'b', 0)]), undefined).limits[0]
}

/** Queries the description of the first limit of a limiter, without charging. Undefined if it does not limit. */
export function queryDescription(limiter: Limiter, key: string): MaybePromise<LimitDescription | undefined> {
  // A decision about one key of one limit says no more than its number: about two keys it reports on each.
  const asked = limiter.checkAll([
    { key, cost: 0 },
    { key: `${key}'`, cost: 0 },
  ]) as MaybePromise<Decision>
  return andThen(asked, ({ limits }) => limits[0])
}
