import type { AlgorithmsByName } from './algorithms/registry.ts'
import { algorithmOf, registerAlgorithms } from './algorithms/registry.ts'
import { SluiceError } from './errors.ts'
import { nameSpace } from './fingerprint.ts'
import { optionAdvice } from './options/option-advice.ts'
import type { CalendarPeriod } from './rule/calendar.ts'
import { isTimeZone } from './rule/calendar.ts'
import { durationMicros, durationMs } from './rule/duration.ts'
import type {
  FixedWindowLimit,
  Limit,
  LogLimit,
  MeterLimit,
  OverlayLimit,
  RolloverLimit,
  SegmentLimit,
  SlidingCounterLimit,
} from './rule/limit.ts'
import type { Rate } from './rule/rate.ts'
import { MICROS_PER_UNIT, rateOverWindow, ratePerSecond } from './rule/rate.ts'
import type { CalendarWindow, FailureMode, Rule, RulesByAlgorithm } from './rule/rule.ts'
import {
  ALGORITHM_NAMES,
  BURST_BUCKET_OPTIONS,
  CALENDAR_DEFAULTS,
  CALENDAR_OPTIONS,
  CALENDAR_PERIODS,
  DEFAULT_ALGORITHM,
  EXPECTED_RATE,
  EXPECTED_WINDOWS,
  FAILURE_MODES,
  LARGEST_LOG_UNITS,
  LARGEST_ROLLOVER_UNITS,
  LARGEST_UNITS,
  MOST_SEGMENTS,
  MOST_WINDOWS,
  type RuleOption,
  SLOWEST_RATE,
  WEEKDAYS,
  WINDOW_ENTRY_OPTIONS,
} from './rule/rule-options.ts'
import { advised, flag, invalid, type Loose, microUnits, partOf, units, whole } from './rule/rule-values.ts'

/** Names end up in headers, metrics and keys. "#" is left out: it separates a name from one of its windows. */
const RULE_NAME = /^[A-Za-z0-9/*][A-Za-z0-9_.:/*@-]{0,127}$/

/** Options of every rule. */
const SETTINGS: ReadonlySet<string> = new Set(['algorithm', 'failureMode'])

interface Identity {
  readonly id: string
  readonly rule: string
  readonly stateSize: number
  readonly fixedSize: boolean
  readonly space0: number
  readonly space1: number
  readonly failureMode: FailureMode | undefined
}

/** Who a limit is, before it is known what its states look like; {@link withState} adds that. */
function identityOf(rule: string, id: string): Identity {
  return { id, rule, stateSize: 0, fixedSize: false, space0: 0, space1: 0, failureMode: undefined }
}

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

// How the rules of each algorithm are compiled. The rule's options have known names here, and any values.

export function compileTokenBucket(name: string, rule: Loose): Limit[] {
  return [tokenBucket(identityOf(name, name), rule)]
}

export function compileLeakyBucketMeter(name: string, rule: Loose): Limit[] {
  return [{ ...level(identityOf(name, name), rule, 'leakPerSecond'), algorithm: 'leaky-bucket-meter' }]
}

export function compileLeakyBucketQueue(name: string, rule: Loose): Limit[] {
  return [{ ...level(identityOf(name, name), rule, 'ratePerSecond'), algorithm: 'leaky-bucket-queue' }]
}

export function compileHybrid(name: string, rule: Loose): Limit[] {
  return [hybrid(identityOf(name, name), rule)]
}

export function compileConcurrency(name: string, rule: Loose): Limit[] {
  const limit = units(name, 'limit', rule['limit'])
  const leaseMicros = durationMicros(rule['lease'], 'lease')
  return [{ ...identityOf(name, name), algorithm: 'concurrency', limit, capacity: limit, leaseMicros }]
}

export function compileGcra(name: string, rule: Loose): Limit[] {
  return windowsOf(name, rule, lengthOf).map(({ identity, spec }) => gcraLimit(identity, { ...rule, ...spec }))
}

export function compileFixedWindow(name: string, rule: Loose): Limit[] {
  return windowsOf(name, rule, calendarOrLengthOf).map(({ identity, spec }) =>
    withBurst(identity, fixedWindowLimit, { ...rule, ...spec }),
  )
}

export function compileSlidingWindowCounter(name: string, rule: Loose): Limit[] {
  return windowsOf(name, rule, lengthOf).map(({ identity, spec }) =>
    withBurst(identity, slidingCounterLimit, { ...rule, ...spec }),
  )
}

export function compileSlidingWindowLog(name: string, rule: Loose): Limit[] {
  return windowsOf(name, rule, lengthOf).map(({ identity, spec }) =>
    withBurst(identity, slidingLogLimit, { ...rule, ...spec }),
  )
}

function lengthOf(_name: string, spec: Loose): string {
  return String(durationMs(spec['window'], 'window'))
}

function calendarOrLengthOf(name: string, spec: Loose): string {
  return typeof spec['window'] === 'object' ? JSON.stringify(fixedWindowOf(name, spec)) : lengthOf(name, spec)
}

/**
 * The windows of a rule with the identity of each: by length, so that a window added later does not shift the others.
 */
function windowsOf(
  name: string,
  rule: Loose,
  labelOf: (name: string, spec: Loose) => string,
): { identity: Identity; spec: Loose }[] {
  const windows = rule['windows']
  if (windows === undefined) return [{ identity: identityOf(name, name), spec: {} }]
  if (!Array.isArray(windows) || windows.length === 0 || windows.length > MOST_WINDOWS) {
    throw invalid(name, {
      problem: 'has unusable "windows"',
      received: windows,
      expected: EXPECTED_WINDOWS,
    })
  }
  for (const option of Object.keys(WINDOW_ENTRY_OPTIONS)) {
    if (rule[option] !== undefined) {
      throw invalid(name, {
        problem: `has both "windows" and "${option}"`,
        expected: 'one of them',
        action: 'Put it into an entry of "windows".',
      })
    }
  }
  const seen = new Set<string>()
  return windows.map((entry: unknown) => {
    const spec = partOf(name, 'windows', { value: entry, known: Object.keys(WINDOW_ENTRY_OPTIONS) })
    const label = labelOf(name, spec)
    if (seen.has(label)) {
      throw invalid(name, {
        problem: 'has two "windows" of one length',
        received: spec['window'],
        expected: 'windows of different lengths',
      })
    }
    seen.add(label)
    return { identity: identityOf(name, `${name}#${label}`), spec }
  })
}

/** The limit of a window, with the `burst` on top of it that a rule may ask for. */
function withBurst(
  identity: Identity,
  limitOf: (identity: Identity, rule: Loose) => OverlayLimit['base'],
  rule: Loose,
): Limit {
  const base = limitOf(identity, rule)
  return rule['burst'] === undefined ? base : burstOver(identity, base, rule)
}

function gcraLimit(identity: Identity, rule: Loose): MeterLimit {
  const limit = units(identity.rule, 'limit', rule['limit'])
  const burst = rule['burst'] === undefined ? limit : units(identity.rule, 'burst', rule['burst'])
  const capacity = limit === 0 ? 0 : burst
  return {
    ...identity,
    algorithm: 'gcra',
    limit,
    capacity,
    full: capacity * MICROS_PER_UNIT,
    rate: rateOverWindow(Math.max(1, limit), windowMicros(rule)),
  }
}

function fixedWindowLimit(identity: Identity, rule: Loose): FixedWindowLimit {
  const limit = units(identity.rule, 'limit', rule['limit'])
  const rolloverMax = flag(identity.rule, 'rollover', rule['rollover']) ? limit : 0
  const window = fixedWindowOf(identity.rule, rule)
  return { ...identity, algorithm: 'fixed-window', limit, capacity: limit + rolloverMax, window, rolloverMax }
}

function slidingCounterLimit(identity: Identity, rule: Loose): SlidingCounterLimit {
  const limit = units(identity.rule, 'limit', rule['limit'])
  return {
    ...identity,
    algorithm: 'sliding-window-counter',
    limit,
    capacity: limit,
    windowMicros: windowMicros(rule),
  }
}

function slidingLogLimit(identity: Identity, rule: Loose): LogLimit | SegmentLimit {
  const limit = units(identity.rule, 'limit', rule['limit'])
  const micros = windowMicros(rule)
  if (rule['segments'] !== undefined) {
    const segments = whole(identity.rule, 'segments', { value: rule['segments'], least: 1, most: MOST_SEGMENTS })
    return { ...identity, algorithm: 'sliding-window-segments', limit, capacity: limit, windowMicros: micros, segments }
  }
  if (limit > LARGEST_LOG_UNITS) {
    throw invalid(identity.rule, {
      problem: 'has a "limit" too large for the exact log, which remembers every call',
      received: limit,
      expected: `at most ${LARGEST_LOG_UNITS}`,
      action: 'Add "segments: 60" for constant memory, or use gcra.',
    })
  }
  return { ...identity, algorithm: 'sliding-window-log', limit, capacity: limit, windowMicros: micros }
}

/** `burst` on a window: that many units may pass at one instant, the part above the limit refilling over one window. */
function burstOver(identity: Identity, base: OverlayLimit['base'], rule: Loose): OverlayLimit {
  const burst = whole(identity.rule, 'burst', { value: rule['burst'], least: base.limit, most: LARGEST_UNITS })
  if (base.algorithm === 'fixed-window' && (typeof base.window !== 'number' || base.rolloverMax > 0)) {
    throw invalid(identity.rule, {
      problem: `has "burst" together with ${base.rolloverMax > 0 ? '"rollover"' : 'a calendar window'}`,
      expected: 'one of them',
      action: 'Use the hybrid algorithm, whose burst has a refill rate of its own.',
    })
  }
  const extra = burst - base.limit
  const length = base.algorithm === 'fixed-window' ? (base.window as number) : base.windowMicros
  const rate = rateOverWindow(Math.max(1, extra), length)
  return overlay(identity, base, { capacity: extra, full: extra * MICROS_PER_UNIT, rate })
}

function hybrid(identity: Identity, rule: Loose): OverlayLimit {
  const base = fixedWindowLimit(identity, rule)
  const known = Object.keys(BURST_BUCKET_OPTIONS)
  const burst = partOf(identity.rule, 'burst', { value: rule['burst'], known })
  return overlay(identity, base, level(identity, burst, 'refillPerSecond'))
}

function overlay(
  identity: Identity,
  base: OverlayLimit['base'],
  { capacity, full, rate }: Pick<MeterLimit, 'capacity' | 'full' | 'rate'>,
): OverlayLimit {
  const total = base.limit === 0 ? 0 : base.limit + capacity
  const burst: MeterLimit = { ...identity, algorithm: 'token-bucket', limit: capacity, capacity, full, rate }
  return {
    ...identity,
    algorithm: 'hybrid',
    limit: total,
    capacity: total,
    base: Object.freeze(base),
    burst: Object.freeze(burst),
  }
}

/** A level with a capacity and a rate. `rateOption`: what the algorithm calls its rate. */
function level(identity: Identity, rule: Loose, rateOption: string): Omit<MeterLimit, 'algorithm'> {
  const full = microUnits(identity.rule, 'capacity', { value: rule['capacity'], most: LARGEST_UNITS })
  const perSecond = rule[rateOption]
  if (typeof perSecond !== 'number' || !(perSecond >= SLOWEST_RATE) || perSecond > LARGEST_UNITS) {
    throw invalid(identity.rule, {
      problem: `has an unusable "${rateOption}"`,
      received: perSecond,
      expected: EXPECTED_RATE,
    })
  }
  const capacity = Math.floor(full / MICROS_PER_UNIT)
  return { ...identity, limit: capacity, capacity, full, rate: ratePerSecond(perSecond) }
}

function tokenBucket(identity: Identity, rule: Loose): MeterLimit | RolloverLimit {
  const bucket = level(identity, rule, 'refillPerSecond')
  if (!flag(identity.rule, 'rollover', rule['rollover'])) return { ...bucket, algorithm: 'token-bucket' }
  const full = microUnits(identity.rule, 'capacity', { value: rule['capacity'], most: LARGEST_ROLLOVER_UNITS })
  const capacity = Math.floor((2 * full) / MICROS_PER_UNIT)
  return { ...bucket, algorithm: 'token-bucket-rollover', capacity, full, rolloverFull: full }
}

function windowMicros(rule: Loose): number {
  return durationMicros(rule['window'], 'window')
}

function fixedWindowOf(name: string, rule: Loose): number | CalendarPeriod {
  const window = rule['window']
  if (typeof window !== 'object' || window === null) return windowMicros(rule)
  const options = partOf(name, 'window', { value: window, known: CALENDAR_OPTIONS }) as unknown as CalendarWindow
  const { calendar, timeZone = CALENDAR_DEFAULTS.timeZone, weekStart = CALENDAR_DEFAULTS.weekStart } = options
  if (!CALENDAR_PERIODS.includes(calendar)) {
    throw invalid(name, {
      problem: 'has an unknown calendar period',
      received: calendar,
      expected: `one of ${CALENDAR_PERIODS.join(', ')}`,
    })
  }
  if (!isTimeZone(timeZone)) {
    throw invalid(name, {
      problem: 'has an unknown "timeZone"',
      received: timeZone,
      expected: 'an IANA name such as "Europe/Berlin"',
    })
  }
  const firstDay = WEEKDAYS.indexOf(weekStart)
  if (firstDay < 0) {
    throw invalid(name, {
      problem: 'has an unknown "weekStart"',
      received: weekStart,
      expected: `one of ${WEEKDAYS.join(', ')}`,
    })
  }
  return Object.freeze({ period: calendar, timeZone, weekStart: firstDay })
}

/** Hints of algorithms with a capacity. */
export const BUCKET_HINTS: RuleKind['hints'] = {
  burst: { instead: 'capacity', hint: 'Here "capacity" is the burst.' },
  limit: { instead: 'capacity', hint: 'This algorithm calls it "capacity".' },
  window: { instead: 'capacity', hint: 'This algorithm takes a rate per second instead of a window.' },
}

/** Hints of algorithms with a limit. */
export const LIMIT_HINTS: RuleKind['hints'] = {
  capacity: { instead: 'limit', hint: 'This algorithm calls it "limit".' },
  rollover: {
    instead: 'window',
    hint:
      'Units carry over only between windows that begin and end, and in buckets: use "fixed-window" or ' +
      '"token-bucket".',
  },
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
