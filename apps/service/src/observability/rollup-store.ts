/** What was counted in one span of time by one process. */
export interface RollupRow {
  /** Length of the span in milliseconds: a minute or an hour. */
  readonly stepMs: number
  /** When the span began; milliseconds since 1970, a multiple of `stepMs`. */
  readonly at: number
  /** Names the process, and no other before or after it: 1 to 64 letters, digits or `-`. */
  readonly source: string
  /** What was counted, as JSON. */
  readonly body: string
}

/** Where history is kept. Several processes may write at the same time, each its own rows. */
export interface RollupStore {
  /** Puts rows, all or none; each takes the place of one of the same span and source. Putting them again changes nothing. */
  put(rows: readonly RollupRow[]): Promise<void>
  /** All rows of this length that began from `fromMs` on and before `toMs`, oldest first. */
  list(span: { readonly fromMs: number; readonly toMs: number; readonly stepMs: number }): Promise<readonly RollupRow[]>
  /** Drops rows of this length that began before `beforeMs`. */
  forget(span: { readonly stepMs: number; readonly beforeMs: number }): Promise<void>
}

/** Length of the shortest spans that are kept. */
export const MINUTE_MS = 60_000

/** Length of the spans that are kept for long. */
export const HOUR_MS = 3_600_000

const DAY_MS = 86_400_000

/** How long spans are kept, by their length. */
export const KEPT_MS: Readonly<Record<number, number>> = { [MINUTE_MS]: 2 * DAY_MS, [HOUR_MS]: 90 * DAY_MS }

/** Where history is kept when there is no database: in the memory of this process, and ends with it. */
export class MemoryRollups implements RollupStore {
  readonly #rows = new Map<string, RollupRow>()

  put(rows: readonly RollupRow[]): Promise<void> {
    for (const row of rows) this.#rows.set(`${row.stepMs} ${row.at} ${row.source}`, row)
    return Promise.resolve()
  }

  list({ fromMs, toMs, stepMs }: Parameters<RollupStore['list']>[0]): Promise<readonly RollupRow[]> {
    const found = [...this.#rows.values()].filter((row) => row.stepMs === stepMs && row.at >= fromMs && row.at < toMs)
    return Promise.resolve(found.sort((one, other) => one.at - other.at))
  }

  forget({ stepMs, beforeMs }: Parameters<RollupStore['forget']>[0]): Promise<void> {
    for (const [key, row] of this.#rows) if (row.stepMs === stepMs && row.at < beforeMs) this.#rows.delete(key)
    return Promise.resolve()
  }
}
