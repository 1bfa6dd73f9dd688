import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Finding } from './finding.ts'
import { failed, ok, warning } from './finding.ts'
import type { ServerQuestion } from './redis-check.ts'
import { clockFinding, reasonOf, shownUrl, within } from './server-probe.ts'

/** The form of the tables that the service of this version makes. */
const CURRENT_FORM = 6

/** Whether the tables of a configuration database are of the form that this version makes; `form` is 0 for none. */
export function formFinding(check: string, form: number): Finding {
  if (form === CURRENT_FORM) return ok(check, `tables are of form ${form}, the newest`)
  if (form > CURRENT_FORM) {
    const found = `tables are of form ${form}, made by a newer version; this one knows up to ${CURRENT_FORM}`
    return failed(check, found, 'Upgrade the service on this machine, or use another database.')
  }
  const found = form === 0 ? 'there are no tables yet' : `tables are of form ${form}, the newest is ${CURRENT_FORM}`
  return warning(check, found, 'Nothing to do: the service makes them when it starts.')
}

const READ = 'Look whether it is the data folder of the service, and whether this user may read it.'

/** How the data folder of the service stands, and the database in it. Changes nothing. */
export async function dataFolderFindings(dataDir: string): Promise<readonly Finding[]> {
  const folder = resolve(dataDir)
  if (!existsSync(folder)) return [newFolderFinding(folder)]
  const usable = folderFinding(folder)
  const database = join(folder, 'config.db')
  if (!existsSync(database)) return [usable, formFinding('database', 0)]
  try {
    return [usable, formFinding('database', await formOf(database))]
  } catch (error) {
    return [usable, failed('database', `${database} cannot be read (${reasonOf(error)})`, READ)]
  }
}

function newFolderFinding(folder: string): Finding {
  let parent = dirname(folder)
  while (!existsSync(parent)) parent = dirname(parent)
  if (isWritable(parent)) return ok('data folder', `${folder} is made when the service starts`)
  return failed('data folder', `${folder} cannot be made`, `Let this user write to ${parent}, or set SLUICE_DATA_DIR.`)
}

function folderFinding(folder: string): Finding {
  if (!isWritable(folder)) {
    const advice = 'Let the user that runs the service write there, or set SLUICE_DATA_DIR.'
    return failed('data folder', `${folder} cannot be written to`, advice)
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

async function formOf(path: string): Promise<number> {
  // Loaded only when needed: Node warns of the module for as long as it is new.
  const { DatabaseSync } = await import('node:sqlite')
  const database = new DatabaseSync(path, { readOnly: true })
  try {
    const tables = database.prepare("SELECT name FROM sqlite_master WHERE name = 'schema_migrations'").all()
    if (tables.length === 0) return 0
    const newest = database.prepare('SELECT max(number) AS number FROM schema_migrations').get()
    return Number(newest?.['number'] ?? 0)
  } finally {
    database.close()
  }
}

const ANSWER_WITHIN_MS = 3000
const OLDEST_VERSION = 13

interface Answers {
  readonly version: number
  readonly isReplica: boolean
  readonly form: number
  readonly beforeMs: number
  readonly thereMs: number
  readonly afterMs: number
}

/** Whether a PostgreSQL database is there and fit to hold the configuration. Changes nothing. */
export async function postgresFindings(question: ServerQuestion): Promise<readonly Finding[]> {
  const place = shownUrl(question.url)
  let answers: Answers
  try {
    answers = await askServer(question)
  } catch (error) {
    const advice =
      'Look whether it runs, and whether address, user, password and database are right. Limits go on with what was known last until then.'
    return [failed('database', `${place} cannot be used (${reasonOf(error)})`, advice)]
  }
  return [
    versionFinding(answers, place),
    formFinding('database tables', answers.form),
    clockFinding('database clock', answers),
  ]
}

async function askServer({ url, nowMs, wait }: ServerQuestion): Promise<Answers> {
  const { Client } = await import('pg')
  const client = new Client({
    connectionString: url,
    connectionTimeoutMillis: ANSWER_WITHIN_MS,
    query_timeout: ANSWER_WITHIN_MS,
  })
  // Failures are told by the calls themselves.
  client.on('error', () => undefined)
  const ask = async (): Promise<Answers> => {
    await client.connect()
    const server = await client.query<{ version: number; replica: boolean; there: boolean }>(
      "SELECT current_setting('server_version_num')::int / 10000 AS version, pg_is_in_recovery() AS replica, to_regclass('schema_migrations') IS NOT NULL AS there",
    )
    const { version, replica, there } = server.rows[0]!
    const newest = there
      ? await client.query<{ number: string | null }>('SELECT max(number) AS number FROM schema_migrations')
      : undefined
    const beforeMs = nowMs()
    const time = await client.query<{ ms: number }>(
      'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms',
    )
    const afterMs = nowMs()
    const form = Number(newest?.rows[0]?.number ?? 0)
    return { version, isReplica: replica, form, beforeMs, thereMs: time.rows[0]!.ms, afterMs }
  }
  try {
    return await within(ANSWER_WITHIN_MS, wait, ask())
  } finally {
    // It may hang as the server does; its socket is all that there is to close.
    client.connection.stream.destroy()
  }
}

function versionFinding({ version, isReplica }: Answers, place: string): Finding {
  const found = `PostgreSQL ${version} at ${place}`
  if (version < OLDEST_VERSION)
    return failed('database', `${found}, expected ${OLDEST_VERSION} or later`, 'Upgrade it.')
  if (!isReplica) return ok('database', found)
  return failed('database', `${found} is a standby`, 'Configuration is written: name the primary in DATABASE_URL.')
}
