import { compileRegisteredRule } from '../compile-rule.ts'
import { SluiceError } from '../errors.ts'
import { checkMaxWaiting, checkSources } from '../options/known-options.ts'
import type { Limit } from '../rule/limit.ts'
import type { Rule } from '../rule/rule.ts'
import { batchOf, drawHolder } from '../store/batch.ts'
import { memoryStore } from '../store/memory/memory-store.ts'
import type { Answer, Mode, Settlement, Store } from '../store/store.ts'
import { assertStore } from '../store/store-check.ts'
import type { Clock, Timers } from '../system/clock-and-timers.ts'
import { systemClock, systemTimers } from '../system/clock-and-timers.ts'
import type { Random } from '../system/random.ts'
import { systemRandom } from '../system/random.ts'
import { checkRequests } from './argument-check.ts'
import type { Decision } from './decision.ts'
import { unlimited } from './decision.ts'
import type { Limiter, LimiterSet, RuleRequest } from './limiter.ts'
import { notePlace } from './limiter-registry.ts'
import type { LimiterParts } from './rule-limiter.ts'
import { decide, deliver, MANY, RuleLimiter, refund } from './rule-limiter.ts'

/** Options of every limiter. */
export interface LimiterOptions<M extends Mode = Mode> {
  /** Store of the counters. Default: a new memory store. The limiter does not close a store that is passed in. */
  readonly store?: Store<M>
  /** Time for `acquire`, and for the default memory store. */
  readonly clock?: Clock
  readonly random?: Random
  readonly timers?: Timers
  /** Maximum number of callers waiting in `acquire` at once, per limiter. Default: 10,000. */
  readonly maxWaiting?: number
}

/** Options of a limiter with one rule: the rule, its name, and the rest. */
export type SingleOptions<M extends Mode = Mode> = Rule &
  LimiterOptions<M> & {
    /** The rule's name. Default: `default`. Limiters that share a store need different names. */
    readonly name?: string
  }

/** Options of a limiter with several named rules. */
export interface SetOptions<Name extends string, M extends Mode = Mode> extends LimiterOptions<M> {
  readonly rules: Readonly<Record<Name, Rule>>
}

const OPTION_NAMES: ReadonlySet<string> = new Set(['store', 'clock', 'random', 'timers', 'maxWaiting', 'name', 'rules'])

/** A limiter with one rule on a new memory store: results are synchronous. */
export function createLimiter(options: SingleOptions<never> & { readonly store?: undefined }): Limiter<'sync'>
/** A limiter with one rule on the given store. */
export function createLimiter<M extends Mode>(options: SingleOptions<M> & { readonly store: Store<M> }): Limiter<M>
/** A limiter with several named rules on a new memory store. */
export function createLimiter<Name extends string>(
  options: SetOptions<Name, never> & { readonly store?: undefined },
): LimiterSet<Name, 'sync'>
/** A limiter with several named rules on the given store. */
export function createLimiter<Name extends string, M extends Mode>(
  options: SetOptions<Name, M> & { readonly store: Store<M> },
): LimiterSet<Name, M>
export function createLimiter(options: SingleOptions | SetOptions<string>): Limiter | LimiterSet {
  if (typeof options !== 'object' || options === null) {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: 'createLimiter needs options',
      received: options,
      expected: 'a rule such as { limit: 100, window: "1m" }, or { rules: { name: rule } }',
    })
  }
  const parts = partsOf(options)
  if (!('rules' in options)) return createOne(options as SingleOptions, parts)
  for (const option of Object.keys(options)) {
    if (!OPTION_NAMES.has(option) || option === 'name') {
      throw new SluiceError('SLUICE_INVALID_OPTION', {
        problem: `"${option}" cannot stand beside "rules"`,
        expected: `only ${[...OPTION_NAMES].filter((name) => name !== 'name').join(', ')}`,
        action: 'Put the options of a rule into that rule.',
      })
    }
  }
  if (typeof options.rules !== 'object' || options.rules === null || Array.isArray(options.rules)) {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: '"rules" cannot be used',
      received: options.rules,
      expected: 'an object of rules by their names, such as { perUser: { limit: 100, window: "1m" } }',
    })
  }
  return new RuleLimiterSet(options.rules, parts)
}

function createOne(options: SingleOptions, parts: LimiterParts<Mode>): Limiter {
  const { name = 'default' } = options
  const rule = Object.fromEntries(
    Object.entries(options).filter(([option]) => !OPTION_NAMES.has(option)),
  ) as unknown as Rule
  return new RuleLimiter(name, compileFor(parts.store, name, rule), parts)
}

function partsOf(options: LimiterOptions): LimiterParts<Mode> {
  const { clock = systemClock, random = systemRandom, timers = systemTimers } = options
  const maxWaiting = checkMaxWaiting(options.maxWaiting)
  checkSources(options)
  if (options.store !== undefined) assertStore(options.store)
  const store = options.store ?? memoryStore({ clock, random })
  return { store, ownsStore: options.store === undefined, clock, random, timers, maxWaiting }
}

/** The rule of each name on a store: counters belong to the name, so it can have only one rule. */
const rulesOnStores = new WeakMap<Store, Map<string, string>>()

function compileFor(store: Store, name: string, rule: Rule): readonly Limit[] {
  const limits = compileRegisteredRule(name, rule)
  const signature = JSON.stringify(limits)
  let rules = rulesOnStores.get(store)
  if (rules === undefined) {
    rules = new Map()
    rulesOnStores.set(store, rules)
  }
  const other = rules.get(name)
  if (other !== undefined && other !== signature) {
    throw new SluiceError('SLUICE_RULE_CONFLICT', {
      problem: `another limiter already uses the name "${name}" on this store, for a different rule`,
      expected: 'one name for one rule',
      action: 'Give this limiter a "name" of its own.',
    })
  }
  rules.set(name, signature)
  return limits
}

const RULE_REQUESTS = {
  call: 'checkAll',
  fields: ['rule', 'key', 'cost'],
  example: '{ rule: "perUser", key: "user:1", cost: 2 }',
}

class RuleLimiterSet<Name extends string, M extends Mode> implements LimiterSet<Name, M> {
  readonly #limits = new Map<string, readonly Limit[]>()
  readonly #limiters = new Map<string, Limiter<M>>()
  readonly #parts: LimiterParts<M>
  #closed = false

  constructor(rules: Readonly<Record<Name, Rule>>, parts: LimiterParts<M>) {
    this.#parts = parts
    for (const [name, rule] of Object.entries<Rule>(rules)) {
      const limits = compileFor(parts.store, name, rule)
      this.#limits.set(name, limits)
      this.#limiters.set(name, new RuleLimiter(name, limits, { ...parts, ownsStore: false }))
    }
    notePlace(this, { store: parts.store, rules: [...this.#limits.keys()] })
  }

  limiter(rule: Name): Limiter<M> {
    return this.#limiters.get(rule) ?? this.#unknown(rule)
  }

  checkAll(requests: readonly RuleRequest<Name>[]): Answer<M, Decision> {
    return this.#decide(requests, true)
  }

  peekAll(requests: readonly RuleRequest<Name>[]): Answer<M, Decision> {
    return this.#decide(requests, false)
  }

  refund(decision: Decision, units?: number): Answer<M, Settlement> {
    this.#checkOpen()
    return refund(this.#parts.store, decision, units)
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const limiter of this.#limiters.values()) await limiter.close()
    if (this.#parts.ownsStore) await this.#parts.store.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #decide(requests: readonly RuleRequest<Name>[], charge: boolean): Answer<M, Decision> {
    this.#checkOpen()
    checkRequests(requests, RULE_REQUESTS)
    const { store, random } = this.#parts
    const batch = batchOf(
      requests.map(({ rule, key, cost = 1 }) => ({ limits: this.#limits.get(rule) ?? this.#unknown(rule), key, cost })),
    )
    if (batch.items.length === 0) return deliver(store, unlimited(requests[0]?.rule ?? 'none', 0))
    batch.charge = charge
    if (batch.items.some((item) => item.limit.algorithm === 'concurrency')) batch.holder = drawHolder(random)
    return decide(store, batch, MANY)
  }

  #checkOpen(): void {
    if (!this.#closed) return
    throw new SluiceError('SLUICE_CLOSED', { problem: 'the limiter is closed', action: 'Create a new one.' })
  }

  #unknown(rule: string): never {
    throw new SluiceError('SLUICE_UNKNOWN_RULE', {
      problem: 'there is no such rule',
      received: rule,
      expected: `one of ${[...this.#limits.keys()].join(', ')}`,
    })
  }
}
