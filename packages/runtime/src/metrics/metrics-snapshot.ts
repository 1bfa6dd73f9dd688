/** How gauges of several registries are merged. `last` takes the value of the last snapshot that has it. */
export type GaugeMerge = 'sum' | 'max' | 'min' | 'last'

/** A value and its label values, in the order of the labels of its family. */
export interface NumberSample {
  readonly values: readonly string[]
  readonly value: number
}

/** A histogram of one label combination. */
export interface HistogramSample {
  readonly values: readonly string[]
  /**
   * Observations per bucket, not cumulative; one more than there are bounds, the last for everything above the highest.
   */
  readonly counts: readonly number[]
  /** Sum of all observations. */
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

/** The same observations under a second name, in a larger unit. */
export interface HistogramView {
  readonly name: string
  /** Divisor of an observation: 1000 converts milliseconds to seconds. */
  readonly divisor: number
}

/** A histogram with all its series. */
export interface HistogramFamily extends Family {
  readonly type: 'histogram'
  /** Upper bounds of the buckets, inclusive and increasing. */
  readonly bounds: readonly number[]
  readonly alsoAs: HistogramView | undefined
  readonly samples: readonly HistogramSample[]
}

/** A metric and its values at one moment. */
export type MetricFamily = CounterFamily | GaugeFamily | HistogramFamily

/** All metrics of a registry at one moment: plain data that can be sent to another thread. */
export interface MetricsSnapshot {
  /** In declaration order. */
  readonly families: readonly MetricFamily[]
}
