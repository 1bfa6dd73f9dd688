import type { NumberLeaseRequest, NumberLeases } from '../../number-leases.ts'
import type { SqlDriver, SqlTransaction } from '../sql-driver.ts'

interface LeaseRow {
  readonly number: number
  readonly holder: string
  readonly until: number
}

/** Numbers in a database. Whether a lease is over is told by the clock of whoever asks: leases should be minutes, not seconds. */
export class SqlNumberLeases implements NumberLeases {
  readonly #driver: SqlDriver
  readonly #nowMs: () => number

  constructor(driver: SqlDriver, nowMs: () => number) {
    this.#driver = driver
    this.#nowMs = nowMs
  }

  async take(request: NumberLeaseRequest): Promise<number | undefined> {
    const { name, holder, leaseMs } = request
    return await this.#driver.transaction(async (transaction) => {
      await lock(transaction)
      const rows = await transaction.query<LeaseRow>(
        'SELECT number, holder, until FROM number_leases WHERE name = ? ORDER BY number',
        [name],
      )
      const now = this.#nowMs()
      const number = ownOrFree(rows, request, now)
      if (number === undefined) return undefined
      await transaction.query(
        `INSERT INTO number_leases (name, number, holder, until) VALUES (?, ?, ?, ?)
          ON CONFLICT (name, number) DO UPDATE SET holder = excluded.holder, until = excluded.until`,
        [name, number, holder, now + leaseMs],
      )
      return number
    })
  }

  async release({ name, holder }: Pick<NumberLeaseRequest, 'name' | 'holder'>): Promise<void> {
    await this.#driver.transaction(async (transaction) => {
      await transaction.query('DELETE FROM number_leases WHERE name = ? AND holder = ?', [name, holder])
    })
  }
}

/** Two who ask at once must not find the same number free. SQLite lets only one write at a time anyway. */
async function lock(transaction: SqlTransaction): Promise<void> {
  if (transaction.dialect === 'postgres') await transaction.query('LOCK TABLE number_leases IN EXCLUSIVE MODE')
}

function ownOrFree(rows: readonly LeaseRow[], request: NumberLeaseRequest, now: number): number | undefined {
  const { count, holder, wanted, onlyWanted = false } = request
  const taken = new Set(rows.filter((row) => row.until > now && row.holder !== holder).map(({ number }) => number))
  if (onlyWanted) return wanted === undefined || taken.has(wanted) ? undefined : wanted
  const own = rows.find((row) => row.holder === holder)
  if (own !== undefined) return own.number
  if (wanted !== undefined && !taken.has(wanted)) return wanted
  for (let number = 0; number < count; number++) if (!taken.has(number)) return number
  return undefined
}
