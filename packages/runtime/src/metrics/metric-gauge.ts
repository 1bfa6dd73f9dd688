import { requireNumber } from '../option-range.ts'
import type { LabelArguments, LabelDeclaration } from './metric-definition.ts'
import type { NumberSample } from './metrics-snapshot.ts'
import { SeriesTable, type SeriesTableOptions } from './series-table.ts'

const FINITE = { min: -Number.MAX_VALUE, max: Number.MAX_VALUE }

/** One series of a gauge. */
export class GaugeSeries {
  #value = 0

  /** Sets the value, any finite number. */
  set(value: number): void {
    this.#value = requireNumber('value', value, FINITE)
  }

  /** Adds `amount`, any finite number, negative too. */
  add(amount: number): void {
    this.#value += requireNumber('amount', amount, FINITE)
  }

  /** The current value. */
  get value(): number {
    return this.#value
  }
}

/** A gauge with label combinations. Created by {@link MetricRegistry.gauge}. */
export class Gauge<Labels extends readonly LabelDeclaration[] = []> {
  readonly #table: SeriesTable<GaugeSeries>

  constructor(options: Omit<SeriesTableOptions<GaugeSeries>, 'make'>) {
    this.#table = new SeriesTable({ ...options, make: () => new GaugeSeries() })
  }

  /** The series of these label values; it starts at 0. The same object for the same values. */
  labels(...[values]: LabelArguments<Labels>): GaugeSeries {
    return this.#table.find(values ?? {})
  }

  /** All series and their values. */
  samples(): NumberSample[] {
    return this.#table.entries().map(({ values, series }) => ({ values, value: series.value }))
  }
}
