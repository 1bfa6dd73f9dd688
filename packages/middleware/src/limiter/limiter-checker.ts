import type { Decision, Duration, Limiter, Reservation } from '@sluice/core'
import type { HttpRequest } from '../http/http-request.ts'
import type { Eventually } from '../http/maybe-promise.ts'
import { isLater, whenThere } from '../http/maybe-promise.ts'
import type { KeySource } from '../identity/identity.ts'
import type { CallReader } from '../identity/request-reader.ts'
import type { CostSource } from '../options/rate-limit-options.ts'
import type { Charge, ChargeFate } from './charge.ts'
import { FinalCharge } from './charge.ts'
import type { Checker } from './checker.ts'
import type { LimitMeaning } from './limit-meaning.ts'
import { askMeaning } from './limit-meaning.ts'

/** Longest that a request is under way without being charged anew when it ends. */
const RESERVED_FOR: Duration = '1h'

/** What decides by one limiter. */
export interface LimiterCheckerParts<Context> {
  readonly limiter: Limiter
  readonly reader: CallReader<Context>
  readonly key: KeySource<Context>
  readonly cost: CostSource<Context>
  /** Whether charges are changed to what the requests really cost. */
  readonly settles: boolean
  /** What its limit means, and whether it was made here; a limiter from elsewhere is asked with the first request. */
  readonly own: { readonly meaning: LimitMeaning | undefined } | undefined
}

/** Decides by one limiter. */
export class LimiterChecker<Context> implements Checker<Context> {
  readonly #parts: LimiterCheckerParts<Context>
  readonly #limiter: Limiter
  #meaning: LimitMeaning | undefined
  #isKnown: boolean
  #reserves: boolean

  constructor(parts: LimiterCheckerParts<Context>) {
    this.#parts = parts
    this.#limiter = parts.limiter
    this.#meaning = parts.own?.meaning
    this.#isKnown = parts.own !== undefined
    this.#reserves = parts.settles
  }

  get meaning(): LimitMeaning | undefined {
    return this.#meaning
  }

  ask<R>(context: Context, request: HttpRequest, go: (charge: Charge) => Eventually<R>): Eventually<R> {
    const { reader } = this.#parts
    const key = reader.keyOf(this.#parts.key, context, request)
    const cost = reader.costOf(this.#parts.cost, context, request)
    if (!(isLater(key) || isLater(cost))) return this.#decide(key, cost, go)
    return Promise.all([key, cost]).then(([laterKey, laterCost]) => this.#decide(laterKey, laterCost, go))
  }

  async close(): Promise<void> {
    if (this.#parts.own !== undefined) await this.#limiter.close()
  }

  #decide<R>(key: string, cost: number, go: (charge: Charge) => Eventually<R>): Eventually<R> {
    if (!this.#isKnown) return this.#learn(key, cost, go)
    if (this.#reserves) return whenThere(this.#reserve(key, cost), go)
    const decision = (
      cost === 1 ? this.#limiter.check(key) : this.#limiter.check(key, { cost })
    ) as Eventually<Decision>
    if (isLater(decision)) return decision.then((later) => go(new RefundableCharge(this.#limiter, later)))
    return go(new RefundableCharge(this.#limiter, decision))
  }

  #learn<R>(key: string, cost: number, go: (charge: Charge) => Eventually<R>): Eventually<R> {
    return whenThere(askMeaning(this.#limiter, key), (meaning) => {
      this.#meaning = meaning
      this.#isKnown = true
      this.#reserves ||= isSlot(meaning)
      return this.#decide(key, cost, go)
    })
  }

  #reserve(key: string, cost: number): Eventually<Charge> {
    const asked = this.#limiter.reserve(key, { cost, expiresAfter: RESERVED_FOR }) as Eventually<Reservation | Decision>
    const leaseMs = isSlot(this.#meaning) ? this.#meaning!.windowMs : 0
    return whenThere(asked, (answer): Charge => {
      return 'settle' in answer ? new ReservedCharge(answer, cost, leaseMs) : new FinalCharge(answer)
    })
  }
}

function isSlot(meaning: LimitMeaning | undefined): boolean {
  return meaning?.quotaUnit === 'concurrent-requests'
}

/** A charge that stands unless it is given back. */
class RefundableCharge implements Charge {
  readonly decision: Decision
  readonly isHeld = false
  readonly leaseMs = 0
  readonly #limiter: Limiter

  constructor(limiter: Limiter, decision: Decision) {
    this.decision = decision
    this.#limiter = limiter
  }

  end(fate: ChargeFate): Eventually<unknown> {
    return fate === 'given-back' ? this.#limiter.refund(this.decision) : undefined
  }
}

/** Units, or a slot, that are held until the request has ended. */
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

  end(fate: ChargeFate): Eventually<unknown> {
    if (fate === 'given-back' || this.leaseMs > 0) return this.#reservation.release()
    return this.#reservation.settle(fate === 'stands' ? this.#cost : fate)
  }

  renew(): Eventually<unknown> {
    return this.#reservation.renew()
  }
}
