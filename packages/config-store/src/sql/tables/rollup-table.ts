import type { Rollup, RollupTable } from '../../rollup-table.ts'
import type { SqlDriver, SqlTarget } from '../sql-driver.ts'

interface RollupRow {
  readonly step_ms: number
  readonly at: number
  readonly source: string
  readonly body: string
}

const ROLLUPS: SqlTarget = {
  table: 'rollups',
  columns: [
    { name: 'step_ms', type: 'bigint' },
    { name: 'at', type: 'bigint' },
    { name: 'source', type: 'text' },
    { name: 'body', type: 'text' },
  ],
  key: ['step_ms', 'at', 'source'],
}

/** Totals in a database. */
export class SqlRollupTable implements RollupTable {
  readonly #driver: SqlDriver

  constructor(driver: SqlDriver) {
    this.#driver = driver
  }

  async put(rows: readonly Rollup[]): Promise<void> {
    if (rows.length === 0) return
    // The last one of the same span and source counts, and no two of them may be put at once.
    const distinct = new Map(rows.map((row) => [`${row.stepMs} ${row.at} ${row.source}`, row]))
    await this.#driver.transaction((transaction) =>
      transaction.putRows(
        ROLLUPS,
        [...distinct.values()].map(({ stepMs, at, source, body }) => [stepMs, at, source, body]),
      ),
    )
  }

  async list({ fromMs, toMs, stepMs }: Parameters<RollupTable['list']>[0]): Promise<readonly Rollup[]> {
    const rows = await this.#driver.query<RollupRow>(
      'SELECT step_ms, at, source, body FROM rollups WHERE step_ms = ? AND at >= ? AND at < ? ORDER BY at, source',
      [stepMs, Math.ceil(fromMs), Math.ceil(toMs)],
    )
    return rows.map(({ step_ms, at, source, body }) => ({ stepMs: step_ms, at, source, body }))
  }

  async forget({ stepMs, beforeMs }: Parameters<RollupTable['forget']>[0]): Promise<void> {
    await this.#driver.transaction(async (transaction) => {
      await transaction.query('DELETE FROM rollups WHERE step_ms = ? AND at < ?', [stepMs, Math.ceil(beforeMs)])
    })
  }
}
