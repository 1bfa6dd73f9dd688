import type { Timers } from '@sluice/core'
import type { PoolClient } from 'pg'
import type { SqlDialect, SqlRow, SqlTarget, SqlTransaction, SqlValue } from '../sql-driver.ts'
import { StatementError } from './postgres-errors.ts'
import { CHANNEL } from './postgres-listener.ts'

/** Time for the server's own timeout to reply before the connection is closed. */
const ANSWER_GRACE_MS = 500

/** Options of {@link PostgresSession}. */
export interface SessionOptions {
  readonly deadlineMs: number
  /** Whether the deadline differs from that of the connection. */
  readonly isOwnDeadline: boolean
  readonly timers: Timers
}

/** One connection, used by one caller. Failed statements throw `StatementError`. */
export class PostgresSession implements SqlTransaction {
  readonly dialect: SqlDialect = 'postgres'
  readonly #client: PoolClient
  readonly #options: SessionOptions
  #isUsable = true

  constructor(client: PoolClient, options: SessionOptions) {
    this.#client = client
    this.#options = options
  }

  /** Whether the connection stays usable: the server has replied to everything. */
  get isUsable(): boolean {
    return this.#isUsable
  }

  async query<R = SqlRow>(sql: string, values: readonly SqlValue[] = []): Promise<readonly R[]> {
    return (await this.#run(numbered(sql), values)).rows as R[]
  }

  async putRows(target: SqlTarget, rows: readonly (readonly SqlValue[])[]): Promise<void> {
    if (rows.length === 0) return
    const { text, values } = putStatement(target, rows)
    await this.#run(text, values)
  }

  async notify(): Promise<void> {
    await this.#run(`NOTIFY ${CHANNEL}`)
  }

  /** Runs `work` between BEGIN and COMMIT, or ROLLBACK if it throws. */
  async transaction<T>(work: (transaction: SqlTransaction) => Promise<T>): Promise<T> {
    await this.#run('BEGIN')
    try {
      if (this.#options.isOwnDeadline) await this.#run(`SET LOCAL statement_timeout = ${this.#options.deadlineMs}`)
      const result = await work(this)
      await this.#run('COMMIT')
      return result
    } catch (error) {
      // The original error counts. If the rollback fails too, the connection is closed.
      if (this.#isUsable) await this.#run('ROLLBACK').catch(() => undefined)
      throw error
    }
  }

  async #run(text: string, values: readonly unknown[] = []): Promise<{ readonly rows: readonly unknown[] }> {
    const { deadlineMs, timers } = this.#options
    // The server has the same deadline. When it does not even say so, only the connection is left to be given up.
    const cancel = timers.schedule(deadlineMs + ANSWER_GRACE_MS, () => this.#client.connection.stream.destroy())
    try {
      return await this.#client.query(text, [...values])
    } catch (error) {
      const failure = new StatementError(text, { cause: error })
      if (!failure.isConnectionUsable || text === 'ROLLBACK') this.#isUsable = false
      throw failure
    } finally {
      cancel()
    }
  }
}

const numberedStatements = new Map<string, string>()

/** With `$1`, `$2`, ... for the question marks. Statements are few, and are kept. */
function numbered(sql: string): string {
  const known = numberedStatements.get(sql)
  if (known !== undefined) return known
  let count = 0
  const text = sql.replaceAll('?', () => `$${++count}`)
  numberedStatements.set(sql, text)
  return text
}

interface Statement {
  readonly text: string
  readonly values: readonly (SqlValue | readonly SqlValue[])[]
}

/** All rows in one statement, column by column; a column that is the same in all of them is sent once. */
function putStatement({ table, columns, key }: SqlTarget, rows: readonly (readonly SqlValue[])[]): Statement {
  const names = columns.map(({ name }) => name)
  const values = columns.map((_, index) => columnOf(rows, index))
  const constants = values.map((value) => !Array.isArray(value))
  const selected = columns.map(({ name, type }, index) =>
    constants[index] ? `$${index + 1}::${type}` : `given.${name}`,
  )
  const given = columns.flatMap(({ type }, index) => (constants[index] ? [] : [`$${index + 1}::${type}[]`]))
  const givenNames = names.filter((_, index) => !constants[index])
  const from = given.length === 0 ? '' : ` FROM UNNEST(${given.join(', ')}) AS given (${givenNames.join(', ')})`
  const replaced = names.filter((name) => !key.includes(name)).map((name) => `${name} = excluded.${name}`)
  const replace = key.length === 0 ? '' : ` ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${replaced.join(', ')}`
  return { text: `INSERT INTO ${table} (${names.join(', ')}) SELECT ${selected.join(', ')}${from}${replace}`, values }
}

function columnOf(rows: readonly (readonly SqlValue[])[], index: number): SqlValue | readonly SqlValue[] {
  const first = rows[0]?.[index] ?? null
  return rows.every((row) => row[index] === first) ? first : rows.map((row) => row[index] ?? null)
}
