import type { CheckAnswer, DecisionLike } from '@sluice/contract'
import { SluiceError } from '@sluice/core'
import type { HttpRequest } from '../http/http-request.ts'
import type { MaybePromise } from '../http/maybe-promise.ts'
import { andThen, isPromise } from '../http/maybe-promise.ts'
import type { Identity, KeySource } from '../identity/identity.ts'
import type { CostSource, RequestReader } from '../identity/request-reader.ts'
import type { CheckCall, RateLimitOptions } from '../options/rate-limit-options.ts'
import type { Charge, Checker } from './checker.ts'
import { FinalCharge } from './checker.ts'

const MS_PER_SECOND = 1000

/** Options of {@link FunctionChecker}. */
export interface FunctionCheckerParts<Context> {
  readonly check: NonNullable<RateLimitOptions<Context>['check']>
  readonly reader: RequestReader<Context>
  readonly key: KeySource<Context>
  readonly cost: CostSource<Context>
}

/** Decides by a custom function. */
export class FunctionChecker<Context> implements Checker<Context> {
  readonly description = undefined
  readonly #parts: FunctionCheckerParts<Context>

  constructor(parts: FunctionCheckerParts<Context>) {
    this.#parts = parts
  }

  ask<R>(context: Context, request: HttpRequest, go: (charge: Charge) => MaybePromise<R>): MaybePromise<R> {
    return andThen(this.#ask(context, request), go)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  #ask(context: Context, request: HttpRequest): MaybePromise<Charge> {
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
    if (!(isPromise(identity) || isPromise(units))) return this.#decide(call(identity, units))
    return Promise.all([identity, units]).then(([who, some]) => this.#decide(call(who, some)))
  }

  #decide(call: CheckCall<Context>): MaybePromise<Charge> {
    return andThen(this.#parts.check(call), (answer) => new FinalCharge(decisionOf(answer)))
  }
}

/** Result of an untyped function: only `allowed` is required. */
type LooseAnswer = Partial<Omit<DecisionLike, 'resetAt' | 'limit' | 'remaining'>> &
  Partial<Pick<CheckAnswer, 'limit' | 'remaining' | 'retryAfter'>> & { readonly resetAt?: string | number | null }

/** The decision for a service response or a partial decision. Complete decisions are returned as they are. */
function decisionOf(answer: DecisionLike | CheckAnswer): DecisionLike {
  const loose = answer as LooseAnswer | undefined
  if (typeof loose?.allowed !== 'boolean') throw invalidAnswer(answer)
  if (isWhole(loose)) return answer as DecisionLike
  const { allowed, reason, rule, limit, remaining, resetAt, retryAfter, retryAfterMs } = loose
  const { version, delayMs, failure, limits } = loose
  const unlimited = Number.POSITIVE_INFINITY
  return {
    allowed,
    reason: reason ?? (allowed ? 'allowed' : 'limit'),
    rule: rule ?? '',
    limit: limit ?? unlimited,
    remaining: remaining ?? (typeof limit === 'number' ? null : unlimited),
    resetAt: typeof resetAt === 'string' ? Date.parse(resetAt) : (resetAt ?? 0),
    retryAfterMs: allowed ? 0 : (retryAfterMs ?? (retryAfter ?? unlimited) * MS_PER_SECOND),
    ...(version === undefined ? {} : { version }),
    ...(delayMs === undefined ? {} : { delayMs }),
    ...(failure === undefined ? {} : { failure }),
    ...(limits === undefined ? {} : { limits }),
  }
}

function isWhole({ retryAfterMs, limit, rule, reason }: LooseAnswer): boolean {
  return retryAfterMs !== undefined && typeof limit === 'number' && rule !== undefined && reason !== undefined
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
