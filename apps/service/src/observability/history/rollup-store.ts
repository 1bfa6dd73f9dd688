import type { Rollup, RollupTable } from '@sluice/config-store'

/** What one process counted in one span of time, a minute or an hour. */
export type RollupRow = Rollup

/** Where history is kept: a table of the configuration database. */
export type RollupStore = RollupTable

/** Length of the shortest spans that are kept. */
export const MINUTE_MS = 60_000

/** Length of the spans that are kept for long. */
export const HOUR_MS = 3_600_000

const DAY_MS = 86_400_000

/** How long spans are kept, by their length. */
export const KEPT_MS: Readonly<Record<number, number>> = { [MINUTE_MS]: 2 * DAY_MS, [HOUR_MS]: 90 * DAY_MS }
