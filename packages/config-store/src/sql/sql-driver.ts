import { SluiceError } from '@sluice/core'

/** Supported databases. */
export type SqlDialect = 'sqlite' | 'postgres'

/** A column value: text, an integer up to 2^53, or NULL. */
export type SqlValue = string | number | null

/** A row, by column name. */
export type SqlRow = Readonly<Record<string, SqlValue>>

/** The target of a bulk insert. */
export interface SqlTarget {
  readonly table: string
  /** The written columns, with their PostgreSQL types. */
  readonly columns: readonly { readonly name: string; readonly type: 'text' | 'bigint' }[]
  /** Primary key: an existing row with this key is updated. Empty for tables that rows are only added to. */
  readonly key: readonly string[]
}

/** Runs statements: the database itself, or an open transaction. */
export interface SqlSession {
  readonly dialect: SqlDialect
  /** Runs one statement, with `?` for each value. Resolves with its rows. */
  query<R = SqlRow>(sql: string, values?: readonly SqlValue[]): Promise<readonly R[]>
}

/** An open transaction. Its changes are invisible to others until it is committed. */
export interface SqlTransaction extends SqlSession {
  /** Inserts or updates rows, with values in the order of the columns. Keys must be unique within one call. */
  putRows(target: SqlTarget, rows: readonly (readonly SqlValue[])[]): Promise<void>
  /** Notifies all listeners when the transaction is committed. */
  notify(): Promise<void>
}

/** Options of {@link SqlDriver.transaction}. */
export interface TransactionOptions {
  /** Statement timeout in milliseconds. Default: that of the driver. */
  readonly deadlineMs?: number
}

/** Callbacks of {@link SqlDriver.listen}. */
export interface ChangeListener {
  readonly changed: () => void
  readonly lost: (error: unknown) => void
}

/** Why a database rejects writes, and what to do. */
const NOT_WRITABLE = {
  full: ['its disk is full', 'Free some space, or give it more.'],
  'read-only': ['it is read-only', 'Name the primary server, or let this process write to the file.'],
} as const

/** The error for a reachable database that rejects writes. It names no server, because clients see it. */
export function notWritable(why: keyof typeof NOT_WRITABLE, cause: unknown): SluiceError {
  const [reason, action] = NOT_WRITABLE[why]
  return new SluiceError('SLUICE_CONFIG_NOT_WRITABLE', {
    problem: `the configuration database refuses to write: ${reason}`,
    action: `Nothing was changed. ${action}`,
    cause,
  })
}

/**
 * A database. Failures are `SLUICE_CONFIG_UNAVAILABLE` with the cause, or `SLUICE_CONFIG_NOT_WRITABLE`; a violated
 * constraint is `SLUICE_CONFLICT`; any call after `close` is `SLUICE_CLOSED`.
 */
export interface SqlDriver extends SqlSession {
  /**
   * Runs `work` in a write transaction and commits it, or rolls back and passes the error on. Concurrent transactions
   * of one driver are serialized. `work` may be run again from the beginning if the database asks for it. It must use
   * the transaction only, not the driver.
   */
  transaction<T>(work: (transaction: SqlTransaction) => Promise<T>, options?: TransactionOptions): Promise<T>
  /**
   * Calls `changed` soon after any node commits a transaction that notified. Calls `lost` whenever notifications may
   * have been lost, and `changed` once it listens again. Call the returned function to stop.
   */
  listen(changed: () => void, lost: (error: unknown) => void): Promise<() => Promise<void>>
  /** Waits for open transactions, and releases all resources. Idempotent. */
  close(): Promise<void>
}
