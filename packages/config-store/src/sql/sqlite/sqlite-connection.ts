import { closeSync, openSync } from 'node:fs'
import type { StatementSync } from 'node:sqlite'
import { DatabaseSync } from 'node:sqlite'
import { SluiceError } from '@sluice/core'
import type { SqlRow, SqlTarget, SqlValue } from '../sql-driver.ts'
import { notWritable } from '../sql-driver.ts'

/**
 * Time in milliseconds that SQLite itself waits for a lock. Short, because it blocks this process: longer waits are
 * made outside SQLite.
 */
const LOCK_WAIT_MS = 10

/** Maximum number of prepared statements. There are few, but those with value lists have several lengths. */
const MOST_STATEMENTS = 256

const PRAGMAS = [
  // Readers and writers do not block each other.
  'journal_mode = WAL',
  // A commit survives a crash of the process. A crash of the machine can lose the last commits, but never corrupts the
  // file.
  'synchronous = NORMAL',
  'foreign_keys = ON',
  // KiB
  'cache_size = -16384',
  // A large import must not leave a large journal behind.
  'journal_size_limit = 67108864',
]

const BUSY = 5
const LOCKED = 6
const READ_ONLY = 8
const FULL = 13
const CANNOT_OPEN = 14
const NOT_A_DATABASE = 26

/** Extended codes of violated unique and foreign key constraints. */
const CONFLICTS: readonly unknown[] = [1555, 2067, 2579, 787]

/** One connection to a file or in-memory database. All calls block, and throw SQLite's errors. */
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

  /** Rolls back the transaction, unless it has already ended. */
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
 * Creates the database file readable only by this user. SQLite would make it readable by everybody; its journal files
 * get the same mode.
 */
function createPrivateFile(path: string): void {
  try {
    closeSync(openSync(path, 'ax', 0o600))
  } catch {
    // It exists. If it cannot be created, SQLite reports that when opening it.
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

/** Whether another connection holds a lock, which may be released soon. */
export function isLocked(error: unknown): boolean {
  const code = resultCode(error)
  return code === BUSY || code === LOCKED
}

/** Converts an error of SQLite to a SluiceError. Other errors are returned unchanged. */
export function sqliteError(error: unknown, path: string): unknown {
  const code = resultCode(error)
  if (code === undefined) return error
  if (CONFLICTS.includes((error as { errcode: unknown }).errcode)) {
    return new SluiceError('SLUICE_CONFLICT', {
      problem: 'the change conflicts with the content of the database',
      action: 'Read the current state, and repeat the change.',
      cause: error,
    })
  }
  if (code === FULL) return notWritable('full', error)
  if (code === READ_ONLY) return notWritable('read-only', error)
  return new SluiceError('SLUICE_CONFIG_UNAVAILABLE', {
    problem: `the SQLite database ${path} cannot be used: ${(error as Error).message}`,
    action: ACTIONS[code] ?? 'Check the file and its disk.',
    cause: error,
  })
}

const ACTIONS: Readonly<Record<number, string>> = {
  [BUSY]: 'Another process holds the write lock: retry, or stop that process.',
  [LOCKED]: 'Another process holds the write lock: retry, or stop that process.',
  [CANNOT_OPEN]: 'The folder must exist and be writable for this process.',
  [NOT_A_DATABASE]: 'Use another path: this file is not a SQLite database.',
}

/** The primary result code, without the extended bits. */
function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error && 'errcode' in error && typeof error.errcode === 'number')) return undefined
  return error.errcode & 0xff
}
