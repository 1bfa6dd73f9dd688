import { invalidOption, requireInteger, requireName } from '../option-range.ts'

/** A label whose values are all known beforehand; any other value is counted as {@link OTHER}. */
export interface ClosedLabel {
  readonly name: string
  /** 1 to 100 values. */
  readonly values: readonly string[]
}

/** A label: its name when values are only known at run time, or with all its values when they are known beforehand. */
export type LabelDeclaration = string | ClosedLabel

/** The value of each declared label. */
export type LabelValues<Labels extends readonly LabelDeclaration[]> = {
  readonly [Declared in Labels[number] as Declared extends ClosedLabel
    ? Declared['name']
    : Declared & string]: Declared extends ClosedLabel ? Declared['values'][number] : string
}

/** What `labels` takes: nothing for a metric without labels, else one object with the value of each label. */
export type LabelArguments<Labels extends readonly LabelDeclaration[]> = Labels extends readonly []
  ? []
  : [values: LabelValues<Labels>]

/** What every metric declares. */
export interface MetricOptions<Labels extends readonly LabelDeclaration[] = readonly LabelDeclaration[]> {
  /** Letters, digits, `_` and `:`, not beginning with a digit; unique in its registry. */
  readonly name: string
  /** One sentence for the reader of the metrics page. */
  readonly help: string
  /** Default: none. */
  readonly labels?: Labels | undefined
  /**
   * How many combinations of label values are kept apart, 1 to 1,000,000. Default 1000. When there are so many, a new
   * combination is counted with `other` in place of each label that is not closed.
   */
  readonly mostSeries?: number | undefined
}

/** A label as it is worked with: `values` is undefined when any value may come. */
export interface Label {
  readonly name: string
  readonly values: ReadonlySet<string> | undefined
}

/** Stands for label values beyond what a metric keeps apart. */
export const OTHER = 'other'

const METRIC_NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const LABEL_NAME = /^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$/
const MOST_CLOSED_VALUES = 100
const DEFAULT_MOST_SERIES = 1000

/** The names of samples that a metric takes, by its type: no two metrics of a page may share one. */
const SUFFIXES = {
  counter: [''],
  gauge: [''],
  histogram: ['', '_bucket', '_sum', '_count'],
} as const

/** Gives back `name` when it can be that of a metric of this type; otherwise throws `SLUICE_RUNTIME_INVALID_OPTION`. */
export function requireMetricName(name: string, type: keyof typeof SUFFIXES): string {
  if (typeof name !== 'string' || !METRIC_NAME.test(name)) {
    throw invalidOption('name', name, 'letters, digits, _ and :, not beginning with a digit')
  }
  // OpenMetrics derives the name of a counter's samples from it, and no other type may look like one.
  if (name.endsWith('_total') !== (type === 'counter')) {
    throw invalidOption('name', name, type === 'counter' ? 'a name that ends in _total' : 'a name without _total')
  }
  return name
}

/** Every name that a metric stands under on the page, in either format. */
export function sampleNames(name: string, type: keyof typeof SUFFIXES): readonly string[] {
  const names = SUFFIXES[type].map((suffix) => `${name}${suffix}`)
  return type === 'counter' ? [...names, name.slice(0, -'_total'.length)] : names
}

/** Checks what a metric declares about its labels. */
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
  // `le` is what histograms name their bounds by.
  if (typeof name !== 'string' || !LABEL_NAME.test(name) || name === 'le') {
    throw invalidOption('label', name, 'letters, digits and _, not beginning with a digit or __, and not le')
  }
  if (typeof declared === 'string') return { name, values: undefined }
  const { values } = declared
  requireInteger(`values of ${name}`, values.length, { min: 1, max: MOST_CLOSED_VALUES })
  return { name, values: new Set(values) }
}
