import { requireNumber } from '../option-range.ts'
import type { LabelArguments, LabelDeclaration } from './metric-definition.ts'
import type { NumberSample } from './metrics-snapshot.ts'
import { SeriesTable, type SeriesTableOptions } from './series-table.ts'

/** One number of a counter: a handle to keep where things are counted often. */
export class CounterSeries {
  #value = 0

  /** Adds `amount`, zero or more. Default 1. */
  inc(amount = 1): void {
    // Written so that NaN is refused too.
    if (!(amount >= 0 && amount < Number.POSITIVE_INFINITY)) {
      requireNumber('amount', amount, { min: 0, max: Number.MAX_VALUE })
    }
    this.#value += amount
  }

  /** What was added so far. */
  get value(): number {
    return this.#value
  }
}

/** A number that only rises, for each combination of label values. Made by {@link MetricRegistry.counter}. */
export class Counter<Labels extends readonly LabelDeclaration[] = []> {
  readonly #table: SeriesTable<CounterSeries>
  readonly #onOverflow: () => void

  constructor(options: Omit<SeriesTableOptions<CounterSeries>, 'make'>) {
    this.#onOverflow = options.onOverflow
    this.#table = new SeriesTable({ ...options, make: () => new CounterSeries() })
  }

  /** The number of these label values; it begins at 0. The same object for the same values. */
  labels(...[values]: LabelArguments<Labels>): CounterSeries {
    return this.#table.find(values ?? {})
  }

  /** Counts one overflow: for a program that itself decides which label values are `other`. */
  countOverflow(): void {
    this.#onOverflow()
  }

  /** Every series and its number. */
  samples(): NumberSample[] {
    return this.#table.entries().map(({ values, series }) => ({ values, value: series.value }))
  }
}
