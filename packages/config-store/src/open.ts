import type { Random, Timers } from '@sluice/core'
import { SluiceError, systemRandom } from '@sluice/core'
import type { ConfigStore, Notifier } from './config-store.ts'
import { type Platform, platform } from './platform.ts'
import { Announcer } from './sql/config-writer.ts'
import { migrate } from './sql/migrations/migrate.ts'
import type { SqlDriver } from './sql/sql-driver.ts'
import { CanonicalKeys } from './sql/tables/entry-kinds.ts'
import { SqlConfigStore } from './sql/tables/sql-config-store.ts'

const DEADLINE_MS = 5000
const CONNECTIONS = 5
const POLL_MS = 200
const KEEPALIVE_MS = 10_000
const IPV6_PREFIX_LENGTH = 64

/** How configuration is kept. Everything has a default. */
export interface ConfigStoreOptions {
  /**
   * Milliseconds that a call may wait for the database: for a connection, for the answer to a statement (PostgreSQL), for
   * others that write (SQLite). 5000 when left out.
   */
  readonly deadlineMs?: number
  /** Most connections to PostgreSQL at once, besides the one that listens for changes; 5 when left out. */
  readonly connections?: number
  /** Milliseconds between two looks for changes by other processes to a SQLite file; 200 when left out. */
  readonly pollMs?: number
  /** Milliseconds between two looks whether PostgreSQL still sends notifications; 10,000 when left out. */
  readonly keepaliveMs?: number
  /**
   * Bits of an IPv6 address that make one caller, 1 to 128: what the engines have that follow this store, and all who open it.
   * Entries for two addresses of one network are one. 64 when left out, as it is for engines.
   */
  readonly ipv6PrefixLength?: number
  /**
   * Told of every change that is made here, once it is committed, for nodes that the database cannot notify: such nodes give the
   * same to `followConfig`. Who changes something does not wait for it; `close` does.
   */
  readonly notifiers?: readonly Pick<Notifier, 'announce'>[]
  /** Milliseconds since 1970: what is written as the time of a change, and decides whether an API key has ended. */
  readonly nowMs?: () => number
  /** So many bytes that nobody can guess: API keys are made of them. */
  readonly randomBytes?: (count: number) => Uint8Array
  /** For all waiting, in the background too; those of the process when left out. */
  readonly timers?: Timers
  /** For the length of waits between tries. */
  readonly random?: Random
}

/**
 * Opens the database where configuration is kept, and brings its tables to the newest form.
 *
 * @param url - `sqlite:<path>` or a path: a SQLite file, made when it is not there. `sqlite::memory:`: a database that ends with
 * the process. `postgres://user:password@host:port/database`: PostgreSQL 13 or later, with the package `pg`.
 * @throws SluiceError `SLUICE_INVALID_OPTION` for an address or option that cannot be used, `SLUICE_CONFIG_UNAVAILABLE` when the
 * database cannot be reached, `SLUICE_UNSUPPORTED` when a newer program has changed its tables
 */
export async function openConfigStore(url: string, options: ConfigStoreOptions = {}): Promise<ConfigStore> {
  checkOptions(options)
  const { nowMs = platform.nowMs } = options
  const own: Platform = {
    ...platform,
    nowMs: () => Math.floor(nowMs()),
    ...(options.randomBytes === undefined ? {} : { randomBytes: options.randomBytes }),
    ...(options.timers === undefined ? {} : { timers: options.timers, backgroundTimers: options.timers }),
  }
  const { ipv6PrefixLength = IPV6_PREFIX_LENGTH, notifiers = [] } = options
  const canonicalKeys = new CanonicalKeys(ipv6PrefixLength)
  const driver = await openDriver(url, options, own)
  try {
    await migrate(driver, { nowMs: own.nowMs, canonicalKeys })
    return new SqlConfigStore(driver, { platform: own, canonicalKeys, announcements: new Announcer(notifiers) })
  } catch (error) {
    await driver.close()
    throw error
  }
}

async function openDriver(url: string, options: ConfigStoreOptions, own: Platform): Promise<SqlDriver> {
  const { deadlineMs = DEADLINE_MS, random = systemRandom } = options
  const scheme = schemeOf(url)
  if (scheme === 'postgres' || scheme === 'postgresql') {
    const { openPostgres } = await import('./sql/postgres/postgres-driver.ts')
    const { connections = CONNECTIONS, keepaliveMs = KEEPALIVE_MS } = options
    return await openPostgres({ url, deadlineMs, connections, keepaliveMs, platform: own, random })
  }
  // Loaded only when needed: Node warns of the module for as long as it is new.
  const { openSqlite } = await import('./sql/sqlite/sqlite-driver.ts')
  return await openSqlite({
    path: sqlitePath(url),
    deadlineMs,
    pollMs: options.pollMs ?? POLL_MS,
    platform: own,
    random,
  })
}

/** Undefined for a path; one letter is the drive of a path on Windows. */
function schemeOf(url: unknown): string | undefined {
  const scheme = typeof url === 'string' ? /^([a-z][a-z0-9+.-]+):/i.exec(url)?.[1]?.toLowerCase() : ''
  if (scheme === undefined || scheme === 'sqlite' || scheme === 'postgres' || scheme === 'postgresql') return scheme
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: 'the address of the configuration database is of no known kind',
    // The rest may hold a password.
    received: scheme === '' ? url : `${scheme}:...`,
    expected: 'sqlite:<path>, sqlite::memory:, a path, or postgres://user:password@host:port/database',
    action: 'Use sqlite:./sluice.db when in doubt.',
  })
}

function sqlitePath(url: string): string {
  const path = url.replace(/^sqlite:(?:\/\/(?=\/))?/i, '')
  if (path !== '' && !path.includes('\0')) return path
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: 'the address of the configuration database has no path',
    received: url,
    expected: 'sqlite:<path> or sqlite::memory:',
  })
}

function checkOptions(options: ConfigStoreOptions): void {
  const { deadlineMs, connections, pollMs, keepaliveMs, ipv6PrefixLength = IPV6_PREFIX_LENGTH } = options
  for (const [name, value] of Object.entries({ deadlineMs, connections, pollMs, keepaliveMs })) {
    if (value === undefined || (Number.isSafeInteger(value) && value > 0)) continue
    throw unusable(name, value, 'a whole number above 0')
  }
  if (!(Number.isInteger(ipv6PrefixLength) && ipv6PrefixLength >= 1 && ipv6PrefixLength <= 128)) {
    throw unusable('ipv6PrefixLength', ipv6PrefixLength, 'a whole number from 1 to 128')
  }
  const notifiers: unknown = options.notifiers ?? []
  if (!(Array.isArray(notifiers) && notifiers.every((each) => typeof each?.announce === 'function'))) {
    throw unusable('notifiers', options.notifiers, 'a list of notifiers, such as those of redisNotifier')
  }
}

function unusable(name: string, received: unknown, expected: string): SluiceError {
  return new SluiceError('SLUICE_INVALID_OPTION', {
    problem: `"${name}" of the configuration store cannot be used`,
    received,
    expected,
  })
}
