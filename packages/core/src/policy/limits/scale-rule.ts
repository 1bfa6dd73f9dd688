import type { Duration } from '../../rule/duration.ts'
import type {
  CalendarWindow,
  FixedWindowRule,
  GcraRule,
  Rule,
  RuleSettings,
  SlidingWindowCounterRule,
  SlidingWindowLogRule,
  Units,
} from '../../rule/rule.ts'
import { LARGEST_LOG_UNITS, LARGEST_ROLLOVER_UNITS, LARGEST_UNITS, SLOWEST_RATE } from '../../rule/rule-options.ts'
import type { OverrideTerms } from '../entries/live-entry.ts'
import type { PolicyRule, PolicyRuleSettings } from '../rule-set/rule-set.ts'

/** A product that differs from a whole number by less than this share is that number: 100 x 0.29 is 29. */
const ROUNDING_ERROR = 1e-12

/** Refill time in seconds of a burst on top of a calendar window. */
const PERIOD_SECONDS: Readonly<Record<CalendarWindow['calendar'], number>> = {
  minute: 60,
  hour: 3600,
  day: 86_400,
  week: 604_800,
  month: 2_678_400,
}

/** The settings of a rule in a rule set that a rule alone does not have. */
const POLICY_SETTINGS: Readonly<Record<Exclude<keyof PolicyRuleSettings, keyof RuleSettings>, true>> = {
  name: true,
  resource: true,
  dimension: true,
  methods: true,
  always: true,
  announce: true,
  cost: true,
  shadow: true,
  percent: true,
  regions: true,
  schedule: true,
  incident: true,
  errorRate: true,
  penalty: true,
  enabled: true,
}

/** Numbers that a rule cannot take, and why, in a sentence. */
export interface NotApplicable {
  readonly problem: string
}

type WindowRule = (FixedWindowRule | SlidingWindowCounterRule | SlidingWindowLogRule | GcraRule) & RuleSettings
type BucketRule = Extract<Rule, { readonly capacity: Units }>
type PlainRule = Exclude<Rule, WindowRule>

interface WindowNumbers {
  readonly limit: Units
  readonly window: Duration | CalendarWindow
  readonly burst?: number
}

/** The rule without the settings of a rule set, as `compileRule` takes it; failure mode and mistakes stay. */
export function algorithmRuleOf(rule: PolicyRule): Rule {
  const kept = Object.entries(rule).filter(([option]) => !Object.hasOwn(POLICY_SETTINGS, option))
  return Object.fromEntries(kept) as unknown as Rule
}

/**
 * The rule with all its numbers (limit, burst, capacity, rate; each of several windows; base and burst of a hybrid)
 * times `factor`, 0 or more. Units are rounded down, but what was at least 1 stays at least 1 unless the factor is 0; 0
 * and `'off'` stay. Results are capped at the maximum: 9,000,000,000, for a bucket with rollover 3,000,000,000, for the
 * exact log 100,000. A rate is not rounded; at a factor of 0 it stays, because nothing passes anyway.
 */
export function scaleRule(rule: Rule, factor: number): Rule {
  if (factor === 1) return rule
  if (isWindowRule(rule)) return mapWindows(rule, (numbers) => scaleWindow(rule, numbers, factor))
  if (isBucketRule(rule)) {
    return withRate({ ...rule, capacity: scaleUnits(rule.capacity, factor, largestCapacity(rule)) }, factor)
  }
  if (rule.algorithm === 'hybrid') {
    const { capacity, refillPerSecond } = rule.burst
    const burst = {
      capacity: scaleUnits(capacity, factor) as number,
      refillPerSecond: scaleRate(refillPerSecond, factor),
    }
    return { ...rule, limit: scaleUnits(rule.limit, factor), burst }
  }
  return { ...rule, limit: scaleUnits(rule.limit, factor) }
}

/**
 * The rule with the numbers of an override. `limit` replaces the limit or capacity, `window` and `burst` (of a hybrid:
 * the capacity of its burst) those of the rule. A burst or rate that is not given scales with the new limit, as in
 * {@link scaleRule}, and stays if the old limit is 0 or `'off'`. `windows` replace all windows, `multiplier` works as
 * in {@link scaleRule}, `'off'` does not limit. What the algorithm does not support is a problem. `compileRule` checks
 * the numbers themselves.
 */
export function applyTerms(rule: Rule, terms: OverrideTerms): Rule | NotApplicable {
  const misplaced = misplacedTerm(terms)
  if (misplaced !== undefined) return { problem: misplaced }
  if (terms.multiplier !== undefined) {
    if (terms.multiplier >= 0 && terms.multiplier < Number.POSITIVE_INFINITY) return scaleRule(rule, terms.multiplier)
    return { problem: `"multiplier" is ${terms.multiplier}, expected a number, 0 or more` }
  }
  if (terms.limit === 'off') return { ...rule, [isBucketRule(rule) ? 'capacity' : 'limit']: 'off' } as Rule
  if (isWindowRule(rule)) return applyToWindows(rule, terms)
  return applyLimit(rule, terms)
}

/**
 * The rule with `extra` more units at once on top of its limit: as its burst or capacity, for `concurrency` as more
 * slots. A rule that denies all, or does not limit, stays unchanged. Fixed and sliding windows have another state
 * format with a burst, so callers with one have separate counters. A calendar window gets a burst that refills over one
 * period, months counted as 31 days. Rollover, and calendar windows among others, do not support it.
 */
export function addBurst(rule: Rule, extra: number): Rule | NotApplicable {
  if (extra === 0) return rule
  if (isBucketRule(rule)) return { ...rule, capacity: raise(rule.capacity, extra, largestCapacity(rule)) }
  if (rule.algorithm === 'concurrency') return { ...rule, limit: raise(rule.limit, extra) }
  if (rule.algorithm === 'hybrid') {
    return { ...rule, burst: { ...rule.burst, capacity: atMost(LARGEST_UNITS, rule.burst.capacity + extra) } }
  }
  if (rule.algorithm === 'fixed-window') {
    if (rule.rollover === true) return { problem: 'a burst cannot be added to a rule with "rollover"' }
    if (rule.windows?.some(({ window }) => typeof window === 'object')) {
      return { problem: 'a burst cannot be added to a calendar window among several windows' }
    }
    if (typeof rule.window === 'object') return overCalendar(rule, rule.window, extra)
  }
  return mapWindows(rule, (numbers) => {
    const burst = numbers.burst ?? numbers.limit
    return numbers.limit === 0 || burst === 'off' ? numbers : { burst: atMost(LARGEST_UNITS, burst + extra) }
  })
}

/** The rule for a caller that is not entitled to the burst of a hybrid; its counters stay the same. */
export function withoutHybridBurst(rule: Rule): Rule {
  return rule.algorithm === 'hybrid' ? { ...rule, burst: { ...rule.burst, capacity: 0 } } : rule
}

function misplacedTerm(terms: OverrideTerms): string | undefined {
  const { limit, window, burst, windows, multiplier } = terms
  const given = [limit, windows, multiplier].filter((term) => term !== undefined).length
  if (given !== 1) return `there are ${given} of "limit", "windows" and "multiplier", expected exactly one`
  if (limit !== undefined || (window === undefined && burst === undefined)) return undefined
  return `"${window === undefined ? 'burst' : 'window'}" stands without "limit"`
}

function applyToWindows(rule: WindowRule, terms: OverrideTerms): Rule | NotApplicable {
  const { windows } = terms
  if (windows === undefined) {
    const count = rule.windows?.length ?? 1
    if (count === 1) return mapWindows(rule, (numbers) => limitedWindow(rule, numbers, terms))
    return { problem: `"limit" does not say which of the ${count} windows it is for: use "windows" or "multiplier"` }
  }
  const { limit: _limit, window: _window, burst: _burst, windows: _windows, ...others } = rule
  // A single window in place of another keeps its counter, which does not depend on the length.
  const alone = rule.windows === undefined && windows.length === 1
  return { ...others, ...(alone ? windows[0] : { windows }) } as Rule
}

function limitedWindow(rule: WindowRule, numbers: WindowNumbers, terms: OverrideTerms): Partial<WindowNumbers> {
  const limit = terms.limit as number
  const window = terms.window ?? numbers.window
  if (terms.burst !== undefined) return { limit, window, burst: terms.burst }
  if (numbers.burst === undefined) return { limit, window }
  const burst = scaleUnits(numbers.burst, proportion(limit, numbers.limit)) as number
  return { limit, window, burst: isMeter(rule) ? burst : Math.max(limit, burst) }
}

function applyLimit(rule: PlainRule, terms: OverrideTerms): Rule | NotApplicable {
  const { limit, window, burst, windows } = terms
  if (limit === undefined || limit === 'off' || windows !== undefined) {
    return { problem: `${rule.algorithm} does not have "windows": use "limit" or "multiplier"` }
  }
  if (rule.algorithm === 'hybrid') {
    const { capacity, refillPerSecond } = rule.burst
    const factor = burst === undefined ? proportion(limit, rule.limit) : proportion(burst, capacity)
    const units = burst ?? (scaleUnits(capacity, factor) as number)
    const refill = scaleRate(refillPerSecond, factor)
    return { ...rule, limit, window: window ?? rule.window, burst: { capacity: units, refillPerSecond: refill } }
  }
  const part = window === undefined ? 'burst' : 'window'
  if (terms[part] !== undefined) return { problem: `${rule.algorithm} does not have a "${part}"` }
  if (rule.algorithm === 'concurrency') return { ...rule, limit }
  return withRate({ ...rule, capacity: limit }, proportion(limit, rule.capacity))
}

/** How the numbers that depend on a limit change: not at all if there was no limit to compare with. */
function proportion(limit: number, before: Units): number {
  return before === 'off' || before === 0 ? 1 : limit / before
}

function overCalendar(rule: FixedWindowRule & RuleSettings, window: CalendarWindow, extra: number): Rule {
  const { limit = 0, failureMode } = rule
  const burst = { capacity: extra, refillPerSecond: extra / PERIOD_SECONDS[window.calendar] }
  return { algorithm: 'hybrid', limit, window, burst, ...(failureMode === undefined ? {} : { failureMode }) }
}

function mapWindows(rule: WindowRule, change: (numbers: WindowNumbers) => Partial<WindowNumbers>): Rule {
  if (rule.windows === undefined) return { ...rule, ...change(rule) } as Rule
  return { ...rule, windows: rule.windows.map((numbers) => ({ ...numbers, ...change(numbers) })) } as Rule
}

function scaleWindow(rule: WindowRule, numbers: WindowNumbers, factor: number): Partial<WindowNumbers> {
  const isExactLog = rule.algorithm === 'sliding-window-log' && rule.segments === undefined
  const limit = scaleUnits(numbers.limit, factor, isExactLog ? LARGEST_LOG_UNITS : LARGEST_UNITS)
  if (numbers.burst === undefined) return { limit }
  return { limit, burst: scaleUnits(numbers.burst, factor) as number }
}

function scaleUnits(units: Units, factor: number, most = LARGEST_UNITS): Units {
  if (units === 'off' || units === 0 || factor === 0) return units === 'off' ? units : 0
  const product = units * factor
  const nearest = Math.round(product)
  const whole = Math.abs(product - nearest) <= product * ROUNDING_ERROR ? nearest : Math.floor(product)
  return atMost(most, Math.max(1, whole))
}

function scaleRate(perSecond: number, factor: number): number {
  return factor === 0 ? perSecond : Math.max(SLOWEST_RATE, atMost(LARGEST_UNITS, perSecond * factor))
}

function withRate(rule: BucketRule & RuleSettings, factor: number): Rule {
  switch (rule.algorithm) {
    case 'token-bucket':
      return { ...rule, refillPerSecond: scaleRate(rule.refillPerSecond, factor) }
    case 'leaky-bucket-meter':
      return { ...rule, leakPerSecond: scaleRate(rule.leakPerSecond, factor) }
    case 'leaky-bucket-queue':
      return { ...rule, ratePerSecond: scaleRate(rule.ratePerSecond, factor) }
  }
}

function raise(units: Units, extra: number, most = LARGEST_UNITS): Units {
  return units === 'off' || units === 0 ? units : atMost(most, units + extra)
}

function largestCapacity(rule: BucketRule): number {
  return rule.algorithm === 'token-bucket' && rule.rollover === true ? LARGEST_ROLLOVER_UNITS : LARGEST_UNITS
}

function atMost(most: number, value: number): number {
  return value > most ? most : value
}

function isWindowRule(rule: Rule): rule is WindowRule {
  return !('capacity' in rule) && rule.algorithm !== 'hybrid' && rule.algorithm !== 'concurrency'
}

function isBucketRule(rule: Rule): rule is BucketRule & RuleSettings {
  return 'capacity' in rule
}

/** Whether a burst is the number of units at once, of any size; for the other algorithms it is at least the limit. */
function isMeter(rule: WindowRule): boolean {
  return rule.algorithm === undefined || rule.algorithm === 'gcra'
}
