import type { DecisionLike } from '@sluice/contract'
import type { Decision, LimiterSet, Random, Rule, RuleRequest, Store } from '@sluice/core'
import { createLimiter } from '@sluice/core'
import { compileRule, createBatch, createItem, decisionOn, drawHolder, settle } from '@sluice/core/internal'
import type { Batch, Limit, Receipt } from '@sluice/core/store'
import { receiptOf } from '@sluice/core/store'
import type { HttpRequest } from '../http/http-request.ts'
import type { MaybePromise } from '../http/maybe-promise.ts'
import { andThen, isPromise } from '../http/maybe-promise.ts'
import type { LimitDescription } from '../http/response-headers.ts'
import type { KeySource } from '../identity/identity.ts'
import type { CostSource, RequestReader } from '../identity/request-reader.ts'
import type { Charge, Checker, Settlement } from './checker.ts'
import { describeLimit, FinalCharge } from './checker.ts'

const MICROS_PER_MS = 1000

/** A rule, who it counts, and at what cost. */
export interface CountedRule<Context> {
  readonly name: string
  readonly rule: Rule
  readonly key: KeySource<Context>
  readonly cost: CostSource<Context>
  /** Whether its charge changes to the actual cost. False for a rule with its own cost. */
  readonly settles: boolean
}

/** Options of {@link RulesChecker}. */
export interface RulesCheckerParts<Context> {
  readonly rules: readonly CountedRule<Context>[]
  readonly store: Store
  readonly reader: RequestReader<Context>
  readonly random: Random
}

/** A compiled rule. */
interface AskedRule {
  readonly limits: readonly Limit[]
  readonly settles: boolean
}

/**
 * Decides several rules of any algorithm atomically, and rules whose charges are corrected later. Slots are released
 * when the request completes. Other charges are corrected without a reservation, so that nothing is lost if this
 * process dies.
 */
export class RulesChecker<Context> implements Checker<Context> {
  readonly description: LimitDescription | undefined
  readonly #parts: RulesCheckerParts<Context>
  readonly #asked = new Map<string, AskedRule>()
  readonly #holdsSlots: boolean
  /** Claims the names of the rules on the store. */
  readonly #set: LimiterSet

  constructor(parts: RulesCheckerParts<Context>) {
    const { rules, store, reader } = parts
    this.#parts = parts
    const tiers: Record<string, Rule> = {}
    for (const { name, rule, settles } of rules) {
      for (const [tierName, tierRule] of Object.entries(reader.tiers.rulesOf(name, rule))) {
        tiers[tierName] = tierRule
        this.#asked.set(tierName, { limits: compileRule(tierName, tierRule), settles })
      }
    }
    this.#set = createLimiter({ rules: tiers, store })
    this.#holdsSlots = [...this.#asked.values()].some(({ limits }) => limits.some(isSlot))
    this.description = rules.length === 1 ? describeLimit(rules[0]!.rule) : undefined
  }

  ask<R>(context: Context, request: HttpRequest, go: (charge: Charge) => MaybePromise<R>): MaybePromise<R> {
    return andThen(this.#ask(context, request), go)
  }

  close(): Promise<void> {
    return this.#set.close()
  }

  #ask(context: Context, request: HttpRequest): MaybePromise<Charge> {
    const { rules } = this.#parts
    const asked: MaybePromise<readonly RuleRequest[]>[] = []
    let isComing = false
    for (const rule of rules) {
      const requests = this.#requestsOf(rule, context, request)
      isComing ||= isPromise(requests)
      asked.push(requests)
    }
    if (isComing) return Promise.all(asked).then((later) => this.#decide(later))
    return this.#decide(asked as (readonly RuleRequest[])[])
  }

  #requestsOf(
    rule: CountedRule<Context>,
    context: Context,
    request: HttpRequest,
  ): MaybePromise<readonly RuleRequest[]> {
    const { reader } = this.#parts
    const identity = reader.identityOf(rule.key, context, request)
    const cost = reader.costOf(rule.cost, context, request)
    if (!(isPromise(identity) || isPromise(cost))) return reader.tiers.requestsOf(rule.name, identity, cost)
    return Promise.all([identity, cost]).then(([who, units]) => reader.tiers.requestsOf(rule.name, who, units))
  }

  #decide(asked: readonly (readonly RuleRequest[])[]): MaybePromise<Charge> {
    const { store, random } = this.#parts
    const items: ReturnType<typeof createItem>[] = []
    const settling: boolean[] = []
    for (const requests of asked) {
      for (const { rule, key, cost = 1 } of requests) {
        const { limits, settles } = this.#asked.get(rule)!
        for (const limit of limits) {
          items.push(createItem(limit, key, cost))
          settling.push(settles)
        }
      }
    }
    if (items.length === 0) return new FinalCharge(UNLIMITED)
    const batch = createBatch(items)
    if (this.#holdsSlots) batch.holder = drawHolder(random)
    const answered = store.decide(batch) as MaybePromise<void>
    return andThen(answered, () => this.#chargeOf(batch, settling))
  }

  #chargeOf(batch: Batch, settling: readonly boolean[]): Charge {
    if (!batch.allowed) return new FinalCharge(decisionOn(batch, undefined))
    const receipt = receiptOf(batch)
    return new RulesCharge(this.#parts.store, decisionOn(batch, receipt), { receipt, settling })
  }
}

const UNLIMITED: DecisionLike = Object.freeze({
  allowed: true,
  reason: 'unlimited',
  rule: '',
  limit: Number.POSITIVE_INFINITY,
  remaining: Number.POSITIVE_INFINITY,
  resetAt: 0,
  retryAfterMs: 0,
})

interface Charged {
  readonly receipt: Receipt
  /** For each charge: whether it changes to the actual cost. */
  readonly settling: readonly boolean[]
}

class RulesCharge implements Charge {
  readonly decision: Decision
  readonly isHeld: boolean
  readonly leaseMs: number
  readonly #store: Store
  readonly #charged: Charged

  constructor(store: Store, decision: Decision, charged: Charged) {
    this.decision = decision
    this.#store = store
    this.#charged = charged
    let leaseMicros = Number.POSITIVE_INFINITY
    for (const { limit } of charged.receipt.charges) {
      if (limit.algorithm === 'concurrency') leaseMicros = Math.min(leaseMicros, limit.leaseMicros)
    }
    this.isHeld = Number.isFinite(leaseMicros)
    this.leaseMs = this.isHeld ? leaseMicros / MICROS_PER_MS : 0
  }

  end(settlement: Settlement): MaybePromise<unknown> {
    const { receipt, settling } = this.#charged
    const actuals = receipt.charges.map(({ limit, cost }, index) => {
      if (settlement === 'refund' || isSlot(limit)) return 0
      return settlement !== 'keep' && settling[index] === true ? settlement : cost
    })
    return settle(this.#store, receipt, actuals)
  }

  renew(): MaybePromise<unknown> {
    const { receipt } = this.#charged
    const costs = receipt.charges.map(({ cost }) => cost)
    return this.#store.settle(receipt, costs)
  }
}

function isSlot(limit: Limit): boolean {
  return limit.algorithm === 'concurrency'
}
