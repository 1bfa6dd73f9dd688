import { RULE_OPTIONS, type ValueKind } from '@sluice/core/internal'
import type { LooseRule } from '../document/rule-document.ts'

/** The name of an algorithm. */
export type AlgorithmName = keyof typeof RULE_OPTIONS

/** The algorithm of a rule that names none. */
const DEFAULT_ALGORITHM: AlgorithmName = 'gcra'

/** The algorithms, as a form offers them. */
export const ALGORITHM_CHOICES: readonly { readonly value: AlgorithmName; readonly label: string }[] = [
  { value: 'gcra', label: 'GCRA: a smooth rate with a burst' },
  { value: 'token-bucket', label: 'Token bucket' },
  { value: 'sliding-window-counter', label: 'Sliding window counter' },
  { value: 'sliding-window-log', label: 'Sliding window log: exact' },
  { value: 'fixed-window', label: 'Fixed window, or a calendar period' },
  { value: 'leaky-bucket-meter', label: 'Leaky bucket, as meter' },
  { value: 'leaky-bucket-queue', label: 'Leaky bucket, as queue' },
  { value: 'hybrid', label: 'Hybrid: a window with bursts for some' },
  { value: 'concurrency', label: 'Concurrency: calls in progress' },
]

const LABELS: Readonly<Record<string, string>> = {
  limit: 'Limit',
  window: 'Window',
  burst: 'Burst',
  windows: 'Windows',
  capacity: 'Capacity',
  refillPerSecond: 'Refill per second',
  leakPerSecond: 'Leak per second',
  ratePerSecond: 'Rate per second',
  rollover: 'Unused calls carry over',
  segments: 'Segments',
  lease: 'Lease',
}

/** A field for an option of an algorithm. */
export interface RuleField {
  readonly name: string
  readonly label: string
  readonly kind: ValueKind
}

/** The fields of an algorithm, without those for several windows while there is one, and the other way round. */
export function fieldsOf(rule: LooseRule): readonly RuleField[] {
  const options = optionsOf(algorithmOf(rule))
  const isSeveral = rule['windows'] !== undefined
  return Object.entries(options).flatMap(([name, { kind }]) => {
    const isOfOne = name === 'limit' || name === 'window' || name === 'burst'
    const isHidden = 'windows' in options && (isSeveral ? isOfOne : name === 'windows')
    return isHidden ? [] : [{ name, label: LABELS[name] ?? name, kind }]
  })
}

type Options = Readonly<Record<string, { readonly kind: ValueKind; readonly isRequired: boolean }>>

function optionsOf(algorithm: AlgorithmName): Options {
  return RULE_OPTIONS[algorithm]
}

/** The algorithm of a rule; the default for one that names none, or something else. */
export function algorithmOf(rule: LooseRule): AlgorithmName {
  const { algorithm } = rule
  const isKnown = typeof algorithm === 'string' && Object.hasOwn(RULE_OPTIONS, algorithm)
  return isKnown ? (algorithm as AlgorithmName) : DEFAULT_ALGORITHM
}

/** Whether an algorithm can have several windows. */
export function hasWindows(rule: LooseRule): boolean {
  return 'windows' in RULE_OPTIONS[algorithmOf(rule)]
}

/** Usual values for options that another algorithm did not have. */
const FIRST_VALUES: Readonly<Record<string, unknown>> = {
  limit: 100,
  window: '1m',
  capacity: 100,
  refillPerSecond: 10,
  leakPerSecond: 10,
  ratePerSecond: 10,
  lease: '30s',
  burst: { capacity: 50, refillPerSecond: 1 },
}

/** The rule under another algorithm: what both have stays, what the new one needs gets a usual value. */
export function withAlgorithm(rule: LooseRule, algorithm: AlgorithmName): LooseRule {
  const old = optionsOf(algorithmOf(rule))
  const options = optionsOf(algorithm)
  const kept = Object.entries(rule).filter(
    ([name, value]) => name !== 'algorithm' && (!(name in old) || canStay(name, value, options)),
  )
  const next: Record<string, unknown> = Object.fromEntries(kept)
  if (algorithm !== DEFAULT_ALGORITHM) next['algorithm'] = algorithm
  const isOneWindow = 'windows' in options && next['windows'] === undefined
  for (const [name, { isRequired }] of Object.entries(options)) {
    if (isRequired || (isOneWindow && (name === 'limit' || name === 'window'))) next[name] ??= FIRST_VALUES[name]
  }
  return next
}

/** Whether the value of an option means the same under other options. */
function canStay(name: string, value: unknown, options: Options): boolean {
  const option = options[name]
  if (option === undefined) return false
  if (name === 'burst') return (option.kind === 'burstBucket') === (typeof value === 'object')
  // A calendar period is only for windows that are counted anew.
  return option.kind !== 'duration' || typeof value !== 'object'
}

/** The rule with several windows, or with the first of them alone. */
export function withSeveralWindows(rule: LooseRule, isSeveral: boolean): LooseRule {
  const { limit, window, burst, windows, ...others } = rule
  if (isSeveral) {
    const first = { limit: limit ?? 100, window: window ?? '1m', ...(burst === undefined ? {} : { burst }) }
    return { ...others, windows: [first] }
  }
  const [first] = (Array.isArray(windows) ? windows : []) as readonly Readonly<Record<string, unknown>>[]
  return { ...others, limit: 100, window: '1m', ...first }
}

/** The rule with another value of an option; undefined removes it. The order of options stays. */
export function withOption(rule: LooseRule, name: string, value: unknown): LooseRule {
  if (value !== undefined) return { ...rule, [name]: value }
  const { [name]: _removed, ...others } = rule
  return others
}

/** The value that a field says. What is no number is kept as text, so that the check can say what it expected. */
export function typedValue(kind: ValueKind, text: string): unknown {
  const trimmed = text.trim()
  if (trimmed === '') return undefined
  if (kind === 'duration' || kind === 'durationOrCalendar') return trimmed
  return /^-?\d+(?:\.\d+)?$/.test(trimmed) ? Number(trimmed) : trimmed
}

/** The text of a field for a value. */
export function fieldText(value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
