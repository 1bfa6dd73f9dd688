import { clockFinding } from './clock-skew.ts'
import { formFinding } from './database-form.ts'
import type { Finding } from './finding.ts'
import { failed, ok } from './finding.ts'
import type { ServerQuestion } from './redis-check.ts'
import { reasonOf, shownUrl } from './shown-url.ts'
import { within } from './within.ts'

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
