import type { Random, Timers } from '@sluice/core'
import { SluiceError, systemRandom } from '@sluice/core'
import { checkOptionNames, DEFAULT_IPV6_PREFIX_LENGTH } from '@sluice/core/internal'
import { type Platform, platform } from './clock-and-random.ts'
import type { ConfigStore, Notifier } from './config-store.ts'
import { Announcer } from './sql/config-writer.ts'
import { migrate } from './sql/migrations/migrate.ts'
import type { SqlDriver } from './sql/sql-driver.ts'
import { CanonicalKeys } from './sql/tables/entry-kinds.ts'
import { SqlConfigStore } from './sql/tables/sql-config-store.ts'

const DEADLINE_MS = 5000
const CONNECTIONS = 5
const POLL_MS = 200
const KEEPALIVE_MS = 10_000

/** Options of {@link openConfigStore}. */
export interface ConfigStoreOptions {
  /**
   * Maximum time in milliseconds that a call waits for the database: for a connection, for the reply to a statement
   * (PostgreSQL), for other writers (SQLite). Default: 5000.
   */
  readonly deadlineMs?: number
  /** Maximum number of PostgreSQL connections, not counting the one that listens for changes. Default: 5. */
  readonly connections?: number
  /** Interval in milliseconds at which a SQLite file is polled for changes by other processes. Default: 200. */
  readonly pollMs?: number
  /** Interval in milliseconds of the check that PostgreSQL still sends notifications. Default: 10,000. */
  readonly keepaliveMs?: number
  /**
   * Leading bits of an IPv6 address that identify a caller, 1 to 128. Must equal the value of the engines that follow
   * this store, and of all nodes that open it. Entries for two addresses of one network are the same entry. Default:
   * 64, as for engines.
   */
  readonly ipv6PrefixLength?: number
  /**
   * Notified of every change made here after its commit, for databases that cannot notify nodes. Nodes pass the same
   * notifiers to `followConfig`. Changes do not wait for notifiers; `close` does.
   */
  readonly notifiers?: readonly Pick<Notifier, 'announce'>[]
  /** Current time in milliseconds since 1970: the recorded time of changes, and the time that API keys expire by. */
  readonly nowMs?: () => number
  /** Cryptographically random bytes, for API keys and secrets. */
  readonly randomBytes?: (count: number) => Uint8Array
  /** Used for all waiting, including background work. Default: the timers of the process. */
  readonly timers?: Timers
  /** Jitter of the waits between retries. */
  readonly random?: Random
}

/**
 * Opens the configuration database and migrates its schema.
 *
 * @param url - `sqlite:<path>` or a path: a SQLite file, created if it does not exist. `sqlite::memory:`: a database
 * that ends with the process. `postgres://user:password@host:port/database`: PostgreSQL 13 or later, requires the
 * package `pg`.
 * @throws SluiceError `SLUICE_INVALID_OPTION` for an invalid URL or option, `SLUICE_CONFIG_UNAVAILABLE` if the database
 * is unreachable, `SLUICE_UNSUPPORTED` if a newer program has migrated its schema
 */
export async function openConfigStore(url: string, options: ConfigStoreOptions = {}): Promise<ConfigStore> {
  checkOptionNames(options, {
    name: 'openConfigStore',
    options: [
      ...['deadlineMs', 'connections', 'pollMs', 'keepaliveMs', 'ipv6PrefixLength', 'notifiers'],
      ...['nowMs', 'randomBytes', 'timers', 'random'],
    ],
    example: '{ deadlineMs: 5000 }',
  })
  checkOptions(options)
  const { nowMs = platform.nowMs } = options
  const own: Platform = {
    ...platform,
    nowMs: () => Math.floor(nowMs()),
    ...(options.randomBytes === undefined ? {} : { randomBytes: options.randomBytes }),
    ...(options.timers === undefined ? {} : { timers: options.timers, backgroundTimers: options.timers }),
  }
  const { ipv6PrefixLength = DEFAULT_IPV6_PREFIX_LENGTH, notifiers = [] } = options
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
  // Loaded lazily: Node prints a warning for this experimental module.
  const { openSqlite } = await import('./sql/sqlite/sqlite-driver.ts')
  return await openSqlite({
    path: sqlitePath(url),
    deadlineMs,
    pollMs: options.pollMs ?? POLL_MS,
    platform: own,
    random,
  })
}

/** Undefined for a path. A single letter is a Windows drive. */
function schemeOf(url: unknown): string | undefined {
  const scheme = typeof url === 'string' ? /^([a-z][a-z0-9+.-]+):/i.exec(url)?.[1]?.toLowerCase() : ''
  if (scheme === undefined || scheme === 'sqlite' || scheme === 'postgres' || scheme === 'postgresql') return scheme
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: 'the address of the configuration database is of no known kind',
    // The rest may contain a password.
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
  const { deadlineMs, connections, pollMs, keepaliveMs, ipv6PrefixLength = DEFAULT_IPV6_PREFIX_LENGTH } = options
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
