/** How many requests of one kind there were in one span of time. */
export interface Rollup {
  /** When the span begins; milliseconds since 1970. */
  readonly startAt: number
  /** Its length in milliseconds. */
  readonly spanMs: number
  readonly resource: string
  readonly dimension: string
  readonly result: string
  readonly region: string
  readonly count: number
}

/** Which totals to read. */
export interface RollupFilter {
  readonly spanMs: number
  /** From this instant on, and before the other; milliseconds since 1970. */
  readonly from: number
  readonly to: number
}

/** Totals of the past. Several nodes may add to the same ones. */
export interface RollupTable {
  /** Adds to what is there. */
  add(rollups: readonly Rollup[]): Promise<void>
  /** In the order of time. */
  list(filter: RollupFilter): Promise<readonly Rollup[]>
  /** Forgets totals of spans of this length that began before an instant. */
  removeBefore(spanMs: number, before: number): Promise<void>
}
