import type { Random } from '@sluice/core'
import { SluiceError } from '@sluice/core'
import type { ClientConfig, Pool, PoolClient } from 'pg'
import type { Platform } from '../../clock-and-random.ts'
import { Backoff, pause } from '../../retry-backoff.ts'
import type { SqlDriver, SqlRow, SqlTransaction, SqlValue, TransactionOptions } from '../sql-driver.ts'
import { isWorthRepeating, postgresError, StatementError } from './postgres-errors.ts'
import { PostgresListener } from './postgres-listener.ts'
import { PostgresSession } from './postgres-session.ts'

/** A server that hangs does not close connections. */
const CLOSE_GRACE_MS = 1000
const MAX_ATTEMPTS = 5
/** PostgreSQL's type number of 64-bit integers. */
const INT8 = 20

type PgModule = typeof import('pg')

/** Options of {@link openPostgres}. */
export interface PostgresOptions {
  /** `postgres://user:password@host:port/database`. */
  readonly url: string
  /** Timeout of a connection attempt and of a statement, in milliseconds. */
  readonly deadlineMs: number
  /** Maximum number of connections, not counting the one that listens. */
  readonly connections: number
  /** Interval in milliseconds of the check of the listening connection. */
  readonly keepaliveMs: number
  readonly platform: Platform
  readonly random: Random
}

/** Opens a PostgreSQL database, 13 or later, with the package `pg`, which users install. Connects on first use. */
export async function openPostgres(options: PostgresOptions): Promise<SqlDriver> {
  const place = placeOf(options.url)
  return new PostgresDriver(await loadPg(), options, place)
}

async function loadPg(): Promise<PgModule> {
  try {
    const module = await import('pg')
    // Bundlers that split their output may leave the names of a CommonJS package on its default export alone.
    return 'Pool' in module ? module : (module as { readonly default: PgModule }).default
  } catch (error) {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: 'a PostgreSQL database needs the package "pg", which could not be loaded',
      action: 'Install it: npm install pg',
      cause: error,
    })
  }
}

class PostgresDriver implements SqlDriver {
  readonly dialect = 'postgres'
  readonly #options: PostgresOptions
  readonly #place: string
  readonly #pool: Pool
  readonly #clients = new Set<PoolClient>()
  readonly #listener: PostgresListener
  #closing: Promise<void> | undefined

  constructor(pg: PgModule, options: PostgresOptions, place: string) {
    this.#options = options
    this.#place = place
    const config = clientConfig(pg, options)
    this.#pool = new pg.Pool({ ...config, max: options.connections })
    // A connection that breaks while idle is removed from the pool: nothing else to do.
    this.#pool.on('error', () => undefined)
    this.#pool.on('connect', (client) => void this.#clients.add(client))
    this.#pool.on('remove', (client) => void this.#clients.delete(client))
    this.#listener = new PostgresListener({
      createClient: () => new pg.Client(config),
      keepaliveMs: options.keepaliveMs,
      deadlineMs: options.deadlineMs,
      timers: options.platform.backgroundTimers,
      random: options.random,
    })
  }

  async query<R = SqlRow>(sql: string, values: readonly SqlValue[] = []): Promise<readonly R[]> {
    this.#requireOpen()
    try {
      return await this.#lend(this.#options.deadlineMs, (session) => session.query<R>(sql, values))
    } catch (error) {
      throw postgresError(error, this.#place)
    }
  }

  async transaction<T>(
    work: (transaction: SqlTransaction) => Promise<T>,
    { deadlineMs = this.#options.deadlineMs }: TransactionOptions = {},
  ): Promise<T> {
    this.#requireOpen()
    const { random, platform } = this.#options
    const backoff = new Backoff({ firstMs: 10, longestMs: 200, random })
    for (let attempts = 1; ; attempts++) {
      try {
        return await this.#lend(deadlineMs, (session) => session.transaction(work))
      } catch (error) {
        if (attempts === MAX_ATTEMPTS || !isWorthRepeating(error)) throw postgresError(error, this.#place)
      }
      await pause(platform.timers, backoff.nextMs())
    }
  }

  async listen(changed: () => void, lost: (error: unknown) => void): Promise<() => Promise<void>> {
    this.#requireOpen()
    try {
      return await this.#listener.add({ changed, lost: (error) => lost(postgresError(error, this.#place)) })
    } catch (error) {
      throw postgresError(error, this.#place)
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#finish()
    return this.#closing
  }

  async #finish(): Promise<void> {
    const cancel = this.#options.platform.timers.schedule(CLOSE_GRACE_MS, () => {
      for (const client of this.#clients) client.connection.stream.destroy()
    })
    try {
      // The pool waits until connections are returned, not until they are closed.
      await Promise.all([this.#listener.close(), this.#pool.end()])
      await this.#untilDisconnected()
    } finally {
      cancel()
    }
  }

  #untilDisconnected(): Promise<void> {
    return new Promise((resolve) => {
      const check = (): void => {
        if (this.#clients.size === 0) resolve()
      }
      this.#pool.on('remove', check)
      check()
    })
  }

  async #lend<T>(deadlineMs: number, use: (session: PostgresSession) => Promise<T>): Promise<T> {
    const client = await this.#connect()
    const { timers } = this.#options.platform
    const isOwnDeadline = deadlineMs !== this.#options.deadlineMs
    const session = new PostgresSession(client, { deadlineMs, isOwnDeadline, timers })
    try {
      return await use(session)
    } finally {
      client.off('error', ignore)
      client.release(!session.isUsable)
    }
  }

  async #connect(): Promise<PoolClient> {
    try {
      const client = await this.#pool.connect()
      // A connection that breaks between two statements emits an event, and fails again at the next statement.
      client.on('error', ignore)
      return client
    } catch (error) {
      throw new StatementError('CONNECT', { cause: error })
    }
  }

  #requireOpen(): void {
    if (this.#closing === undefined) return
    throw new SluiceError('SLUICE_CLOSED', {
      problem: 'the configuration store was used after close()',
      action: 'Open another one.',
    })
  }
}

function ignore(): void {
  // The error is reported elsewhere.
}

function clientConfig(pg: PgModule, { url, deadlineMs }: PostgresOptions): ClientConfig {
  return {
    connectionString: url,
    connectionTimeoutMillis: deadlineMs,
    statement_timeout: deadlineMs,
    // A process that hangs inside a transaction would block all other writers.
    idle_in_transaction_session_timeout: 2 * deadlineMs,
    keepAlive: true,
    fallback_application_name: 'sluice',
    types: {
      // Positions and times are integers far below 2^53.
      getTypeParser: (type: number, format?: 'text' | 'binary') =>
        type === INT8 ? Number : pg.types.getTypeParser(type, format as 'text'),
    } as NonNullable<ClientConfig['types']>,
  }
}

/** The database, without user and password. */
function placeOf(url: string): string {
  const parts = URL.parse(url)
  if (parts !== null) return `${parts.host}${parts.pathname}`
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: 'the PostgreSQL URL is invalid',
    expected: 'postgres://user:password@host:port/database',
    action: 'Percent-encode special characters of the password.',
  })
}
