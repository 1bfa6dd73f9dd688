import type { Decision, Duration, Limiter, Reservation } from '@sluice/core'
import type { HttpRequest } from '../http/http-request.ts'
import type { MaybePromise } from '../http/maybe-promise.ts'
import { andThen, isPromise } from '../http/maybe-promise.ts'
import type { LimitDescription } from '../http/response-headers.ts'
import type { KeySource } from '../identity/identity.ts'
import type { CostSource, RequestReader } from '../identity/request-reader.ts'
import type { Charge, Checker, Settlement } from './checker.ts'
import { FinalCharge, queryDescription } from './checker.ts'

/** Maximum duration of a request before its reservation expires. */
const RESERVED_FOR: Duration = '1h'

/** Options of {@link LimiterChecker}. */
export interface LimiterCheckerParts<Context> {
  readonly limiter: Limiter
  readonly reader: RequestReader<Context>
  readonly key: KeySource<Context>
  readonly cost: CostSource<Context>
  /** Whether charges are changed to the actual cost. */
  readonly settles: boolean
  /** Set if the middleware created the limiter. Others are queried for their description with the first request. */
  readonly own: { readonly description: LimitDescription | undefined } | undefined
}

/** Decides by one limiter. */
export class LimiterChecker<Context> implements Checker<Context> {
  readonly #parts: LimiterCheckerParts<Context>
  readonly #limiter: Limiter
  #description: LimitDescription | undefined
  #isKnown: boolean
  #reserves: boolean

  constructor(parts: LimiterCheckerParts<Context>) {
    this.#parts = parts
    this.#limiter = parts.limiter
    this.#description = parts.own?.description
    this.#isKnown = parts.own !== undefined
    this.#reserves = parts.settles
  }

  get description(): LimitDescription | undefined {
    return this.#description
  }

  ask<R>(context: Context, request: HttpRequest, go: (charge: Charge) => MaybePromise<R>): MaybePromise<R> {
    const { reader } = this.#parts
    const key = reader.keyOf(this.#parts.key, context, request)
    const cost = reader.costOf(this.#parts.cost, context, request)
    if (!(isPromise(key) || isPromise(cost))) return this.#decide(key, cost, go)
    return Promise.all([key, cost]).then(([laterKey, laterCost]) => this.#decide(laterKey, laterCost, go))
  }

  async close(): Promise<void> {
    if (this.#parts.own !== undefined) await this.#limiter.close()
  }

  #decide<R>(key: string, cost: number, go: (charge: Charge) => MaybePromise<R>): MaybePromise<R> {
    if (!this.#isKnown) return this.#learn(key, cost, go)
    if (this.#reserves) return andThen(this.#reserve(key, cost), go)
    const decision = (
      cost === 1 ? this.#limiter.check(key) : this.#limiter.check(key, { cost })
    ) as MaybePromise<Decision>
    if (isPromise(decision)) return decision.then((later) => go(new RefundableCharge(this.#limiter, later)))
    return go(new RefundableCharge(this.#limiter, decision))
  }

  #learn<R>(key: string, cost: number, go: (charge: Charge) => MaybePromise<R>): MaybePromise<R> {
    return andThen(queryDescription(this.#limiter, key), (description) => {
      this.#description = description
      this.#isKnown = true
      this.#reserves ||= isSlot(description)
      return this.#decide(key, cost, go)
    })
  }

  #reserve(key: string, cost: number): MaybePromise<Charge> {
    const asked = this.#limiter.reserve(key, { cost, expiresAfter: RESERVED_FOR }) as MaybePromise<
      Reservation | Decision
    >
    const leaseMs = isSlot(this.#description) ? this.#description!.windowMs : 0
    return andThen(asked, (answer): Charge => {
      return 'settle' in answer ? new ReservedCharge(answer, cost, leaseMs) : new FinalCharge(answer)
    })
  }
}

function isSlot(description: LimitDescription | undefined): boolean {
  return description?.quotaUnit === 'concurrent-requests'
}

/** A charge that is kept unless refunded. */
class RefundableCharge implements Charge {
  readonly decision: Decision
  readonly isHeld = false
  readonly leaseMs = 0
  readonly #limiter: Limiter

  constructor(limiter: Limiter, decision: Decision) {
    this.decision = decision
    this.#limiter = limiter
  }

  end(settlement: Settlement): MaybePromise<unknown> {
    return settlement === 'refund' ? this.#limiter.refund(this.decision) : undefined
  }
}

/** Units or a slot that are held until the request completes. */
class ReservedCharge implements Charge {
  readonly decision: Decision
  readonly isHeld = true
  readonly leaseMs: number
  readonly #reservation: Reservation
  readonly #cost: number

  constructor(reservation: Reservation, cost: number, leaseMs: number) {
    this.decision = reservation.decision
    this.leaseMs = leaseMs
    this.#reservation = reservation
    this.#cost = cost
  }

  end(settlement: Settlement): MaybePromise<unknown> {
    if (settlement === 'refund' || this.leaseMs > 0) return this.#reservation.release()
    return this.#reservation.settle(settlement === 'keep' ? this.#cost : settlement)
  }

  renew(): MaybePromise<unknown> {
    return this.#reservation.renew()
  }
}
