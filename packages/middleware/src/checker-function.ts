import type { CheckAnswer, DecisionLike } from '@sluice/contract'
import { SluiceError } from '@sluice/core'
import type { CallReader } from './call-reader.ts'
import type { Charge } from './charge.ts'
import { FinalCharge } from './charge.ts'
import type { Checker } from './checker.ts'
import type { Eventually } from './eventually.ts'
import { isLater, whenThere } from './eventually.ts'
import type { HttpRequest } from './http-request.ts'
import type { Identity, KeySource } from './identity.ts'
import type { CheckCall, CostSource, RateLimitOptions } from './rate-limit-options.ts'

const MS_PER_SECOND = 1000

/** What decides by a function. */
export interface FunctionCheckerParts<Context> {
  readonly check: NonNullable<RateLimitOptions<Context>['check']>
  readonly reader: CallReader<Context>
  readonly key: KeySource<Context>
  readonly cost: CostSource<Context>
}

/** Decides by a function of the user's. */
export class FunctionChecker<Context> implements Checker<Context> {
  readonly meaning = undefined
  readonly #parts: FunctionCheckerParts<Context>

  constructor(parts: FunctionCheckerParts<Context>) {
    this.#parts = parts
  }

  ask<R>(context: Context, request: HttpRequest, go: (charge: Charge) => Eventually<R>): Eventually<R> {
    return whenThere(this.#ask(context, request), go)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  #ask(context: Context, request: HttpRequest): Eventually<Charge> {
    const { reader, key, cost } = this.#parts
    const identity = reader.identityOf(key, context, request)
    const units = reader.costOf(cost, context, request)
    const call = (who: Identity, some: number): CheckCall<Context> => ({
      key: reader.tiers.keyOf(who),
      identity: who,
      cost: some,
      request,
      context,
    })
    if (!(isLater(identity) || isLater(units))) return this.#decide(call(identity, units))
    return Promise.all([identity, units]).then(([who, some]) => this.#decide(call(who, some)))
  }

  #decide(call: CheckCall<Context>): Eventually<Charge> {
    return whenThere(this.#parts.check(call), (answer) => new FinalCharge(decisionOf(answer)))
  }
}

/** The decision that an answer of the service tells, to the second; a decision as it is. */
function decisionOf(answer: DecisionLike | CheckAnswer): DecisionLike {
  if (typeof (answer as Partial<DecisionLike> | undefined)?.allowed !== 'boolean') throw invalidAnswer(answer)
  if ('retryAfterMs' in answer) return answer
  const { allowed, reason, rule, limit, remaining, resetAt, retryAfter, version, delayMs, failure } = answer
  const unlimited = Number.POSITIVE_INFINITY
  return {
    allowed,
    reason,
    rule,
    limit: limit ?? unlimited,
    remaining: remaining ?? unlimited,
    resetAt: resetAt === null ? 0 : Date.parse(resetAt),
    retryAfterMs: allowed ? 0 : (retryAfter ?? unlimited) * MS_PER_SECOND,
    ...(version === undefined ? {} : { version }),
    ...(delayMs === undefined ? {} : { delayMs }),
    ...(failure === undefined ? {} : { failure }),
  }
}

function invalidAnswer(answer: unknown): SluiceError {
  return new SluiceError('SLUICE_INVALID_OPTION', {
    problem: 'what "check" answered cannot be used',
    received: answer,
    expected: 'a decision, such as that of limiter.check(key), or an answer of the service',
    action:
      typeof answer === 'boolean' ? 'Answer with what check() gives, not with that of tryAcquire().' : 'Return it.',
  })
}
