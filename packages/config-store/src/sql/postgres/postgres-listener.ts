import type { Random, Timers } from '@sluice/core'
import type { Client } from 'pg'
import { Backoff } from '../../retry-backoff.ts'
import type { ChangeListener } from '../sql-driver.ts'
import { StatementError } from './postgres-errors.ts'

/** The channel of LISTEN and NOTIFY. Channels are per database. */
export const CHANNEL = 'sluice_config'

const FIRST_RETRY_MS = 100
const LONGEST_RETRY_MS = 5000
const CLOSE_GRACE_MS = 1000

/** Options of {@link PostgresListener}. */
export interface PostgresListenerOptions {
  readonly createClient: () => Client
  /** Interval in milliseconds of the check that the server is still there. */
  readonly keepaliveMs: number
  /** Timeout of a reply in milliseconds. */
  readonly deadlineMs: number
  readonly timers: Timers
  readonly random: Random
}

/**
 * A connection that receives notifications, opened for the first listener and closed after the last.
 *
 * It is either listening, connecting (`#opening`), or waiting for the next attempt (`#cancelRetry`). When it breaks,
 * `lost` is called; when it is restored, `changed`.
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

  /** Resolves when it listens. Throws `StatementError` if the server is unreachable now. */
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

  /** Closes the connection. No listener is called any more. */
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
    // A server that hangs does not close connections.
    const cancel = this.#options.timers.schedule(CLOSE_GRACE_MS, () => client.connection.stream.destroy())
    await client.end()
    cancel()
  }
}

function ignore(): void {
  // Nothing to do.
}
