import { requireNumber } from '../option-range.ts'
import { bucketOf, bucketQuantile } from '../sketches/bucket-bounds.ts'
import type { LabelArguments, LabelDeclaration } from './metric-definition.ts'
import type { HistogramSample } from './metrics-snapshot.ts'
import { SeriesTable, type SeriesTableOptions } from './series-table.ts'

/** The series of one label combination: keep it where you measure often. */
export class HistogramSeries {
  readonly #bounds: Float64Array
  readonly #counts: Float64Array
  #sum = 0

  constructor(bounds: Float64Array) {
    this.#bounds = bounds
    this.#counts = new Float64Array(bounds.length + 1)
  }

  /** Records an observation: a finite number, 0 or more, in the unit of the bounds. */
  observe(value: number): void {
    if (!(value >= 0 && value < Number.POSITIVE_INFINITY)) {
      requireNumber('value', value, { min: 0, max: Number.MAX_VALUE })
    }
    const bucket = bucketOf(this.#bounds, value)
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1
    this.#sum += value
  }

  /** Estimates a quantile (0 to 1) of all observations; see {@link bucketQuantile}. */
  quantile(quantile: number): number | undefined {
    return bucketQuantile(this.#bounds, this.#counts, quantile)
  }

  /** Bucket counts and sum. */
  get sample(): Omit<HistogramSample, 'values'> {
    return { counts: Array.from(this.#counts), sum: this.#sum }
  }
}

/** A histogram with label combinations. Created by {@link MetricRegistry.histogram}. */
export class Histogram<Labels extends readonly LabelDeclaration[] = []> {
  readonly #table: SeriesTable<HistogramSeries>

  constructor(bounds: Float64Array, options: Omit<SeriesTableOptions<HistogramSeries>, 'make'>) {
    this.#table = new SeriesTable({ ...options, make: () => new HistogramSeries(bounds) })
  }

  /** The series of these label values. The same object for the same values. */
  labels(...[values]: LabelArguments<Labels>): HistogramSeries {
    return this.#table.find(values ?? {})
  }

  /** All series and their counts. */
  samples(): HistogramSample[] {
    return this.#table.entries().map(({ values, series }) => ({ values, ...series.sample }))
  }
}
