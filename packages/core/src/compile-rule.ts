import type { AlgorithmsByName } from './algorithms/algorithm.ts'
import { algorithmOf, registerAlgorithms } from './algorithms/algorithm.ts'
import { SluiceError } from './errors.ts'
import { nameSpace } from './fingerprint.ts'
import { optionAdvice } from './options/option-advice.ts'
import type { Limit } from './rule/limit.ts'
import type { Rate } from './rule/rate.ts'
import type { FailureMode, Rule, RulesByAlgorithm } from './rule/rule.ts'
import { ALGORITHM_NAMES, DEFAULT_ALGORITHM, FAILURE_MODES, type RuleOption } from './rule/rule-options.ts'
import { advised, invalid, type Loose } from './rule/rule-values.ts'

/** Names end up in headers, metrics and keys. "#" is left out: it separates a name from one of its windows. */
const RULE_NAME = /^[A-Za-z0-9/*][A-Za-z0-9_.:/*@-]{0,127}$/

/** Options of every rule. */
const SETTINGS: ReadonlySet<string> = new Set(['algorithm', 'failureMode'])

type AlgorithmName = keyof RulesByAlgorithm

/** How the rules of an algorithm become limits, and what decides for these. */
export interface RuleKind {
  readonly options: Readonly<Record<string, RuleOption>>
  /** Advice about options that rules of this kind do not have, by their names. */
  readonly hints: Readonly<Record<string, RuleHint>>
  /** Why the usage of a key cannot be adjusted by `units`. Default: it always can be. */
  readonly adjustmentProblem?: (rule: string, units: number) => AdjustmentProblem | undefined
  readonly compile: (name: string, rule: Loose) => Limit[]
  readonly algorithms: AlgorithmsByName
}

/** What to say about an option, if the kind has what the hint names instead. */
export interface RuleHint {
  readonly instead: string
  readonly hint: string
}

/** What is wrong with an adjustment, and what to do. */
export interface AdjustmentProblem {
  readonly problem: string
  readonly action: string
}

/** The kinds that this program makes rules of. */
const REGISTERED_KINDS: Partial<Record<AlgorithmName, RuleKind>> = {}

/** Lets rules of an algorithm be compiled. */
export function registerRuleKind(name: AlgorithmName, kind: RuleKind): void {
  registerAlgorithms(kind.algorithms)
  REGISTERED_KINDS[name] ??= kind
}

/** Why the usage of a key under a limit cannot be adjusted by `amount` units; undefined if it can be. */
export function adjustmentProblemOf({ algorithm, rule }: Limit, amount: number): AdjustmentProblem | undefined {
  return REGISTERED_KINDS[algorithm as AlgorithmName]?.adjustmentProblem?.(rule, amount)
}

/**
 * The limits that a rule stands for: one, or one for each of its windows, or none when it is `'off'`. The rule is
 * checked whole; the first mistake is a `SLUICE_INVALID_RULE` that names the option, what it was and what it may be.
 * Its kind must have been registered.
 */
export function compileRegisteredRule(name: string, rule: Rule): readonly Limit[] {
  if (typeof name !== 'string' || !RULE_NAME.test(name)) {
    throw new SluiceError('SLUICE_INVALID_RULE', {
      problem: 'the name of a rule cannot be used',
      received: name,
      expected: '1 to 128 letters, digits or any of _ . : / * @ -, beginning with a letter, a digit, / or *',
    })
  }
  if (typeof rule !== 'object' || rule === null) {
    throw invalid(name, {
      problem: 'is not an object',
      received: rule,
      expected: 'a rule such as { limit: 100, window: "1m" }',
    })
  }
  const loose: Loose = { ...rule }
  const algorithm = loose['algorithm'] ?? DEFAULT_ALGORITHM
  if (!isAlgorithm(algorithm)) {
    throw invalid(name, {
      problem: 'has an unknown "algorithm"',
      received: algorithm,
      expected: `one of ${ALGORITHM_NAMES.join(', ')}`,
      ...advised(optionAdvice(String(algorithm), ALGORITHM_NAMES)),
    })
  }
  const kind = REGISTERED_KINDS[algorithm]
  for (const option of Object.keys(loose)) {
    if (kind !== undefined && !SETTINGS.has(option) && !Object.hasOwn(kind.options, option))
      throw unknownOption(name, { option, algorithm, kind })
  }
  if (loose['limit'] === 'off' || loose['capacity'] === 'off') return []
  const failureMode = failureModeOf(name, loose['failureMode'])
  if (kind === undefined) throw notRegistered(name, algorithm)
  return kind.compile(name, loose).map((limit) => withState({ ...limit, failureMode }))
}

function notRegistered(name: string, algorithm: AlgorithmName): SluiceError {
  const builder = algorithm.replaceAll(/-(\w)/g, (_dash, letter: string) => letter.toUpperCase())
  return invalid(name, {
    problem: 'names an algorithm that this program does not carry',
    received: algorithm,
    expected: 'a rule made by a function of "sluice/limiter"',
    action: `Write ${builder}({ ... }) with ${builder} of "sluice/limiter", or import createLimiter from "sluice".`,
  })
}

function isAlgorithm(algorithm: unknown): algorithm is AlgorithmName {
  return ALGORITHM_NAMES.includes(algorithm as AlgorithmName)
}

function failureModeOf(name: string, mode: unknown): FailureMode | undefined {
  if (mode === undefined || FAILURE_MODES.includes(mode as FailureMode)) return mode as FailureMode | undefined
  throw invalid(name, {
    problem: 'has an unusable "failureMode"',
    received: mode,
    expected: "'open', 'closed' or 'local'",
  })
}

/** The limit with what its states look like, which is part of its id: numbers of another form mean something else. */
function withState(limit: Limit): Limit {
  const algorithm = algorithmOf(limit)
  const id = `${limit.id}#${formOf(limit)}`
  const { space0, space1 } = nameSpace(id)
  const stateSize = algorithm.stateSize(limit)
  const fixedSize = algorithm.fixedSize(limit)
  return Object.freeze(new LimitRecord({ ...limit, id, space0, space1, stateSize, fixedSize })) as unknown as Limit
}

/**
 * The fields of a limit in one piece of memory, with those that every decision looks at first: with thousands of rules
 * it is memory that has to be fetched that costs time. An object made by spreading others keeps a part of its fields
 * elsewhere.
 */
class LimitRecord {
  declare readonly algorithm: Limit['algorithm']
  declare readonly space0: number
  declare readonly space1: number
  declare readonly fixedSize: boolean
  declare readonly stateSize: number
  declare readonly capacity: number
  declare readonly limit: number
  declare readonly rule: string
  declare readonly id: string
  declare readonly failureMode: FailureMode | undefined

  constructor({ algorithm, space0, space1, fixedSize, stateSize, capacity, ...others }: Limit) {
    this.algorithm = algorithm
    this.space0 = space0
    this.space1 = space1
    this.fixedSize = fixedSize
    this.stateSize = stateSize
    this.capacity = capacity
    if ('rate' in others) (this as unknown as { rate: Rate }).rate = others.rate
    Object.assign(this, others)
  }
}

/** Limits of one form understand each other's states, so that a changed rule goes on from what has been used. */
function formOf(limit: Limit): string {
  if (limit.algorithm === 'token-bucket-rollover') return 'rollover-level'
  if ('rate' in limit) return 'level'
  if (limit.algorithm === 'fixed-window' && limit.rolloverMax > 0) return 'rollover'
  return limit.algorithm === 'hybrid' ? `burst-over-${limit.base.algorithm}` : limit.algorithm
}

function unknownOption(
  name: string,
  { option, algorithm, kind }: { option: string; algorithm: string; kind: RuleKind },
): SluiceError {
  const known = Object.keys(kind.options)
  const { instead, hint } = Object.hasOwn(kind.hints, option) ? kind.hints[option]! : {}
  const isElsewhere = instead !== undefined && known.includes(instead)
  return invalid(name, {
    problem: `has the option "${option}", which ${algorithm} does not have`,
    expected: `only ${known.join(', ')}`,
    ...advised(isElsewhere ? hint : optionAdvice(option, known)),
  })
}
