import type { RuleSetProblem } from '@sluice/core'
import { RuleSetError } from '@sluice/core'
import type { Author } from '../author.ts'
import type { EntityKey, EntryFilter, EntryTable, Seen, Stored } from '../entry-table.ts'
import type { Page } from '../page.ts'
import type { AuditEntry, ConfigChange, ConfigWriter } from './config-writer.ts'
import { JsonText } from './config-writer.ts'
import type { EntryKind } from './entry-kind.ts'
import { targetOf } from './entry-kind.ts'
import { pageLimit, pageOf, pageStart } from './paging.ts'
import { checkSeen } from './seen.ts'
import { sortInTurns } from './sort-in-turns.ts'
import type { SqlDriver, SqlSession, SqlTarget, SqlValue } from './sql-driver.ts'
import { recordRemoval } from './sql-removals.ts'
import { originalText, storedKey, storedText } from './stored-text.ts'

/** Rows that are put in one statement. */
const ROWS_AT_ONCE = 5000
/** Entries in one audit record. */
const ENTRIES_PER_RECORD = 1000
/** Problems that are listed of many entries. */
const MOST_PROBLEMS = 100

/** An entry as it is in its table. */
export interface EntryRow {
  readonly body: string
  readonly position: number
  readonly changed_at: number
  readonly changed_by: string
}

/** A key of any kind. */
type LooseKey = EntityKey & { readonly resource?: string }

/** What an entry table is made of. */
export interface EntryTableParts<E, Key> {
  readonly kind: EntryKind<E, Key>
  readonly driver: SqlDriver
  readonly writer: ConfigWriter
  /** Lets others in this process have a turn. */
  readonly nextTurn: () => Promise<void>
  /** Done with every change, in the same transaction. */
  readonly alsoDo?: (change: ConfigChange) => Promise<void>
}

/** A table of entries. */
export class SqlEntryTable<E extends Key, Key extends EntityKey> implements EntryTable<E, Key> {
  readonly #parts: EntryTableParts<E, Key>
  readonly #target: SqlTarget
  readonly #keyCondition: string

  constructor(parts: EntryTableParts<E, Key>) {
    this.#parts = parts
    this.#target = targetOf(parts.kind)
    this.#keyCondition = parts.kind.keyParts.map((name) => `${name} = ?`).join(' AND ')
  }

  async put(entry: E, author: Author, seen: Seen = {}): Promise<Stored<E>> {
    const { kind, writer, alsoDo } = this.#parts
    const problems = kind.check(entry)
    if (problems.length > 0) throw new RuleSetError(problems, `the ${kind.kind}`)
    return await writer.change(author, async (change) => {
      const before = await this.#find(change.transaction, entry)
      checkSeen(seen, { revision: before?.position, what: `the ${kind.kind} ${kind.nameOf(entry)}` })
      const body = JSON.stringify(entry)
      await change.transaction.putRows(this.#target, [this.#rowOf(entry, body, change)])
      await change.note([
        {
          action: `${kind.kind}.put`,
          target: kind.nameOf(entry),
          before: before === undefined ? undefined : new JsonText(before.body),
          after: new JsonText(body),
        },
      ])
      await alsoDo?.(change)
      return { entry: JSON.parse(body), revision: change.position, changedAt: change.at, changedBy: author.name }
    })
  }

  async putAll(entries: Iterable<E>, author: Author): Promise<{ readonly count: number }> {
    const all = [...entries]
    await this.#checkAll(all)
    if (all.length === 0) return { count: 0 }
    // In the order of the table: many times faster than each at a random place. Of equal ones the last counts.
    const sorted = await sortInTurns(all, { compare: compareKeys, nextTurn: this.#parts.nextTurn })
    await this.#parts.writer.change(author, async (change) => {
      for (let start = 0; start < sorted.length; start += ROWS_AT_ONCE) await this.#putSome(change, sorted, start)
      await this.#parts.alsoDo?.(change)
    })
    return { count: sorted.length }
  }

  async get(key: Key): Promise<Stored<E> | undefined> {
    const row = await this.#find(this.#parts.driver, key)
    return row === undefined ? undefined : storedOf<E>(row)
  }

  async remove(key: Key, author: Author, seen: Seen = {}): Promise<boolean> {
    const { kind, driver, writer } = this.#parts
    // Looked at without disturbing those who write: often it is gone already.
    if ((await this.#find(driver, key)) === undefined) return false
    return await writer.change(author, async (change) => {
      const before = await this.#find(change.transaction, key)
      if (before === undefined) return false
      checkSeen(seen, { revision: before.position, what: `the ${kind.kind} ${kind.nameOf(key)}` })
      const sql = `DELETE FROM ${kind.table} WHERE ${this.#keyCondition}`
      await change.transaction.query(sql, this.#keyValues(key))
      await recordRemoval(change, kind.kind, keyOf(kind, key))
      await change.note([
        { action: `${kind.kind}.remove`, target: kind.nameOf(key), before: new JsonText(before.body) },
      ])
      return true
    })
  }

  async list(filter: EntryFilter = {}): Promise<Page<Stored<E>>> {
    const { kind, driver } = this.#parts
    const limit = pageLimit(filter)
    const start = pageStart(
      filter,
      kind.keyParts.map(() => 'string'),
    )
    const { conditions, values } = await this.#conditionsOf(filter)
    const columns = kind.keyParts.join(', ')
    if (start !== undefined) conditions.push(`(${columns}) > (${kind.keyParts.map(() => '?').join(', ')})`)
    const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
    const sql = `SELECT ${columns}, body, position, changed_at, changed_by FROM ${kind.table} ${where} ORDER BY ${columns} LIMIT ?`
    const rows = await driver.query<EntryRow & Record<string, string>>(sql, [...values, ...(start ?? []), limit + 1])
    return pageOf(rows, limit, {
      itemOf: (row) => storedOf<E>(row),
      placeOf: (row) => kind.keyParts.map((name) => row[name]!),
    })
  }

  async #conditionsOf({ dimension, entity }: EntryFilter): Promise<{ conditions: string[]; values: SqlValue[] }> {
    if (dimension !== undefined) {
      return entity === undefined
        ? { conditions: ['dimension = ?'], values: [storedKey(dimension)] }
        : { conditions: ['dimension = ?', 'entity = ?'], values: [storedKey(dimension), storedKey(entity)] }
    }
    if (entity === undefined) return { conditions: [], values: [] }
    // Rows are sorted by dimension first, of which there are few: found one by one, the entity is looked up in each.
    const dimensions = await this.#dimensions()
    const places = dimensions.map(() => '?').join(', ') || 'NULL'
    return { conditions: [`dimension IN (${places})`, 'entity = ?'], values: [...dimensions, storedKey(entity)] }
  }

  async #dimensions(): Promise<readonly string[]> {
    const { table } = this.#parts.kind
    const rows = await this.#parts.driver.query<{ dimension: string }>(
      `WITH RECURSIVE found (dimension) AS (
        SELECT min(dimension) FROM ${table}
        UNION ALL
        SELECT (SELECT min(dimension) FROM ${table} WHERE dimension > found.dimension) FROM found WHERE dimension IS NOT NULL
      ) SELECT dimension FROM found WHERE dimension IS NOT NULL`,
    )
    return rows.map((row) => row.dimension)
  }

  async #find(session: SqlSession, key: Key): Promise<EntryRow | undefined> {
    const sql = `SELECT body, position, changed_at, changed_by FROM ${this.#parts.kind.table} WHERE ${this.#keyCondition}`
    return (await session.query<EntryRow>(sql, this.#keyValues(key)))[0]
  }

  #keyValues(key: Key): readonly string[] {
    return this.#parts.kind.keyParts.map((name) => storedKey(key[name] as string))
  }

  #rowOf(
    entry: E,
    body: string,
    { position, at, author }: Pick<ConfigChange, 'position' | 'at' | 'author'>,
  ): SqlValue[] {
    const extras = this.#parts.kind.extras.map(({ read }) => read(entry))
    return [...this.#keyValues(entry), body, position, at, storedText(author.name), ...extras]
  }

  /** Entries of a sorted list, from `start`, at most so many as go into one statement. */
  async #putSome(change: ConfigChange, sorted: readonly E[], start: number): Promise<void> {
    const { kind } = this.#parts
    const end = Math.min(sorted.length, start + ROWS_AT_ONCE)
    let position = await change.takePositions(end - start)
    const rows: (readonly SqlValue[])[] = []
    const bodies: string[] = []
    for (let index = start; index < end; index++) {
      const entry = sorted[index]!
      const body = JSON.stringify(entry)
      bodies.push(body)
      const next = sorted[index + 1]
      const isReplaced = next !== undefined && compareKeys(entry, next) === 0
      if (!isReplaced)
        rows.push(this.#rowOf(entry, body, { position: position++, at: change.at, author: change.author }))
    }
    await change.transaction.putRows(this.#target, rows)
    await change.note(recordsOf(`${kind.kind}.put-all`, bodies))
  }

  async #checkAll(entries: readonly E[]): Promise<void> {
    const { kind, nextTurn } = this.#parts
    const problems: RuleSetProblem[] = []
    for (let index = 0; index < entries.length && problems.length < MOST_PROBLEMS; index++) {
      for (const problem of kind.check(entries[index])) problems.push({ ...problem, path: `/${index}${problem.path}` })
      if (index % ROWS_AT_ONCE === ROWS_AT_ONCE - 1) await nextTurn()
    }
    if (problems.length > 0) throw new RuleSetError(problems, `the list of ${kind.table}`)
  }
}

/** By the parts of their keys. */
function compareKeys(one: LooseKey, other: LooseKey): number {
  if (one.dimension !== other.dimension) return one.dimension < other.dimension ? -1 : 1
  if (one.entity !== other.entity) return one.entity < other.entity ? -1 : 1
  if (one.resource === other.resource) return 0
  return (one.resource ?? '') < (other.resource ?? '') ? -1 : 1
}

/** The key alone, out of an entry or key. */
function keyOf<E, Key>({ keyParts }: EntryKind<E, Key>, key: Key): Record<string, unknown> {
  return Object.fromEntries(keyParts.map((name) => [name, key[name]]))
}

function storedOf<E>({ body, position, changed_at, changed_by }: EntryRow): Stored<E> {
  return { entry: JSON.parse(body), revision: position, changedAt: changed_at, changedBy: originalText(changed_by) }
}

function recordsOf(action: string, bodies: readonly string[]): readonly AuditEntry[] {
  const records: AuditEntry[] = []
  for (let start = 0; start < bodies.length; start += ENTRIES_PER_RECORD) {
    const some = bodies.slice(start, start + ENTRIES_PER_RECORD)
    records.push({ action, target: `${some.length} entries`, after: new JsonText(`[${some.join(',')}]`) })
  }
  return records
}
