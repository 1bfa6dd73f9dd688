import type { Rollup, RollupFilter, RollupTable } from '../rollup-table.ts'
import type { SqlDriver } from './sql-driver.ts'
import { originalText, storedText } from './stored-text.ts'

interface RollupRow {
  readonly span_ms: number
  readonly start_at: number
  readonly resource: string
  readonly dimension: string
  readonly result: string
  readonly region: string
  readonly count: number
}

/** Totals in a database. */
export class SqlRollupTable implements RollupTable {
  readonly #driver: SqlDriver

  constructor(driver: SqlDriver) {
    this.#driver = driver
  }

  async add(rollups: readonly Rollup[]): Promise<void> {
    if (rollups.length === 0) return
    await this.#driver.transaction(async (transaction) => {
      for (const { spanMs, startAt, resource, dimension, result, region, count } of rollups) {
        await transaction.query(
          `INSERT INTO rollups (span_ms, start_at, resource, dimension, result, region, count)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (span_ms, start_at, resource, dimension, result, region)
            DO UPDATE SET count = rollups.count + excluded.count`,
          [spanMs, startAt, ...[resource, dimension, result, region].map(storedText), count],
        )
      }
    })
  }

  async list({ spanMs, from, to }: RollupFilter): Promise<readonly Rollup[]> {
    const rows = await this.#driver.query<RollupRow>(
      `SELECT span_ms, start_at, resource, dimension, result, region, count FROM rollups
        WHERE span_ms = ? AND start_at >= ? AND start_at < ?
        ORDER BY start_at, resource, dimension, result, region`,
      [spanMs, from, to],
    )
    return rows.map((row) => ({
      startAt: row.start_at,
      spanMs: row.span_ms,
      resource: originalText(row.resource),
      dimension: originalText(row.dimension),
      result: originalText(row.result),
      region: originalText(row.region),
      count: row.count,
    }))
  }

  async removeBefore(spanMs: number, before: number): Promise<void> {
    await this.#driver.transaction(async (transaction) => {
      await transaction.query('DELETE FROM rollups WHERE span_ms = ? AND start_at < ?', [spanMs, before])
    })
  }
}
