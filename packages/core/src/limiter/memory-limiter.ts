import { compileRegisteredRule } from '../compile-rule.ts'
import { SluiceError } from '../errors.ts'
import { checkSources, checkWhole } from '../options/known-options.ts'
import type { Limit } from '../rule/limit.ts'
import type { ConcurrencyRule, Rule } from '../rule/rule.ts'
import { checkCost, createBatch, createItem } from '../store/batch.ts'
import { checkKey } from '../store/key.ts'
import { MemoryCounters } from '../store/memory/memory-counters.ts'
import type { Batch } from '../store/store.ts'
import type { Clock } from '../system/clock-and-timers.ts'
import { systemClock } from '../system/clock-and-timers.ts'
import type { Random } from '../system/random.ts'
import { systemRandom } from '../system/random.ts'
import { checkCheckOptions } from './argument-check.ts'
import type { Decision } from './decision.ts'
import { decisionOn, decisionOnOne, unlimited } from './decision.ts'
import type { CheckOptions, Limiter } from './limiter.ts'

/** Limits calls by one rule in the memory of this process. The methods are those of {@link Limiter}. */
export interface MemoryLimiter extends Pick<Limiter<'sync'>, 'tryAcquire' | 'check' | 'peek' | 'reset'> {}

/** Options of {@link createMemoryLimiter}: a rule, and these. */
export type MemoryLimiterOptions = Exclude<Rule, ConcurrencyRule> & {
  /** The rule's name in decisions. Default: `default`. */
  readonly name?: string
  /** Maximum number of keys, 64 to 100,000,000, as in the memory store. Default: 1,000,000. */
  readonly maxKeys?: number
  readonly clock?: Clock
  readonly random?: Random
}

/** Further options of `createLimiter`. */
const OPTIONS_OF_LIMITERS = ['store', 'rules', 'timers', 'maxWaiting']

/**
 * Creates a limiter for programs that must be small: it checks, and counts in memory. Everything else needs
 * `createLimiter`: other stores, several rules, `acquire`, `reserve`, `refund`, `adjust`, `block`, `checkAll`.
 */
export function createMemoryLimiter(options: MemoryLimiterOptions): MemoryLimiter {
  const { name = 'default', maxKeys = 1_000_000, clock, random, ...rule } = options ?? {}
  const other = OPTIONS_OF_LIMITERS.find((option) => option in rule)
  if (other !== undefined || rule.algorithm === ('concurrency' as string)) {
    throw new SluiceError('SLUICE_UNSUPPORTED', {
      problem: `createMemoryLimiter has no ${other === undefined ? 'concurrency, whose slots are reserved' : other}`,
      action: 'Use createLimiter of "sluice/limiter" with the same rule.',
    })
  }
  checkSources({ ...(clock && { clock }), ...(random && { random }) })
  checkWhole('maxKeys', maxKeys, { least: 64, most: 100_000_000 })
  const counters = new MemoryCounters(maxKeys, clock ?? systemClock, random ?? systemRandom)
  return new CheckingLimiter(name, compileRegisteredRule(name, rule as Rule), counters)
}

class CheckingLimiter implements MemoryLimiter {
  readonly #rule: string
  readonly #limits: readonly Limit[]
  readonly #counters: MemoryCounters
  /** Reused: decisions copy what they need. */
  readonly #batch: Batch

  constructor(rule: string, limits: readonly Limit[], counters: MemoryCounters) {
    this.#rule = rule
    this.#limits = limits
    this.#counters = counters
    this.#batch = createBatch(limits.map((limit) => createItem(limit, '', 1)))
  }

  tryAcquire(key: string): boolean {
    return this.#decide(key, undefined, true).allowed
  }

  check(key: string, options?: CheckOptions): Decision<'sync'> {
    return this.#answer(key, options, true)
  }

  peek(key: string, options?: CheckOptions): Decision<'sync'> {
    return this.#answer(key, options, false)
  }

  reset(key: string): void {
    checkKey(key)
    this.#counters.reset(this.#limits, key)
  }

  #answer(key: string, options: CheckOptions | undefined, charge: boolean): Decision<'sync'> {
    if (options !== undefined) checkCheckOptions(options)
    const batch = this.#decide(key, options, charge)
    if (this.#limits.length === 0) return unlimited(this.#rule, charge ? (options?.cost ?? 1) : 0) as Decision<'sync'>
    return (this.#limits.length === 1 ? decisionOnOne(batch) : decisionOn(batch, undefined)) as Decision<'sync'>
  }

  #decide(key: string, options: CheckOptions | undefined, charge: boolean): Batch {
    const cost = options?.cost ?? 1
    checkCost(cost)
    checkKey(key)
    const batch = this.#batch
    batch.charge = charge
    batch.partial = options?.partial ?? false
    batch.entitled = options?.entitled ?? true
    for (const item of batch.items) {
      item.key = key
      item.cost = cost
    }
    batch.now = this.#counters.nowMicros()
    this.#counters.decide(batch)
    return batch
  }
}
