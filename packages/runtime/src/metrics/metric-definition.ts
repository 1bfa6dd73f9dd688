import { invalidOption, requireInteger, requireName } from '../option-range.ts'

/** A label with a fixed set of values; any other value is counted as {@link OTHER}. */
export interface ClosedLabel {
  readonly name: string
  /** 1 to 100 values. */
  readonly values: readonly string[]
}

/** A label: its name, or with all its values if they are known in advance. */
export type LabelDeclaration = string | ClosedLabel

/** The value of each declared label. */
export type LabelValues<Labels extends readonly LabelDeclaration[]> = {
  readonly [Declared in Labels[number] as Declared extends ClosedLabel
    ? Declared['name']
    : Declared & string]: Declared extends ClosedLabel ? Declared['values'][number] : string
}

/** Arguments of `labels`: none for a metric without labels, else one object with a value for each label. */
export type LabelArguments<Labels extends readonly LabelDeclaration[]> = Labels extends readonly []
  ? []
  : [values: LabelValues<Labels>]

/** Options of every metric. */
export interface MetricOptions<Labels extends readonly LabelDeclaration[] = readonly LabelDeclaration[]> {
  /** Letters, digits, `_` and `:`, not starting with a digit; unique in its registry. */
  readonly name: string
  /** Help text: one sentence. */
  readonly help: string
  /** Default: none. */
  readonly labels?: Labels | undefined
  /**
   * Maximum number of label combinations, 1 to 1,000,000. Beyond it, a new combination is counted with `other` in place
   * of each label that is not closed. Default: 1000.
   */
  readonly mostSeries?: number | undefined
}

/** A validated label; `values` is undefined if any value is allowed. */
export interface Label {
  readonly name: string
  readonly values: ReadonlySet<string> | undefined
}

/** Replaces label values beyond the limit of a metric. */
export const OTHER = 'other'

const METRIC_NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const LABEL_NAME = /^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$/
const MOST_CLOSED_VALUES = 100
const DEFAULT_MOST_SERIES = 1000

/** Suffixes of the samples of a metric, by type: sample names are unique on a page. */
const SUFFIXES = {
  counter: [''],
  gauge: [''],
  histogram: ['', '_bucket', '_sum', '_count'],
} as const

/** Returns `name` if it is valid for this type; otherwise throws `SLUICE_RUNTIME_INVALID_OPTION`. */
export function requireMetricName(name: string, type: keyof typeof SUFFIXES): string {
  if (typeof name !== 'string' || !METRIC_NAME.test(name)) {
    throw invalidOption('name', name, 'letters, digits, _ and :, not beginning with a digit')
  }
  // OpenMetrics derives the sample names of a counter from it, and no other type may look like one.
  if (name.endsWith('_total') !== (type === 'counter')) {
    throw invalidOption('name', name, type === 'counter' ? 'a name that ends in _total' : 'a name without _total')
  }
  return name
}

/** All sample names of a metric, in both formats. */
export function sampleNames(name: string, type: keyof typeof SUFFIXES): readonly string[] {
  const names = SUFFIXES[type].map((suffix) => `${name}${suffix}`)
  return type === 'counter' ? [...names, name.slice(0, -'_total'.length)] : names
}

/** Validates the labels of a metric. */
export function resolveLabels(options: Pick<MetricOptions, 'labels' | 'mostSeries' | 'help'>): {
  readonly labels: readonly Label[]
  readonly mostSeries: number
} {
  requireName('help', options.help)
  const labels = (options.labels ?? []).map(resolveLabel)
  const names = labels.map((label) => label.name)
  const repeated = names.find((name, index) => names.indexOf(name) !== index)
  if (repeated !== undefined) throw invalidOption('labels', repeated, 'each label once')
  const mostSeries = options.mostSeries ?? DEFAULT_MOST_SERIES
  return { labels, mostSeries: requireInteger('mostSeries', mostSeries, { min: 1, max: 1_000_000 }) }
}

function resolveLabel(declared: LabelDeclaration): Label {
  const name = typeof declared === 'string' ? declared : declared.name
  // `le` is the label of histogram bounds.
  if (typeof name !== 'string' || !LABEL_NAME.test(name) || name === 'le') {
    throw invalidOption('label', name, 'letters, digits and _, not beginning with a digit or __, and not le')
  }
  if (typeof declared === 'string') return { name, values: undefined }
  const { values } = declared
  requireInteger(`values of ${name}`, values.length, { min: 1, max: MOST_CLOSED_VALUES })
  return { name, values: new Set(values) }
}
