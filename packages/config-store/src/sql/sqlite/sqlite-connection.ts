import { closeSync, openSync } from 'node:fs'
import type { StatementSync } from 'node:sqlite'
import { DatabaseSync } from 'node:sqlite'
import { SluiceError } from '@sluice/core'
import type { SqlRow, SqlTarget, SqlValue } from '../sql-driver.ts'
import { notWritable } from '../sql-driver.ts'

/**
 * Milliseconds in which SQLite itself waits for a lock. Short, because this process stands still meanwhile: longer waits are
 * made outside of SQLite.
 */
const LOCK_WAIT_MS = 10

/** Statements are few: those with a list of values come in several lengths. */
const MOST_STATEMENTS = 256

const PRAGMAS = [
  // Readers do not wait for writers, nor the other way round.
  'journal_mode = WAL',
  // A commit survives a crash of the process; with WAL, a crash of the machine costs the last ones, never the file.
  'synchronous = NORMAL',
  'foreign_keys = ON',
  // KiB
  'cache_size = -16384',
  // A large import does not leave a large journal behind.
  'journal_size_limit = 67108864',
]

const BUSY = 5
const LOCKED = 6
const READ_ONLY = 8
const FULL = 13
const CANNOT_OPEN = 14
const NOT_A_DATABASE = 26

/** Extended codes: a row that is there already, or one that must be there and is not. */
const CONFLICTS: readonly unknown[] = [1555, 2067, 2579, 787]

/** One connection to a file, or to a database in memory that ends with it. All calls block, and throw what SQLite throws. */
export class SqliteConnection {
  readonly #database: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()

  constructor(path: string) {
    if (path !== ':memory:') createPrivateFile(path)
    this.#database = new DatabaseSync(path, { timeout: LOCK_WAIT_MS })
    try {
      for (const pragma of PRAGMAS) this.#database.exec(`PRAGMA ${pragma}`)
    } catch (error) {
      this.#database.close()
      throw error
    }
  }

  all(sql: string, values: readonly SqlValue[] = []): readonly SqlRow[] {
    return this.#statement(sql).all(...values) as SqlRow[]
  }

  putRows(target: SqlTarget, rows: readonly (readonly SqlValue[])[]): void {
    const statement = this.#statement(putStatement(target))
    for (const row of rows) statement.run(...row)
  }

  /** Ends a transaction that may have ended already, by itself. */
  rollback(): void {
    if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
  }

  close(): void {
    this.#statements.clear()
    this.#database.close()
  }

  #statement(sql: string): StatementSync {
    const known = this.#statements.get(sql)
    if (known !== undefined) return known
    if (this.#statements.size >= MOST_STATEMENTS) this.#statements.clear()
    const statement = this.#database.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }
}

/**
 * Makes the file of a database for this user alone, unless it is there. SQLite would make it readable for everybody; it gives the
 * files that it keeps beside it the same mode.
 */
function createPrivateFile(path: string): void {
  try {
    closeSync(openSync(path, 'ax', 0o600))
  } catch {
    // It is there. If it cannot be made, SQLite says so when it opens it.
  }
}

function putStatement({ table, columns, key }: SqlTarget): string {
  const names = columns.map(({ name }) => name)
  const values = names.map(() => '?').join(', ')
  const insert = `INSERT INTO ${table} (${names.join(', ')}) VALUES (${values})`
  if (key.length === 0) return insert
  const replaced = names.filter((name) => !key.includes(name)).map((name) => `${name} = excluded.${name}`)
  return `${insert} ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${replaced.join(', ')}`
}

/** Whether another connection holds a lock, which may be gone soon. */
export function isLocked(error: unknown): boolean {
  const code = resultCode(error)
  return code === BUSY || code === LOCKED
}

/** What is thrown for what SQLite throws; anything else is passed on. */
export function sqliteError(error: unknown, path: string): unknown {
  const code = resultCode(error)
  if (code === undefined) return error
  if (CONFLICTS.includes((error as { errcode: unknown }).errcode)) {
    return new SluiceError('SLUICE_CONFLICT', {
      problem: 'the change does not fit to what is in the database',
      action: 'Read again what is there, and repeat the change.',
      cause: error,
    })
  }
  if (code === FULL) return notWritable('full', error)
  if (code === READ_ONLY) return notWritable('read-only', error)
  return new SluiceError('SLUICE_CONFIG_UNAVAILABLE', {
    problem: `the SQLite database ${path} cannot be used: ${(error as Error).message}`,
    action: ACTIONS[code] ?? 'Look at the file and its disk.',
    cause: error,
  })
}

const ACTIONS: Readonly<Record<number, string>> = {
  [BUSY]: 'Another process has been writing for too long: try again, or end it.',
  [LOCKED]: 'Another process has been writing for too long: try again, or end it.',
  [CANNOT_OPEN]: 'Its folder must exist, and this process must be allowed to write to it.',
  [NOT_A_DATABASE]: 'Name another file: this one is something else.',
}

/** The primary result code, without the details that SQLite puts above it. */
function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error && 'errcode' in error && typeof error.errcode === 'number')) return undefined
  return error.errcode & 0xff
}
