import type { Platform } from '../../clock-and-random.ts'
import type {
  DocumentTable,
  NumberLeaseRequest,
  NumberLeases,
  Rollup,
  RollupTable,
  SecretTable,
  StoredDocument,
} from '../../config-store.ts'
import type { SqlDriver, SqlTarget, SqlTransaction } from '../sql-driver.ts'

const SECRET_BYTES = 32

/** Secrets, stored in hexadecimal. */
export class SqlSecretTable implements SecretTable {
  readonly #driver: SqlDriver
  readonly #platform: Pick<Platform, 'randomBytes'>

  constructor(driver: SqlDriver, platform: Pick<Platform, 'randomBytes'>) {
    this.#driver = driver
    this.#platform = platform
  }

  async get(name: string): Promise<Uint8Array> {
    const found = await this.#read(name)
    if (found !== undefined) return found
    const fresh = Buffer.from(this.#platform.randomBytes(SECRET_BYTES)).toString('hex')
    await this.#driver.transaction(async (transaction) => {
      // The first writer wins.
      await transaction.query('INSERT INTO secrets (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING', [name, fresh])
    })
    return (await this.#read(name))!
  }

  async #read(name: string): Promise<Uint8Array | undefined> {
    const [row] = await this.#driver.query<{ value: string }>('SELECT value FROM secrets WHERE name = ?', [name])
    return row === undefined ? undefined : Uint8Array.from(Buffer.from(row.value, 'hex'))
  }
}

interface LeaseRow {
  readonly number: number
  readonly holder: string
  readonly until: number
}

/** Number leases. The reader's clock decides whether a lease has expired: leases should last minutes, not seconds. */
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

/** Two concurrent requests must not find the same number free. SQLite has a single writer anyway. */
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

/** Historical totals. */
export class SqlRollupTable implements RollupTable {
  readonly #driver: SqlDriver

  constructor(driver: SqlDriver) {
    this.#driver = driver
  }

  async put(rows: readonly Rollup[]): Promise<void> {
    if (rows.length === 0) return
    // The last row per span and source wins; a bulk insert requires unique keys.
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

/** Shared documents. */
export class SqlDocumentTable implements DocumentTable {
  readonly #driver: SqlDriver

  constructor(driver: SqlDriver) {
    this.#driver = driver
  }

  async get(name: string): Promise<StoredDocument | undefined> {
    const sql = 'SELECT revision, body FROM documents WHERE name = ?'
    const [row] = await this.#driver.query<StoredDocument>(sql, [name])
    return row === undefined ? undefined : { revision: row.revision, body: row.body }
  }

  async put(name: string, body: string, revision: number): Promise<boolean> {
    return await this.#driver.transaction(async (transaction) => {
      const rows =
        revision === 0
          ? await transaction.query(
              'INSERT INTO documents (name, revision, body) VALUES (?, 1, ?) ON CONFLICT DO NOTHING RETURNING revision',
              [name, body],
            )
          : await transaction.query(
              'UPDATE documents SET body = ?, revision = revision + 1 WHERE name = ? AND revision = ? RETURNING ' +
                'revision',
              [body, name, revision],
            )
      return rows.length > 0
    })
  }
}
