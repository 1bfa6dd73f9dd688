import { decisionOn } from '../limiter/decision.ts'
import { createBatch } from '../store/batch.ts'
import type { Batch, Item, Store } from '../store/store.ts'
import type { CompiledRule } from './limits/compiled-rule.ts'
import type { PolicyObserver } from './policy-event.ts'
import { tellPolicy } from './policy-event.ts'
import type { ResolvedRequest } from './resolver.ts'

/** A request to measure in shadow. */
export interface ShadowQuestion {
  readonly items: readonly Item[]
  /** The rule of each item. */
  readonly rules: readonly CompiledRule[]
  /** Number of the candidate version; 0 for a rule of the enforced one. */
  readonly version: number
  readonly holder: number
}

/**
 * Evaluates what is not enforced. Runs after the decision, which does not wait for it: a shadow neither delays a
 * request nor makes it fail. Only allowed requests are counted, because only they would have reached the rule.
 */
export class ShadowRunner {
  readonly #store: Store
  readonly #observer: PolicyObserver | undefined

  constructor(store: Store, observer: PolicyObserver | undefined) {
    this.#store = store
    this.#observer = observer
  }

  /** Measures the rules in shadow of a request, each separately, as if it were the only one. */
  measureRules({ shadows }: ResolvedRequest, drawHolder: () => number): void {
    for (const { rule, items } of shadows) {
      const holder = items.some(({ limit }) => limit.algorithm === 'concurrency') ? drawHolder() : 0
      this.measure({ items, rules: items.map(() => rule), version: 0, holder })
    }
  }

  /** Measures limits together, all or nothing. */
  measure(question: ShadowQuestion): void {
    if (question.items.length === 0) return
    const batch = createBatch(question.items)
    batch.holder = question.holder
    try {
      const answer = this.#store.decide(batch)
      if (this.#store.mode === 'sync') this.#tell(batch, question)
      else this.#tellLater(answer as Promise<void>, batch, question)
    } catch (error) {
      tellPolicy(this.#observer, { type: 'shadow-failed', error })
    }
  }

  #tellLater(answer: Promise<void>, batch: Batch, question: ShadowQuestion): void {
    answer.then(
      () => this.#tell(batch, question),
      (error: unknown) => tellPolicy(this.#observer, { type: 'shadow-failed', error }),
    )
  }

  #tell(batch: Batch, { rules, version }: ShadowQuestion): void {
    const { allowed, rule } = decisionOn(batch, undefined)
    const { label, dimension } = rules.find(({ name }) => name === rule)!
    tellPolicy(this.#observer, { type: 'shadow', rule: label, dimension, allowed, version })
  }
}
