import { requireNumber } from '../option-range.ts'
import type { LabelArguments, LabelDeclaration } from './metric-definition.ts'
import type { NumberSample } from './metrics-snapshot.ts'
import { SeriesTable, type SeriesTableOptions } from './series-table.ts'

const FINITE = { min: -Number.MAX_VALUE, max: Number.MAX_VALUE }

/** One number of a gauge. */
export class GaugeSeries {
  #value = 0

  /** Takes over `value`, any finite number. */
  set(value: number): void {
    this.#value = requireNumber('value', value, FINITE)
  }

  /** Adds `amount`, any finite number, also below zero. */
  add(amount: number): void {
    this.#value += requireNumber('amount', amount, FINITE)
  }

  /** What it stands at. */
  get value(): number {
    return this.#value
  }
}

/** A number that rises and falls, for each combination of label values. Made by {@link MetricRegistry.gauge}. */
export class Gauge<Labels extends readonly LabelDeclaration[] = []> {
  readonly #table: SeriesTable<GaugeSeries>

  constructor(options: Omit<SeriesTableOptions<GaugeSeries>, 'make'>) {
    this.#table = new SeriesTable({ ...options, make: () => new GaugeSeries() })
  }

  /** The number of these label values; it begins at 0. The same object for the same values. */
  labels(...[values]: LabelArguments<Labels>): GaugeSeries {
    return this.#table.find(values ?? {})
  }

  /** Every series and its number. */
  samples(): NumberSample[] {
    return this.#table.entries().map(({ values, series }) => ({ values, value: series.value }))
  }
}
