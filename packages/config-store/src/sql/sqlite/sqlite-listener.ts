import type { Timers } from '@sluice/core'
import type { ChangeListener } from '../sql-driver.ts'
import { SqliteConnection, sqliteError } from './sqlite-connection.ts'

/** Where changes are looked for. */
export interface SqliteListenerOptions {
  /** Undefined for a database that only this process has: nobody else can change it. */
  readonly path: string | undefined
  readonly pollMs: number
  readonly timers: Timers
}

/**
 * Finds out that a file was changed: SQLite cannot tell, but counts the commits of others, which is cheap to look at. Changes
 * of this driver are told at once.
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

  /** Throws what SQLite throws when the file cannot be opened. */
  add(listener: ChangeListener): () => Promise<void> {
    if (this.#connection === undefined && this.#options.path !== undefined) this.#start(this.#options.path)
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.close()
      return Promise.resolve()
    }
  }

  /** This process has committed something. */
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
      // Whatever it was, the next look finds a difference.
      this.#dataVersion = 0
      return
    }
    this.changedHere()
  }
}

/** Another number after every commit by another connection. Never 0. */
function readDataVersion(connection: SqliteConnection): number {
  return Number(connection.all('PRAGMA data_version')[0]?.['data_version'])
}
