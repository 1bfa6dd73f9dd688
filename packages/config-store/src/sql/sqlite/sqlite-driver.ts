import { type Random, SluiceError, type Timers } from '@sluice/core'
import type { Platform } from '../../clock-and-random.ts'
import { Backoff, pause } from '../../retry-backoff.ts'
import type { SqlDriver, SqlRow, SqlSession, SqlTarget, SqlTransaction, SqlValue } from '../sql-driver.ts'
import { isLocked, SqliteConnection, sqliteError } from './sqlite-connection.ts'
import { SqliteListener } from './sqlite-listener.ts'

/** An in-memory database. */
const IN_MEMORY = ':memory:'

const FIRST_RETRY_MS = 4
const LONGEST_RETRY_MS = 32

/** After this many rows, the driver yields to the event loop. */
const MANY_ROWS = 500

/** Options of {@link openSqlite}. */
export interface SqliteOptions {
  /** Path of the file, created if it does not exist; or {@link IN_MEMORY}. */
  readonly path: string
  /** Maximum time in milliseconds to wait for other writers. */
  readonly deadlineMs: number
  /** Interval in milliseconds of polling for changes by other processes. */
  readonly pollMs: number
  readonly platform: Platform
  readonly random: Random
}

/**
 * Opens a SQLite database with Node's built-in module. Several processes and threads can use one file on a local disk.
 * Statements block this thread for fractions of a millisecond; waiting for a lock does not block it. Each call yields
 * to the event loop, as with a remote database.
 */
export async function openSqlite(options: SqliteOptions): Promise<SqlDriver> {
  const { path } = options
  const retry = new LockRetry(options)
  const writer = await retry.run(() => new SqliteConnection(path))
  try {
    const reader = path === IN_MEMORY ? undefined : await retry.run(() => new SqliteConnection(path))
    return new SqliteDriver(options, { writer, reader, retry })
  } catch (error) {
    writer.close()
    throw error
  }
}

interface Connections {
  readonly writer: SqliteConnection
  /** For reads during a transaction. An in-memory database has a single connection. */
  readonly reader: SqliteConnection | undefined
  readonly retry: LockRetry
}

class SqliteDriver implements SqlDriver {
  readonly dialect = 'sqlite'
  readonly #options: SqliteOptions
  readonly #writer: SqliteConnection
  readonly #reader: SqliteConnection | undefined
  readonly #retry: LockRetry
  readonly #listener: SqliteListener
  /** Serializes the users of the write connection: a transaction spans several turns of the event loop. */
  readonly #tasks = new TaskQueue()
  #closing: Promise<void> | undefined

  constructor(options: SqliteOptions, { writer, reader, retry }: Connections) {
    this.#options = options
    this.#writer = writer
    this.#reader = reader
    this.#retry = retry
    this.#listener = new SqliteListener({
      path: reader === undefined ? undefined : options.path,
      pollMs: options.pollMs,
      timers: options.platform.backgroundTimers,
    })
  }

  async query<R = SqlRow>(sql: string, values: readonly SqlValue[] = []): Promise<readonly R[]> {
    this.#requireOpen()
    const reader = this.#reader
    const rows =
      reader === undefined
        ? await this.#tasks.run(() => this.#retry.run(() => this.#writer.all(sql, values)))
        : await this.#retry.run(() => reader.all(sql, values))
    await this.#options.platform.nextTurn()
    return rows as readonly R[]
  }

  async transaction<T>(work: (transaction: SqlTransaction) => Promise<T>): Promise<T> {
    this.#requireOpen()
    const transaction = new SqliteTransaction(this.#writer, this.#options)
    const result = await this.#tasks.run(() => this.#attempt(transaction, work))
    if (transaction.hasNotified) this.#listener.changedHere()
    await this.#options.platform.nextTurn()
    return result
  }

  async #attempt<T>(transaction: SqliteTransaction, work: (transaction: SqlTransaction) => Promise<T>): Promise<T> {
    // Takes the write lock immediately: a transaction that reads first could fail later because another one was faster.
    await this.#retry.run(() => this.#writer.all('BEGIN IMMEDIATE'))
    try {
      const result = await work(transaction)
      this.#writer.all('COMMIT')
      return result
    } catch (error) {
      this.#writer.rollback()
      throw sqliteError(error, this.#options.path)
    }
  }

  async listen(changed: () => void, lost: (error: unknown) => void): Promise<() => Promise<void>> {
    this.#requireOpen()
    return await this.#retry.run(() => this.#listener.add({ changed, lost }))
  }

  close(): Promise<void> {
    this.#closing ??= this.#tasks.run(() => {
      this.#listener.close()
      this.#reader?.close()
      this.#writer.close()
      return Promise.resolve()
    })
    return this.#closing
  }

  #requireOpen(): void {
    if (this.#closing === undefined) return
    throw new SluiceError('SLUICE_CLOSED', {
      problem: 'the configuration store was used after close()',
      action: 'Open another one.',
    })
  }
}

class SqliteTransaction implements SqlTransaction {
  readonly dialect: SqlSession['dialect'] = 'sqlite'
  readonly #connection: SqliteConnection
  readonly #options: SqliteOptions
  #hasNotified = false

  constructor(connection: SqliteConnection, options: SqliteOptions) {
    this.#connection = connection
    this.#options = options
  }

  get hasNotified(): boolean {
    return this.#hasNotified
  }

  query<R = SqlRow>(sql: string, values: readonly SqlValue[] = []): Promise<readonly R[]> {
    return this.#settle(() => this.#connection.all(sql, values) as readonly R[])
  }

  async putRows(target: SqlTarget, rows: readonly (readonly SqlValue[])[]): Promise<void> {
    await this.#settle(() => this.#connection.putRows(target, rows))
    if (rows.length >= MANY_ROWS) await this.#options.platform.nextTurn()
  }

  notify(): Promise<void> {
    this.#hasNotified = true
    return Promise.resolve()
  }

  #settle<T>(run: () => T): Promise<T> {
    try {
      return Promise.resolve(run())
    } catch (error) {
      return Promise.reject(sqliteError(error, this.#options.path))
    }
  }
}

/** Retries while another connection holds a lock, without blocking this thread, until the deadline. */
class LockRetry {
  readonly #path: string
  readonly #deadlineMs: number
  readonly #timers: Timers
  readonly #random: Random

  constructor({ path, deadlineMs, platform, random }: SqliteOptions) {
    this.#path = path
    this.#deadlineMs = deadlineMs
    this.#timers = platform.timers
    this.#random = random
  }

  async run<T>(attempt: () => T): Promise<T> {
    const backoff = new Backoff({ firstMs: FIRST_RETRY_MS, longestMs: LONGEST_RETRY_MS, random: this.#random })
    let waitedMs = 0
    for (;;) {
      try {
        return attempt()
      } catch (error) {
        if (!isLocked(error) || waitedMs >= this.#deadlineMs) throw sqliteError(error, this.#path)
      }
      const delayMs = backoff.nextMs()
      await pause(this.#timers, delayMs)
      waitedMs += delayMs
    }
  }
}

/** Runs tasks one after the other, in order of arrival. */
class TaskQueue {
  #last: Promise<unknown> = Promise.resolve()

  /** Runs the task when all previous ones have ended. Settles as the task does. */
  run<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#last.then(task)
    this.#last = result.catch(() => undefined)
    return result
  }
}
