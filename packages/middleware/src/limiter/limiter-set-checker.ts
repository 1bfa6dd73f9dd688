import type { Decision, LimiterSet, RuleRequest } from '@sluice/core'
import { SluiceError } from '@sluice/core'
import type { HttpRequest } from '../http/http-request.ts'
import type { MaybePromise } from '../http/maybe-promise.ts'
import { andThen, isPromise } from '../http/maybe-promise.ts'
import type { KeySource } from '../identity/identity.ts'
import type { CostSource, RequestReader } from '../identity/request-reader.ts'
import type { Charge, Checker, Settlement } from './checker.ts'
import { queryDescription } from './checker.ts'

/** One rule of a set, who it counts, and at what cost. */
export interface AskedRule<Context> {
  readonly name: string
  readonly key: KeySource<Context>
  readonly cost: CostSource<Context>
}

/** Decides by several rules of an existing limiter set, atomically. */
export class LimiterSetChecker<Context> implements Checker<Context> {
  readonly description = undefined
  readonly #set: LimiterSet
  readonly #rules: readonly AskedRule<Context>[]
  readonly #reader: RequestReader<Context>
  /** Whether the rules hold slots. Undefined until known. */
  #holdsSlots: boolean | undefined

  constructor(set: LimiterSet, rules: readonly AskedRule<Context>[], reader: RequestReader<Context>) {
    this.#set = set
    this.#rules = rules
    this.#reader = reader
    // An unknown name is an error of today, not of the first request.
    for (const { name } of rules) set.limiter(name)
  }

  ask<R>(context: Context, request: HttpRequest, go: (charge: Charge) => MaybePromise<R>): MaybePromise<R> {
    return andThen(this.#ask(context, request), go)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  #ask(context: Context, request: HttpRequest): MaybePromise<Charge> {
    const asked = this.#rules.map((rule) => this.#requestOf(rule, context, request))
    if (asked.some((one) => isPromise(one))) return Promise.all(asked).then((requests) => this.#decide(requests))
    return this.#decide(asked as RuleRequest[])
  }

  #requestOf(rule: AskedRule<Context>, context: Context, request: HttpRequest): MaybePromise<RuleRequest> {
    const key = this.#reader.keyOf(rule.key, context, request)
    const cost = this.#reader.costOf(rule.cost, context, request)
    if (!(isPromise(key) || isPromise(cost))) return { rule: rule.name, key, cost }
    return Promise.all([key, cost]).then(([who, units]) => ({ rule: rule.name, key: who, cost: units }))
  }

  #decide(requests: readonly RuleRequest[]): MaybePromise<Charge> {
    if (this.#holdsSlots === undefined) return this.#learn(requests)
    const isHeld = this.#holdsSlots
    const decision = this.#set.checkAll(requests) as MaybePromise<Decision>
    return andThen(decision, (decided) => new JointCharge(this.#set, decided, isHeld))
  }

  #learn(requests: readonly RuleRequest[]): MaybePromise<Charge> {
    const meanings = requests.map(({ rule, key }) => queryDescription(this.#set.limiter(rule), key))
    const learned = meanings.some((one) => isPromise(one))
      ? Promise.all(meanings)
      : (meanings as Awaited<(typeof meanings)[number]>[])
    return andThen(learned, (known) => {
      const limiting = known.filter((description) => description !== undefined)
      const slots = limiting.filter(({ quotaUnit }) => quotaUnit === 'concurrent-requests')
      if (slots.length > 0 && slots.length < limiting.length) throw mixed()
      this.#holdsSlots = slots.length > 0
      return this.#decide(requests)
    })
  }
}

/** What a set charged for one request. */
class JointCharge implements Charge {
  readonly decision: Decision
  readonly isHeld: boolean
  readonly leaseMs = 0
  readonly #set: LimiterSet

  constructor(set: LimiterSet, decision: Decision, isHeld: boolean) {
    this.decision = decision
    this.isHeld = isHeld
    this.#set = set
  }

  end(settlement: Settlement): MaybePromise<unknown> {
    return settlement === 'refund' || this.isHeld ? this.#set.refund(this.decision) : undefined
  }
}

function mixed(): SluiceError {
  return new SluiceError('SLUICE_UNSUPPORTED', {
    problem: 'the limiter set has slots (concurrency) beside other limits, which it can only give back together',
    expected: 'the rules themselves',
    action:
      'Pass "rules" and "store" in place of "limiter": they are decided together, and each is ended in its own way.',
  })
}
