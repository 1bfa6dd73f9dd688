/** How gauges of several registries become one. `last` takes that of the last snapshot in the list that has it. */
export type GaugeMerge = 'sum' | 'max' | 'min' | 'last'

/** One number and the label values it stands under, in the order of the labels of its family. */
export interface NumberSample {
  readonly values: readonly string[]
  readonly value: number
}

/** A histogram of one combination of label values. */
export interface HistogramSample {
  readonly values: readonly string[]
  /** Observations in each bucket, not added up; one more than there are bounds, the last for all above the greatest. */
  readonly counts: readonly number[]
  /** All observations added together. */
  readonly sum: number
}

interface Family {
  readonly name: string
  readonly help: string
  readonly labels: readonly string[]
}

/** A counter with all its series. */
export interface CounterFamily extends Family {
  readonly type: 'counter'
  readonly samples: readonly NumberSample[]
}

/** A gauge with all its series. */
export interface GaugeFamily extends Family {
  readonly type: 'gauge'
  readonly merge: GaugeMerge
  readonly samples: readonly NumberSample[]
}

/** The same observations under a second name, in a greater unit. */
export interface HistogramView {
  readonly name: string
  /** What one observation is divided by: 1000 for seconds out of milliseconds. */
  readonly divisor: number
}

/** A histogram with all its series. */
export interface HistogramFamily extends Family {
  readonly type: 'histogram'
  /** The upper ends of the buckets, which belong to them; rising. */
  readonly bounds: readonly number[]
  readonly alsoAs: HistogramView | undefined
  readonly samples: readonly HistogramSample[]
}

/** A metric and all its numbers at one moment. */
export type MetricFamily = CounterFamily | GaugeFamily | HistogramFamily

/** All metrics of a registry at one moment: plain data that can be sent to another thread. */
export interface MetricsSnapshot {
  /** In the order in which they were declared. */
  readonly families: readonly MetricFamily[]
}
