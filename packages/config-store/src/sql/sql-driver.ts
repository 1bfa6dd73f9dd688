import { SluiceError } from '@sluice/core'

/** The databases that are spoken to. */
export type SqlDialect = 'sqlite' | 'postgres'

/** What a column holds: text, a whole number up to 2^53, or nothing. */
export type SqlValue = string | number | null

/** A row, by the names of its columns. */
export type SqlRow = Readonly<Record<string, SqlValue>>

/** Where many rows are put at once. */
export interface SqlTarget {
  readonly table: string
  /** All columns that are written, with their types in PostgreSQL. */
  readonly columns: readonly { readonly name: string; readonly type: 'text' | 'bigint' }[]
  /** Columns that make a row: where one is there already, the others are replaced. Empty for rows that are only added. */
  readonly key: readonly string[]
}

/** Whoever may run statements: the database itself, or a transaction under way. */
export interface SqlSession {
  readonly dialect: SqlDialect
  /** Runs one statement, with `?` for each value, and resolves with the rows it gives. */
  query<R = SqlRow>(sql: string, values?: readonly SqlValue[]): Promise<readonly R[]>
}

/** A transaction under way. Nothing of it is seen by others before it ends well. */
export interface SqlTransaction extends SqlSession {
  /** Puts rows, each with its values in the order of the columns. No two of them may have the same key. */
  putRows(target: SqlTarget, rows: readonly (readonly SqlValue[])[]): Promise<void>
  /** Tells all who listen that something has changed, once this is committed. */
  notify(): Promise<void>
}

/** What {@link SqlDriver.transaction} may be told. */
export interface TransactionOptions {
  /** Milliseconds that a statement may take, when that is not what the database was opened with. */
  readonly deadlineMs?: number
}

/** Callbacks of {@link SqlDriver.listen}. */
export interface ChangeListener {
  readonly changed: () => void
  readonly lost: (error: unknown) => void
}

/** Why a database does not write, and what to do. */
const NOT_WRITABLE = {
  full: ['its disk is full', 'Free some space, or give it more.'],
  'read-only': ['it is read-only', 'Name the primary server, or let this process write to the file.'],
} as const

/** The error for a database that answers, and refuses to write. It names no server: clients may be told. */
export function notWritable(why: keyof typeof NOT_WRITABLE, cause: unknown): SluiceError {
  const [reason, action] = NOT_WRITABLE[why]
  return new SluiceError('SLUICE_CONFIG_NOT_WRITABLE', {
    problem: `the configuration database refuses to write: ${reason}`,
    action: `Nothing was changed. ${action}`,
    cause,
  })
}

/**
 * A database. Whatever goes wrong with it is `SLUICE_CONFIG_UNAVAILABLE` with the cause, or `SLUICE_CONFIG_NOT_WRITABLE`; a row that
 * another one stands in the way of is `SLUICE_CONFLICT`; after `close`, `SLUICE_CLOSED`.
 */
export interface SqlDriver extends SqlSession {
  /**
   * Runs `work` in a transaction that writes, and commits what it did; rolls back and passes on what it throws. Under way on
   * one driver, several may take turns. `work` may be run again from the beginning when the database asks for it. In it,
   * only the transaction may be used, not the driver.
   */
  transaction<T>(work: (transaction: SqlTransaction) => Promise<T>, options?: TransactionOptions): Promise<T>
  /**
   * Calls `changed` soon after a transaction that notified was committed, by anybody. `lost` is called whenever it is known
   * that some may have been missed; after that, `changed` is called once it listens again. The function returned ends it.
   */
  listen(changed: () => void, lost: (error: unknown) => void): Promise<() => Promise<void>>
  /** Waits for the transactions under way, and frees everything. May be called again. */
  close(): Promise<void>
}
