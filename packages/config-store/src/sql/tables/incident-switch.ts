import { checkIncident } from '@sluice/core/internal'
import type { Incident } from '@sluice/core/policy'
import { RuleSetError } from '@sluice/core/policy'
import type { Author, IncidentSwitch, Seen, Stored } from '../../config-entries.ts'
import { type ConfigWriter, checkRevision, JsonText } from '../config-writer.ts'
import type { SqlDriver, SqlSession } from '../sql-driver.ts'
import { decodeText, encodeText } from '../text-encoding.ts'
import type { EntryRow } from './entry-table.ts'

/** Incident mode: a table with exactly one row. */
export class SqlIncidentSwitch implements IncidentSwitch {
  readonly #driver: SqlDriver
  readonly #writer: ConfigWriter

  constructor(driver: SqlDriver, writer: ConfigWriter) {
    this.#driver = driver
    this.#writer = writer
  }

  async get(): Promise<Stored<Incident>> {
    const { body, position, changed_at, changed_by } = await read(this.#driver)
    return { entry: JSON.parse(body), revision: position, changedAt: changed_at, changedBy: decodeText(changed_by) }
  }

  async set(incident: Incident, author: Author, seen: Seen = {}): Promise<Stored<Incident>> {
    const problems = checkIncident(incident)
    if (problems.length > 0) throw new RuleSetError(problems, 'the incident')
    return await this.#writer.change(author, async (change) => {
      const before = await read(change.transaction)
      checkRevision(seen, { revision: before.position, what: 'the incident' })
      const body = JSON.stringify(incident)
      await change.transaction.query(
        'UPDATE incident SET body = ?, position = ?, changed_at = ?, changed_by = ? WHERE id = 1',
        [body, change.position, change.at, encodeText(author.name)],
      )
      await change.note([
        { action: 'incident.set', target: 'incident', before: new JsonText(before.body), after: new JsonText(body) },
      ])
      return { entry: JSON.parse(body), revision: change.position, changedAt: change.at, changedBy: author.name }
    })
  }
}

async function read(session: SqlSession): Promise<EntryRow> {
  const sql = 'SELECT body, position, changed_at, changed_by FROM incident WHERE id = 1'
  return (await session.query<EntryRow>(sql))[0]!
}
