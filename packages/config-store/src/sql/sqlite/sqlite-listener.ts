import type { Timers } from '@sluice/core'
import type { ChangeListener } from '../sql-driver.ts'
import { SqliteConnection, sqliteError } from './sqlite-connection.ts'

/** Options of {@link SqliteListener}. */
export interface SqliteListenerOptions {
  /** Undefined for an in-memory database: no other process can change it. */
  readonly path: string | undefined
  readonly pollMs: number
  readonly timers: Timers
}

/**
 * Detects changes of a SQLite file. SQLite cannot notify, but counts the commits of other connections, which is cheap
 * to poll. Changes of this driver are reported immediately.
 */
export class SqliteListener {
  readonly #options: SqliteListenerOptions
  readonly #listeners = new Set<ChangeListener>()
  #connection: SqliteConnection | undefined
  #dataVersion = 0
  #cancel: (() => void) | undefined

  constructor(options: SqliteListenerOptions) {
    this.#options = options
  }

  /** Throws SQLite's error if the file cannot be opened. */
  add(listener: ChangeListener): () => Promise<void> {
    if (this.#connection === undefined && this.#options.path !== undefined) this.#start(this.#options.path)
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.close()
      return Promise.resolve()
    }
  }

  /** Reports a commit of this process. */
  changedHere(): void {
    for (const { changed } of [...this.#listeners]) changed()
  }

  close(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#connection?.close()
    this.#connection = undefined
  }

  #start(path: string): void {
    const connection = new SqliteConnection(path)
    this.#dataVersion = readDataVersion(connection)
    this.#connection = connection
    this.#schedule()
  }

  #schedule(): void {
    this.#cancel = this.#options.timers.schedule(this.#options.pollMs, () => this.#poll())
  }

  #poll(): void {
    if (this.#connection === undefined) return
    this.#schedule()
    try {
      const dataVersion = readDataVersion(this.#connection)
      if (dataVersion === this.#dataVersion) return
      this.#dataVersion = dataVersion
    } catch (error) {
      for (const { lost } of [...this.#listeners]) lost(sqliteError(error, this.#options.path ?? ''))
      // The next poll must find a difference.
      this.#dataVersion = 0
      return
    }
    this.changedHere()
  }
}

/** Changes with every commit by another connection. Never 0. */
function readDataVersion(connection: SqliteConnection): number {
  return Number(connection.all('PRAGMA data_version')[0]?.['data_version'])
}
