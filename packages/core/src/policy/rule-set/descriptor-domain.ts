/** Length of the window of a descriptor's limit, aligned to UTC. */
export type DescriptorUnit = 'second' | 'minute' | 'hour' | 'day' | 'week' | 'month' | 'year'

/** Algorithms with one number and one window. */
export type DescriptorAlgorithm = 'fixed-window' | 'sliding-window-counter' | 'sliding-window-log' | 'gcra'

/** The limit of a node of a descriptor tree. */
export interface DescriptorLimit {
  /** This, or `window`, unless `unlimited`. */
  readonly unit?: DescriptorUnit
  /** A window that is not a unit: milliseconds, or a string such as `30s`. */
  readonly window?: number | string
  /** Requests per unit or window. 0 denies all. */
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
  /** Names of limits that are dropped from a request that this one matches too. */
  readonly replaces?: readonly string[]
}

/** A node of a descriptor tree: the entry of a request that it matches, its limit, and its children. */
export interface DescriptorNode {
  readonly key: string
  /** May contain `*` anywhere. Default: any value, each counted separately. */
  readonly value?: string
  readonly limit?: DescriptorLimit
  readonly descriptors?: readonly DescriptorNode[]
  readonly shadow?: boolean
  /** Denies a request only if every matched limit with quota mode is over. */
  readonly quota?: boolean
  /** All values that match `*` share one counter. */
  readonly shareThreshold?: boolean
  readonly detailedMetric?: boolean
  readonly valueToMetric?: boolean
  /** Metadata that answers return while units remain. */
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** Limits by descriptors, for one domain of requests. */
export interface DescriptorDomain {
  readonly domain: string
  readonly descriptors: readonly DescriptorNode[]
}
