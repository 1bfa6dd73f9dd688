/** What was counted in one span of time by one process. */
export interface Rollup {
  /** Length of the span in milliseconds. */
  readonly stepMs: number
  /** When the span began; milliseconds since 1970. */
  readonly at: number
  /** Names the process, and no other before or after it. */
  readonly source: string
  /** What was counted, as JSON. */
  readonly body: string
}

/** Totals of the past. Several processes may write at the same time, each its own rows. */
export interface RollupTable {
  /** Puts rows, all or none; each takes the place of one of the same span and source. Putting them again changes nothing. */
  put(rows: readonly Rollup[]): Promise<void>
  /** All rows of this length that began from `fromMs` on and before `toMs`, oldest first. */
  list(span: { readonly fromMs: number; readonly toMs: number; readonly stepMs: number }): Promise<readonly Rollup[]>
  /** Drops rows of this length that began before `beforeMs`. */
  forget(span: { readonly stepMs: number; readonly beforeMs: number }): Promise<void>
}
