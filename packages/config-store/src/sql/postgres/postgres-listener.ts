import type { Random, Timers } from '@sluice/core'
import type { Client } from 'pg'
import { Backoff } from '../../retry-backoff.ts'
import type { ChangeListener } from '../sql-driver.ts'
import { StatementError } from './postgres-errors.ts'

/** The channel of LISTEN and NOTIFY. Each database has its own. */
export const CHANNEL = 'sluice_config'

const FIRST_RETRY_MS = 100
const LONGEST_RETRY_MS = 5000
const CLOSE_GRACE_MS = 1000

/** How to listen. */
export interface PostgresListenerOptions {
  readonly createClient: () => Client
  /** Milliseconds between two tries whether the server is still there. */
  readonly keepaliveMs: number
  /** Milliseconds that an answer may take. */
  readonly deadlineMs: number
  readonly timers: Timers
  readonly random: Random
}

/**
 * A connection that waits for notifications, made when the first one listens and ended with the last.
 *
 * It is either listening, or it is being connected (`#opening`), or it waits for the next try (`#cancelRetry`). When it breaks,
 * everybody is told that something may be lost; when it is there again, that something may have changed.
 */
export class PostgresListener {
  readonly #options: PostgresListenerOptions
  readonly #backoff: Backoff
  readonly #listeners = new Set<ChangeListener>()
  #client: Client | undefined
  #opening: Promise<void> | undefined
  #cancelRetry: () => void = ignore
  #cancelKeepalive: () => void = ignore

  constructor(options: PostgresListenerOptions) {
    this.#options = options
    this.#backoff = new Backoff({ firstMs: FIRST_RETRY_MS, longestMs: LONGEST_RETRY_MS, random: options.random })
  }

  /** Resolves when it listens. Throws `StatementError` when the server cannot be reached now. */
  async add(listener: ChangeListener): Promise<() => Promise<void>> {
    this.#listeners.add(listener)
    try {
      if (this.#client === undefined) await this.#open()
    } catch (error) {
      await this.#remove(listener)
      throw error
    }
    return () => this.#remove(listener)
  }

  /** Ends the connection. Nobody is told anything any more. */
  async close(): Promise<void> {
    this.#listeners.clear()
    this.#cancelRetry()
    await this.#opening?.catch(ignore)
    await this.#end()
  }

  async #remove(listener: ChangeListener): Promise<void> {
    this.#listeners.delete(listener)
    if (this.#listeners.size === 0) await this.close()
  }

  #open(): Promise<void> {
    this.#cancelRetry()
    this.#opening ??= this.#connect().finally(() => {
      this.#opening = undefined
    })
    return this.#opening
  }

  async #connect(): Promise<void> {
    const client = this.#options.createClient()
    let failure: unknown
    client.on('error', (error) => {
      failure ??= error
      this.#broken(client, failure)
    })
    client.on('end', () => this.#broken(client, failure ?? new Error('the connection has ended')))
    client.on('notification', () => this.#tellChanged())
    try {
      await client.connect()
      await this.#ask(client, `LISTEN ${CHANNEL}`)
      if (failure !== undefined) throw failure
    } catch (error) {
      client.connection.stream.destroy()
      throw new StatementError('LISTEN', { cause: error })
    }
    this.#client = client
    this.#backoff.reset()
    this.#keepAlive(client)
  }

  #keepAlive(client: Client): void {
    this.#cancelKeepalive = this.#options.timers.schedule(this.#options.keepaliveMs, () => {
      this.#ask(client, 'SELECT 1').then(
        () => {
          if (this.#client === client) this.#keepAlive(client)
        },
        (error: unknown) => this.#broken(client, error),
      )
    })
  }

  async #ask(client: Client, text: string): Promise<void> {
    const cancel = this.#options.timers.schedule(this.#options.deadlineMs, () => client.connection.stream.destroy())
    try {
      await client.query(text)
    } finally {
      cancel()
    }
  }

  #broken(client: Client, error: unknown): void {
    if (this.#client !== client) return
    this.#client = undefined
    this.#cancelKeepalive()
    client.connection.stream.destroy()
    for (const { lost } of [...this.#listeners]) lost(new StatementError('LISTEN', { cause: error }))
    this.#retryLater()
  }

  #retryLater(): void {
    this.#cancelRetry = this.#options.timers.schedule(this.#backoff.nextMs(), () => {
      if (this.#listeners.size === 0) return
      this.#open().then(
        () => this.#tellChanged(),
        () => this.#retryLater(),
      )
    })
  }

  #tellChanged(): void {
    for (const { changed } of [...this.#listeners]) changed()
  }

  async #end(): Promise<void> {
    const client = this.#client
    if (client === undefined) return
    this.#client = undefined
    this.#cancelKeepalive()
    // A server that hangs does not end connections.
    const cancel = this.#options.timers.schedule(CLOSE_GRACE_MS, () => client.connection.stream.destroy())
    await client.end()
    cancel()
  }
}

function ignore(): void {
  // Nothing to do.
}
