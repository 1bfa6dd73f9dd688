import type { Clock, Limiter, LimiterSet, Random, Rule, Store } from '@sluice/core'
import { createLimiter, memoryStore, SluiceError } from '@sluice/core'
import { compileRule, placeOf } from '@sluice/core/internal'
import type { RequestReader } from '../identity/request-reader.ts'
import type { RateLimitOptions, RuleOptions } from '../options/rate-limit-options.ts'
import { RULE_FIELDS } from '../options/rate-limit-options.ts'
import type { Checker } from './checker.ts'
import { describeLimit } from './checker.ts'
import { EngineChecker } from './engine-checker.ts'
import { FunctionChecker } from './function-checker.ts'
import { LimiterChecker } from './limiter-checker.ts'
import { LimiterSetChecker } from './limiter-set-checker.ts'
import type { CountedRule } from './rules-checker.ts'
import { RulesChecker } from './rules-checker.ts'

/** What checkers are made with, besides the options. */
export interface CheckerParts<Context> {
  readonly reader: RequestReader<Context>
  readonly clock: Clock
  readonly random: Random
}

/** A checker, and what keeps its counters. */
export interface CreatedChecker<Context> {
  readonly checker: Checker<Context>
  /** What keeps the counters: the store, or what replaces it. */
  readonly counters: object
  /** Name of the rule, or of the rules. */
  readonly name: string
  /** Whether that is known; false where only the engine or function knows. */
  readonly isNamed: boolean
  /** Whether the counters live in this process. */
  readonly isLocal: boolean
  /** The store, when it was made here. */
  readonly ownStore: Store | undefined
}

/** Creates the checker for the source of the limits. Expects validated options. */
export function createChecker<Context>(
  options: RateLimitOptions<Context>,
  parts: CheckerParts<Context>,
): CreatedChecker<Context> {
  const { limiter, engine, check, key = 'ip', cost = 1, actualCost } = options
  const { reader } = parts
  const settles = actualCost !== undefined
  if (engine !== undefined) {
    const checker = new EngineChecker({ engine, identify: options.identify, cost, reader, settles })
    return { ...elsewhere(engine, []), checker }
  }
  if (check !== undefined) {
    return { ...elsewhere(check, []), checker: new FunctionChecker({ check, reader, key, cost }) }
  }
  if (limiter !== undefined) {
    const asked = Object.keys(options.rules ?? {})
    const about = elsewhere(limiter, asked.length > 0 ? asked : placeOf(limiter)?.rules)
    return { ...about, checker: givenChecker(limiter, options, reader) }
  }
  return rulesChecker(options, parts)
}

/** Describes an object created by the user that counts under these names. */
function elsewhere(asked: object, names: readonly string[] = []): Omit<CreatedChecker<never>, 'checker'> {
  const place = placeOf(asked)
  const isNamed = place !== undefined && names.length > 0
  return {
    name: isNamed ? names.join('+') : 'default',
    isNamed,
    counters: isNamed ? place.store : asked,
    isLocal: place?.store.mode === 'sync',
    ownStore: undefined,
  }
}

function givenChecker<Context>(
  limiter: Limiter | LimiterSet,
  { rules = {}, key = 'ip', cost = 1, actualCost }: RateLimitOptions<Context>,
  reader: RequestReader<Context>,
): Checker<Context> {
  const settles = actualCost !== undefined
  if (!('limiter' in limiter)) return new LimiterChecker({ limiter, reader, key, cost, settles, own: undefined })
  const asked = Object.entries(rules).map(([name, use]) => ({ name, key: use.key ?? key, cost: use.cost ?? cost }))
  if (asked.length > 1) return new LimiterSetChecker(limiter, asked, reader)
  const one = asked[0]!
  const parts = { limiter: limiter.limiter(one.name), key: one.key, cost: one.cost }
  return new LimiterChecker({ ...parts, reader, settles, own: undefined })
}

/** The checker for rules in the options. */
function rulesChecker<Context>(
  options: RateLimitOptions<Context>,
  { reader, clock, random }: CheckerParts<Context>,
): CreatedChecker<Context> {
  const rules = countedRules(options)
  for (const counted of rules) checkCost(counted)
  const store: Store = options.store ?? memoryStore({ clock, random })
  const about = {
    counters: store,
    name: rules.map((counted) => counted.name).join('+'),
    isNamed: true,
    isLocal: store.mode === 'sync',
    ownStore: options.store === undefined ? store : undefined,
  }
  const [{ name, rule, key, cost }, ...others] = rules as [CountedRule<Context>, ...CountedRule<Context>[]]
  const isPlain =
    others.length === 0 &&
    options.actualCost === undefined &&
    rule.algorithm !== 'concurrency' &&
    reader.tiers.tiers.length === 0
  if (!isPlain) return { ...about, checker: new RulesChecker({ rules, store, reader, random }) }
  const limiter: Limiter = createLimiter({ ...rule, name, store, clock, random })
  const own = { description: describeLimit(rule) }
  return { ...about, checker: new LimiterChecker({ limiter, reader, key, cost, settles: false, own }) }
}

function countedRules<Context>(options: RateLimitOptions<Context>): readonly CountedRule<Context>[] {
  const { rules, name = 'default', key = 'ip', cost = 1 } = options
  if (rules === undefined) {
    const fields = RULE_FIELDS.filter((field) => options[field] !== undefined)
    const rule = Object.fromEntries(fields.map((field) => [field, options[field]])) as unknown as Rule
    return [{ name, rule, key, cost, settles: true }]
  }
  return Object.entries(rules).map(([ruleName, use]) => {
    const { key: ownKey, cost: ownCost, ...rule } = use as RuleOptions<Context>
    return { name: ruleName, rule, key: ownKey ?? key, cost: ownCost ?? cost, settles: ownCost === undefined }
  })
}

/** A constant cost above the capacity of the rule would deny every request. */
function checkCost<Context>({ name, rule, cost }: CountedRule<Context>): void {
  if (typeof cost !== 'number') return
  const most = Math.min(...compileRule(name, rule).map(({ capacity }) => capacity))
  if (most === 0 || cost <= most) return
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: `the "cost" is more than the rule "${name}" ever lets through at once`,
    received: cost,
    expected: `at most ${most}`,
    action: 'Lower the cost, or raise the limit: otherwise every request is denied.',
  })
}
