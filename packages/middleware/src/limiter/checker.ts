import type { DecisionLike } from '@sluice/contract'
import type { Decision, Limiter, Rule } from '@sluice/core'
import { compileRule, createBatch, createItem, decisionOn } from '@sluice/core/internal'
import type { HttpRequest } from '../http/http-request.ts'
import type { MaybePromise } from '../http/maybe-promise.ts'
import { andThen } from '../http/maybe-promise.ts'
import type { LimitDescription } from '../http/response-headers.ts'

/** Decides requests, whatever the limits come from. */
export interface Checker<Context> {
  /** What a decision is about that has no reports of its own; undefined where that is not known, or not always the same. */
  readonly description: LimitDescription | undefined
  /**
   * Decides a request, charges it when it is allowed, and goes on with that. Each step that a promise is awaited in costs every
   * request on a remote store, so that the next step is handed in instead.
   */
  ask<R>(context: Context, request: HttpRequest, go: (charge: Charge) => MaybePromise<R>): MaybePromise<R>
  /** Frees what was made for it. May be called again. */
  close(): Promise<void>
}

/** What becomes of a charge: it stands as it is, it is given back, or it stands at so many units. */
export type Settlement = 'keep' | 'refund' | number

/** What a request was charged, until it has ended. */
export interface Charge {
  readonly decision: DecisionLike
  /** Whether it has to be ended whatever becomes of the request, because slots are held, or units reserved. */
  readonly isHeld: boolean
  /** How long slots are held without `renew`, in milliseconds; 0 when there are none, or when they cannot be renewed. */
  readonly leaseMs: number
  /** Ends it, and gives slots back. Called once, and only when the decision allowed the request. */
  end(settlement: Settlement): MaybePromise<unknown>
  /** Keeps slots for another lease. */
  renew?(): MaybePromise<unknown>
  /** Says with which status the request was answered, where that has a bearing on later decisions. */
  report?(status: number): void
}

/** A decision that can not be corrected later: a denial, or one of somebody who takes nothing back. */
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

/** The meaning of the one limit of a rule; undefined when it has none or several, whose decisions say it themselves. */
export function describeLimit(rule: Rule): LimitDescription | undefined {
  const [limit, ...others] = compileRule('rule', rule)
  if (limit === undefined || others.length > 0) return undefined
  // A decision on two limits reports on each.
  return decisionOn(createBatch([createItem(limit, 'a', 0), createItem(limit, 'b', 0)]), undefined).limits[0]
}

/** Asks a limiter what the first of its limits means, without taking anything; undefined when it does not limit. */
export function queryDescription(limiter: Limiter, key: string): MaybePromise<LimitDescription | undefined> {
  // A decision about one key of one limit says no more than its number: about two keys it reports on each.
  const asked = limiter.checkAll([
    { key, cost: 0 },
    { key: `${key}'`, cost: 0 },
  ]) as MaybePromise<Decision>
  return andThen(asked, ({ limits }) => limits[0])
}
