import { invalidOption, requireNumber } from '../option-range.ts'
import { requireBounds } from '../sketches/bucket-bounds.ts'
import { Counter } from './metric-counter.ts'
import type { Label, LabelDeclaration, MetricOptions } from './metric-definition.ts'
import { requireMetricName, resolveLabels, sampleNames } from './metric-definition.ts'
import { Gauge } from './metric-gauge.ts'
import { Histogram } from './metric-histogram.ts'
import type { GaugeMerge, HistogramView, MetricFamily, MetricsSnapshot } from './metrics-snapshot.ts'

/** Options of a gauge. */
export interface GaugeOptions<Labels extends readonly LabelDeclaration[]> extends MetricOptions<Labels> {
  /** How gauges of several registries are merged. */
  readonly merge: GaugeMerge
}

/** Options of a histogram. */
export interface HistogramOptions<Labels extends readonly LabelDeclaration[]> extends MetricOptions<Labels> {
  /** Upper bounds of the buckets, inclusive: 1 to 200 increasing numbers. A last bucket for the rest is added. */
  readonly bounds: readonly number[]
  /** Exposes the same observations a second time, in a larger unit. */
  readonly alsoAs?: HistogramView | undefined
}

/** Counts lookups beyond the series limit of a metric; its label `metric` is the name. */
const OVERFLOW_METRIC = 'sluice_metrics_overflow_total'

const GAUGE_MERGES: readonly string[] = ['sum', 'max', 'min', 'last'] satisfies GaugeMerge[]

/**
 * The metrics of one thread: declared once, updated through handles, read as a snapshot.
 *
 * Memory is bounded for any label values: see {@link MetricOptions.mostSeries}. Each lookup that ended at `other`
 * increments {@link OVERFLOW_METRIC}. A registry belongs to one thread; {@link mergeSnapshots} combines several.
 */
export class MetricRegistry {
  readonly #taken = new Set<string>()
  readonly #families: (() => MetricFamily)[] = []
  readonly #updates = new Set<() => void>()
  readonly #overflow: Counter<['metric']>

  constructor() {
    this.#take(OVERFLOW_METRIC, 'counter')
    const labels: Label[] = [{ name: 'metric', values: undefined }]
    // One series per declared metric, so it does not overflow itself.
    this.#overflow = new Counter({ labels, mostSeries: 1_000_000, onOverflow: () => undefined })
    const help = 'Lookups whose label values were counted as other.'
    this.#families.push(() => ({
      type: 'counter',
      name: OVERFLOW_METRIC,
      help,
      labels: ['metric'],
      samples: this.#overflow.samples(),
    }))
  }

  /** Declares a counter. Its name must end in `_total`. */
  counter<const Labels extends readonly LabelDeclaration[] = []>(options: MetricOptions<Labels>): Counter<Labels> {
    const { base, table } = this.#declare(options, 'counter')
    const counter = new Counter<Labels>(table)
    this.#families.push(() => ({ ...base, type: 'counter', samples: counter.samples() }))
    return counter
  }

  /** Declares a gauge. */
  gauge<const Labels extends readonly LabelDeclaration[] = []>(options: GaugeOptions<Labels>): Gauge<Labels> {
    const { merge } = options
    if (!GAUGE_MERGES.includes(merge)) throw invalidOption('merge', merge, `one of ${GAUGE_MERGES.join(', ')}`)
    const { base, table } = this.#declare(options, 'gauge')
    const gauge = new Gauge<Labels>(table)
    this.#families.push(() => ({ ...base, type: 'gauge', merge, samples: gauge.samples() }))
    return gauge
  }

  /** Declares a histogram with fixed buckets: durations, sizes. */
  histogram<const Labels extends readonly LabelDeclaration[] = []>(
    options: HistogramOptions<Labels>,
  ): Histogram<Labels> {
    const bounds = requireBounds(options.bounds)
    const { alsoAs } = options
    if (alsoAs !== undefined) requireNumber('alsoAs.divisor', alsoAs.divisor, { min: 1, max: 1e12 })
    const { base, table } = this.#declare(options, 'histogram')
    if (alsoAs !== undefined) this.#take(alsoAs.name, 'histogram')
    const histogram = new Histogram<Labels>(bounds, table)
    const shape = { bounds: Array.from(bounds), alsoAs: alsoAs && { name: alsoAs.name, divisor: alsoAs.divisor } }
    this.#families.push(() => ({ ...base, ...shape, type: 'histogram', samples: histogram.samples() }))
    return histogram
  }

  /**
   * Calls `update` before every snapshot: for gauges that mirror other state. Returns a function that unregisters it.
   * {@link MetricRegistry.snapshot} throws what `update` throws.
   */
  beforeSnapshot(update: () => void): () => void {
    // A new function, so that the same one registered twice is called twice and unregistered one by one.
    const own = (): void => update()
    this.#updates.add(own)
    return () => void this.#updates.delete(own)
  }

  /** All metrics and their current values, as immutable plain data. */
  snapshot(): MetricsSnapshot {
    for (const update of this.#updates) update()
    return { families: this.#families.map((read) => read()) }
  }

  #declare(options: MetricOptions, type: MetricFamily['type']) {
    const { labels, mostSeries } = resolveLabels(options)
    this.#take(options.name, type)
    const base = { name: options.name, help: options.help, labels: labels.map((label) => label.name) }
    if (labels.length === 0) return { base, table: { labels, mostSeries, onOverflow: () => undefined } }
    const overflow = this.#overflow.labels({ metric: options.name })
    return { base, table: { labels, mostSeries, onOverflow: () => overflow.inc() } }
  }

  #take(name: string, type: MetricFamily['type']): void {
    const names = sampleNames(requireMetricName(name, type), type)
    const taken = names.find((sample) => this.#taken.has(sample))
    if (taken !== undefined) throw invalidOption('name', name, `a name that leaves ${taken} to the metric that has it`)
    for (const sample of names) this.#taken.add(sample)
  }
}
