import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { SCHEMA_TABLE, SCHEMA_VERSION } from '@sluice/config-store/schema-version'
import { urlWithoutSecrets } from '@sluice/core/options'
import { reasonText } from '../output/text.ts'
import type { ServerCheckOptions } from './clock-check.ts'
import { clockFinding, within } from './clock-check.ts'
import type { Finding } from './finding.ts'
import { failed, ok, warning } from './finding.ts'

/** Where the service keeps its state, with the clock and timer of the command. */
export interface DatabaseCheckOptions extends Omit<ServerCheckOptions, 'url'> {
  readonly dataDir: string
  /** Undefined: SQLite in the data folder. */
  readonly databaseUrl: string | undefined
}

/** Checks the data folder and the configuration database: SQLite in that folder, or PostgreSQL. Read-only. */
export async function inspectDatabase(options: DatabaseCheckOptions): Promise<readonly Finding[]> {
  const { dataDir, databaseUrl: url, nowMs, wait } = options
  const folder = resolve(dataDir)
  const isThere = existsSync(folder)
  const usable = isThere ? folderFinding(folder) : newFolderFinding(folder)
  if (url !== undefined) return [usable, ...(await postgresFindings({ url, nowMs, wait }))]
  return isThere ? [usable, await sqliteFinding(join(folder, 'config.db'))] : [usable]
}

/** Compares the schema version of a configuration database with the current one; 0: there are no tables. */
export function schemaFinding(check: string, version: number): Finding {
  if (version === SCHEMA_VERSION) return ok(check, `schema version ${version}, the newest`)
  if (version > SCHEMA_VERSION) {
    const found = `schema version ${version} of a newer service; this one supports up to ${SCHEMA_VERSION}`
    return failed(check, found, 'Upgrade the service on this machine, or use another database.')
  }
  const found = version === 0 ? 'no tables yet' : `schema version ${version}, the newest is ${SCHEMA_VERSION}`
  return warning(check, found, 'Nothing to do: the service creates or migrates the tables when it starts.')
}

const READ_ADVICE = 'Check that it is the data folder of the service and that this user may read it.'

async function sqliteFinding(path: string): Promise<Finding> {
  if (!existsSync(path)) return schemaFinding('database', 0)
  try {
    return schemaFinding('database', await sqliteSchemaVersion(path))
  } catch (error) {
    return failed('database', `${path} cannot be read (${reasonText(error)})`, READ_ADVICE)
  }
}

function newFolderFinding(folder: string): Finding {
  let parent = dirname(folder)
  while (!existsSync(parent)) parent = dirname(parent)
  if (isWritable(parent)) return ok('data folder', `${folder} will be created when the service starts`)
  return failed(
    'data folder',
    `${folder} cannot be created`,
    `Let this user write to ${parent}, or set SLUICE_DATA_DIR.`,
  )
}

function folderFinding(folder: string): Finding {
  if (!isWritable(folder)) {
    const advice = 'Let the user that runs the service write there, or set SLUICE_DATA_DIR.'
    return failed('data folder', `${folder} is not writable`, advice)
  }
  const holder = join(folder, 'lock-holder')
  const user = existsSync(holder) ? `, in use by ${readFileSync(holder, 'utf8').slice(0, 200)}` : ''
  return ok('data folder', `${folder}${user}`)
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}

async function sqliteSchemaVersion(path: string): Promise<number> {
  // Loaded on demand: Node prints a warning about this experimental module.
  const { DatabaseSync } = await import('node:sqlite')
  const database = new DatabaseSync(path, { readOnly: true })
  try {
    const tables = database.prepare('SELECT name FROM sqlite_master WHERE name = ?').all(SCHEMA_TABLE)
    if (tables.length === 0) return 0
    const newest = database.prepare(`SELECT max(number) AS number FROM ${SCHEMA_TABLE}`).get()
    return Number(newest?.['number'] ?? 0)
  } finally {
    database.close()
  }
}

const TIMEOUT_MS = 3000
const OLDEST_VERSION = 13

interface Answers {
  readonly version: number
  readonly isReplica: boolean
  readonly schemaVersion: number
  readonly beforeMs: number
  readonly thereMs: number
  readonly afterMs: number
}

async function postgresFindings(options: ServerCheckOptions): Promise<readonly Finding[]> {
  const place = urlWithoutSecrets(options.url)
  let answers: Answers
  try {
    answers = await queryServer(options)
  } catch (error) {
    const advice =
      'Check that it runs and that address, user, password and database are correct. Until then the service uses ' +
      'the last known rules.'
    return [failed('database', `${place} is not usable (${reasonText(error)})`, advice)]
  }
  return [
    versionFinding(answers, place),
    schemaFinding('database tables', answers.schemaVersion),
    clockFinding('database clock', answers),
  ]
}

async function queryServer({ url, nowMs, wait }: ServerCheckOptions): Promise<Answers> {
  const { Client } = await import('pg')
  const client = new Client({
    connectionString: url,
    connectionTimeoutMillis: TIMEOUT_MS,
    query_timeout: TIMEOUT_MS,
  })
  // Calls report failures themselves.
  client.on('error', () => undefined)
  const ask = async (): Promise<Answers> => {
    await client.connect()
    const server = await client.query<{ version: number; replica: boolean; there: boolean }>(
      "SELECT current_setting('server_version_num')::int / 10000 AS version, pg_is_in_recovery() AS replica, " +
        `to_regclass('${SCHEMA_TABLE}') IS NOT NULL AS there`,
    )
    const { version, replica, there } = server.rows[0]!
    const newest = there
      ? await client.query<{ number: string | null }>(`SELECT max(number) AS number FROM ${SCHEMA_TABLE}`)
      : undefined
    const beforeMs = nowMs()
    const time = await client.query<{ ms: number }>(
      'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms',
    )
    const afterMs = nowMs()
    const schemaVersion = Number(newest?.rows[0]?.number ?? 0)
    return { version, isReplica: replica, schemaVersion, beforeMs, thereMs: time.rows[0]!.ms, afterMs }
  }
  try {
    return await within(TIMEOUT_MS, wait, ask())
  } finally {
    // A graceful end could hang like the server: close the socket.
    client.connection.stream.destroy()
  }
}

function versionFinding({ version, isReplica }: Answers, place: string): Finding {
  const found = `PostgreSQL ${version} at ${place}`
  if (version < OLDEST_VERSION)
    return failed('database', `${found}, expected ${OLDEST_VERSION} or later`, 'Upgrade it.')
  if (!isReplica) return ok('database', found)
  return failed('database', `${found} is a standby`, 'The service writes to it: set DATABASE_URL to the primary.')
}
