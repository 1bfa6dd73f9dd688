import { requireNumber } from '../option-range.ts'
import type { LabelArguments, LabelDeclaration } from './metric-definition.ts'
import type { NumberSample } from './metrics-snapshot.ts'
import { SeriesTable, type SeriesTableOptions } from './series-table.ts'

/** One series of a counter: keep it where you count often. */
export class CounterSeries {
  #value = 0

  /** Adds `amount`, 0 or more. Default: 1. */
  inc(amount = 1): void {
    // NaN fails both comparisons.
    if (!(amount >= 0 && amount < Number.POSITIVE_INFINITY)) {
      requireNumber('amount', amount, { min: 0, max: Number.MAX_VALUE })
    }
    this.#value += amount
  }

  /** The sum so far. */
  get value(): number {
    return this.#value
  }
}

/** A counter with label combinations. Created by {@link MetricRegistry.counter}. */
export class Counter<Labels extends readonly LabelDeclaration[] = []> {
  readonly #table: SeriesTable<CounterSeries>
  readonly #onOverflow: () => void

  constructor(options: Omit<SeriesTableOptions<CounterSeries>, 'make'>) {
    this.#onOverflow = options.onOverflow
    this.#table = new SeriesTable({ ...options, make: () => new CounterSeries() })
  }

  /** The series of these label values; it starts at 0. The same object for the same values. */
  labels(...[values]: LabelArguments<Labels>): CounterSeries {
    return this.#table.find(values ?? {})
  }

  /** Counts one overflow: for callers that decide themselves which label values are `other`. */
  countOverflow(): void {
    this.#onOverflow()
  }

  /** All series and their values. */
  samples(): NumberSample[] {
    return this.#table.entries().map(({ values, series }) => ({ values, value: series.value }))
  }
}
