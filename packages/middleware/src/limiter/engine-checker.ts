import type { Duration } from '@sluice/core'
import type { PolicyDecision, PolicyEngine, PolicyRequest, PolicyReservation } from '@sluice/core/policy'
import type { HttpRequest } from '../http/http-request.ts'
import type { MaybePromise } from '../http/maybe-promise.ts'
import { andThen, isPromise } from '../http/maybe-promise.ts'
import type { CostSource, RequestReader } from '../identity/request-reader.ts'
import type { RateLimitOptions } from '../options/rate-limit-options.ts'
import type { Charge, Checker, Settlement } from './checker.ts'
import { FinalCharge } from './checker.ts'

/** Maximum duration of a request before its reservation expires. */
const RESERVED_FOR: Duration = '1h'

/** First status of server errors. */
const FIRST_SERVER_ERROR = 500

/** Options of {@link EngineChecker}. */
export interface EngineCheckerParts<Context> {
  readonly engine: PolicyEngine
  readonly identify: RateLimitOptions<Context>['identify']
  readonly cost: CostSource<Context>
  readonly reader: RequestReader<Context>
  /** Whether charges are changed to the actual cost. */
  readonly settles: boolean
}

/** Decides by a policy engine, and reports responses to it. */
export class EngineChecker<Context> implements Checker<Context> {
  readonly description = undefined
  readonly #parts: EngineCheckerParts<Context>
  /** Whether to reserve. Set by the first decision with a slot, because only a reservation can release slots alone. */
  #reserves: boolean

  constructor(parts: EngineCheckerParts<Context>) {
    this.#parts = parts
    this.#reserves = parts.settles
  }

  ask<R>(context: Context, request: HttpRequest, go: (charge: Charge) => MaybePromise<R>): MaybePromise<R> {
    return andThen(this.#ask(context, request), go)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  #ask(context: Context, request: HttpRequest): MaybePromise<Charge> {
    const { identify, cost, reader } = this.#parts
    const who = identify?.(context, request)
    const units = reader.costOf(cost, context, request)
    if (!(isPromise(who) || isPromise(units))) return this.#decide(this.#requestOf(request, who, units))
    return Promise.all([who, units]).then(([known, some]) => this.#decide(this.#requestOf(request, known, some)))
  }

  #requestOf(request: HttpRequest, who: Partial<PolicyRequest> | undefined, cost: number): PolicyRequest {
    // Nothing to add: no copy is made.
    if (cost === 1 && isComplete(who)) return who
    const ip = who?.ip ?? this.#parts.reader.fallbackAddressOf(request)
    return {
      resource: pathOf(request.url),
      method: request.method,
      ...(ip === undefined ? {} : { ip }),
      ...(cost === 1 ? {} : { cost }),
      ...who,
    }
  }

  #decide(request: PolicyRequest): MaybePromise<Charge> {
    const { engine } = this.#parts
    if (this.#reserves) return this.#reserve(request)
    return andThen(engine.check(request) as MaybePromise<PolicyDecision>, (decision) => {
      const holdsSlots =
        decision.allowed && decision.limits.some(({ quotaUnit }) => quotaUnit === 'concurrent-requests')
      if (!holdsSlots) return new CheckedCharge(engine, request, decision)
      this.#reserves = true
      return andThen(engine.refund(decision) as MaybePromise<unknown>, () => this.#reserve(request))
    })
  }

  #reserve(request: PolicyRequest): MaybePromise<Charge> {
    const { engine } = this.#parts
    const asked = engine.reserve(request, { expiresAfter: RESERVED_FOR }) as MaybePromise<
      PolicyReservation | PolicyDecision
    >
    return andThen(asked, (answer): Charge => {
      return 'claim' in answer ? new ReservedCharge(engine, request, answer) : new FinalCharge(answer)
    })
  }
}

function isComplete(who: Partial<PolicyRequest> | undefined): who is PolicyRequest {
  return who !== undefined && who.resource !== undefined && who.method !== undefined && who.ip !== undefined
}

/** Path without query. An absolute URL stays as it is, because servers differ in where its path begins. */
function pathOf(url: string): string {
  const query = url.startsWith('/') ? url.indexOf('?') : -1
  return query < 0 ? url : url.slice(0, query)
}

/** A charge that is kept unless refunded. */
class CheckedCharge implements Charge {
  readonly decision: PolicyDecision
  readonly isHeld = false
  readonly leaseMs = 0
  readonly #engine: PolicyEngine
  readonly #request: PolicyRequest

  constructor(engine: PolicyEngine, request: PolicyRequest, decision: PolicyDecision) {
    this.decision = decision
    this.#engine = engine
    this.#request = request
  }

  end(settlement: Settlement): MaybePromise<unknown> {
    return settlement === 'refund' ? this.#engine.refund(this.decision) : undefined
  }

  report(status: number): void {
    tell(this.#engine, this.#request, status)
  }
}

/** Units and slots that are held until the request completes. */
class ReservedCharge implements Charge {
  readonly decision: PolicyDecision
  readonly isHeld = true
  readonly leaseMs: number
  readonly #engine: PolicyEngine
  readonly #request: PolicyRequest
  readonly #reservation: PolicyReservation

  constructor(engine: PolicyEngine, request: PolicyRequest, reservation: PolicyReservation) {
    this.decision = reservation.decision
    this.#engine = engine
    this.#request = request
    this.#reservation = reservation
    const leases = this.decision.limits
      .filter(({ quotaUnit }) => quotaUnit === 'concurrent-requests')
      .map(({ windowMs }) => windowMs)
    this.leaseMs = leases.length > 0 ? Math.min(...leases) : 0
  }

  end(settlement: Settlement): MaybePromise<unknown> {
    if (settlement === 'refund') return this.#reservation.release()
    return this.#reservation.settle(settlement === 'keep' ? (this.#request.cost ?? 1) : settlement)
  }

  renew(): MaybePromise<unknown> {
    return this.#reservation.renew()
  }

  report(status: number): void {
    tell(this.#engine, this.#request, status)
  }
}

/** Without a response, nothing is known about the server. */
function tell(engine: PolicyEngine, request: PolicyRequest, status: number): void {
  if (status > 0) engine.report(request, status >= FIRST_SERVER_ERROR)
}
