import { type Random, SluiceError, type Timers } from '@sluice/core'
import type { Platform } from '../../platform.ts'
import { Backoff, pause } from '../../retry-backoff.ts'
import type { SqlDriver, SqlRow, SqlSession, SqlTarget, SqlTransaction, SqlValue } from '../sql-driver.ts'
import { isLocked, SqliteConnection, sqliteError } from './sqlite-connection.ts'
import { SqliteListener } from './sqlite-listener.ts'

/** A database that ends with the process. */
const IN_MEMORY = ':memory:'

const FIRST_RETRY_MS = 4
const LONGEST_RETRY_MS = 32

/** So many rows take long enough that others in this process should have a turn. */
const MANY_ROWS = 500

/** How a SQLite database is used. */
export interface SqliteOptions {
  /** A file, made when it is not there; or {@link IN_MEMORY}. */
  readonly path: string
  /** Longest wait for other processes that write, in milliseconds. */
  readonly deadlineMs: number
  /** Milliseconds between two looks for what other processes have changed. */
  readonly pollMs: number
  readonly platform: Platform
  readonly random: Random
}

/**
 * A SQLite file through the module built into Node. Several processes and threads may use one file, on a local disk, at the
 * same time. Statements run in this thread and block it, for fractions of a millisecond; waiting for a lock does not. After
 * each call everything else in this process has a turn, as with a database that has to be waited for.
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
  /** For reading besides a transaction under way; a database in memory has only the one connection. */
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
  /** What uses the writing connection takes turns: a transaction goes over several turns of the event loop. */
  readonly #turns = new TaskQueue()
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
        ? await this.#turns.run(() => this.#retry.run(() => this.#writer.all(sql, values)))
        : await this.#retry.run(() => reader.all(sql, values))
    await this.#options.platform.nextTurn()
    return rows as readonly R[]
  }

  async transaction<T>(work: (transaction: SqlTransaction) => Promise<T>): Promise<T> {
    this.#requireOpen()
    const transaction = new SqliteTransaction(this.#writer, this.#options)
    const result = await this.#turns.run(() => this.#attempt(transaction, work))
    if (transaction.hasNotified) this.#listener.changedHere()
    await this.#options.platform.nextTurn()
    return result
  }

  async #attempt<T>(transaction: SqliteTransaction, work: (transaction: SqlTransaction) => Promise<T>): Promise<T> {
    // At once the one who may write: a transaction that reads first could find later that another was faster.
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
    this.#closing ??= this.#turns.run(() => {
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

/** Tries again while another connection holds a lock, without blocking this thread, until the deadline. */
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

/** Runs tasks one after another, in the order they came. */
class TaskQueue {
  #last: Promise<unknown> = Promise.resolve()

  /** Resolves or rejects as the task does, which begins when all before it have ended. */
  run<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#last.then(task)
    this.#last = result.catch(() => undefined)
    return result
  }
}
