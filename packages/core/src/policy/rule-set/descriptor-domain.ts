/** Length of the window of a descriptor's limit, cut at UTC. */
export type DescriptorUnit = 'second' | 'minute' | 'hour' | 'day' | 'week' | 'month' | 'year'

/** Algorithms with one number and one window. */
export type DescriptorAlgorithm = 'fixed-window' | 'sliding-window-counter' | 'sliding-window-log' | 'gcra'

/** The limit at a node of a descriptor tree. */
export interface DescriptorLimit {
  /** This, or `window`, unless `unlimited`. */
  readonly unit?: DescriptorUnit
  /** Length of the window where it is no unit: milliseconds, or text such as `30s`. */
  readonly window?: number | string
  /** Requests in each unit or window. 0 denies all. */
  readonly requestsPerUnit?: number
  /** Default: `fixed-window`. */
  readonly algorithm?: DescriptorAlgorithm
  readonly unlimited?: boolean
  /**
   * A call with more hits than are left takes what is left, and is denied: for hits that have happened already, such as
   * the tokens of an answer. Default: false, a denied call takes nothing.
   */
  readonly drain?: boolean
  readonly name?: string
  /** Names of limits that are dropped from a request in which this one is matched too. */
  readonly replaces?: readonly string[]
}

/** A node of a descriptor tree: what an entry of a request must say, and what follows. */
export interface DescriptorNode {
  readonly key: string
  /** May contain `*` anywhere. Default: any value, each counted on its own. */
  readonly value?: string
  readonly limit?: DescriptorLimit
  readonly descriptors?: readonly DescriptorNode[]
  readonly shadow?: boolean
  /** Denies a request only when every matched limit of this kind is over. */
  readonly quota?: boolean
  /** All values that a `*` stands for share one counter. */
  readonly shareThreshold?: boolean
  readonly detailedMetric?: boolean
  readonly valueToMetric?: boolean
  /** Free data that answers hand back while there is room. */
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** Limits by descriptors, for one domain of requests. */
export interface DescriptorDomain {
  readonly domain: string
  readonly descriptors: readonly DescriptorNode[]
}
