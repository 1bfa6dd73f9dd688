import type { RuleSetProblem } from '@sluice/core/policy'
import { RuleSetError } from '@sluice/core/policy'
import type { Author, EntityKey, EntryFilter, EntryTable, Page, PutEntry, Seen, Stored } from '../../config-entries.ts'
import { type AuditEntry, type ConfigChange, type ConfigWriter, checkRevision, JsonText } from '../config-writer.ts'
import type { SqlDriver, SqlSession, SqlTarget, SqlValue } from '../sql-driver.ts'
import { pageLimit, pageOf, pageStart } from '../sql-page.ts'
import { decodeText, encodeKey, encodeText } from '../text-encoding.ts'
import { recordRemoval } from './change-feed.ts'
import { cooperativeSort } from './cooperative-sort.ts'
import { type CanonicalKeys, type EntryKey, type EntryKind, targetOf } from './entry-kinds.ts'

/** Rows per statement. */
const ROWS_AT_ONCE = 5000
/** Entries per audit record. */
const ENTRIES_PER_RECORD = 1000
/** Maximum number of reported problems. */
const MOST_PROBLEMS = 100

/** A row of a table of entries. */
export interface EntryRow {
  readonly body: string
  readonly position: number
  readonly changed_at: number
  readonly changed_by: string
}

/** An entry and its canonical key, in one flat object: a million of them are sorted. */
interface Keyed<E> extends EntityKey {
  readonly resource: string | undefined
  readonly entry: E
}

/** Options of {@link SqlEntryTable}. */
export interface EntryTableParts<E, Key> {
  readonly kind: EntryKind<E, Key>
  readonly driver: SqlDriver
  readonly writer: ConfigWriter
  readonly canonicalKeys: CanonicalKeys
  /** Yields to the event loop. */
  readonly nextTurn: () => Promise<void>
  /** Runs in the transaction of every change. */
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

  async put(entry: E, author: Author, seen: Seen = {}): Promise<PutEntry<E>> {
    const { kind, writer, alsoDo } = this.#parts
    const problems = kind.check(entry)
    if (problems.length > 0) throw new RuleSetError(problems, `the ${kind.kind}`)
    return await writer.change(author, async (change) => {
      const before = await this.#find(change.transaction, entry)
      checkRevision(seen, { revision: before?.position, what: `the ${kind.kind} ${kind.nameOf(entry)}` })
      const body = JSON.stringify(entry)
      await change.transaction.putRows(this.#target, [this.#rowOf(this.#keyed(entry), body, change)])
      await change.note([
        {
          action: `${kind.kind}.put`,
          target: kind.nameOf(entry),
          before: before === undefined ? undefined : new JsonText(before.body),
          after: new JsonText(body),
        },
      ])
      await alsoDo?.(change)
      return {
        entry: JSON.parse(body),
        revision: change.position,
        changedAt: change.at,
        changedBy: author.name,
        ...(before === undefined ? {} : { replaced: storedOf<E>(before) }),
      }
    })
  }

  async putAll(entries: Iterable<E>, author: Author): Promise<{ readonly count: number }> {
    const keyed = await this.#checkAll([...entries])
    if (keyed.length === 0) return { count: 0 }
    // In table order: many times faster than random inserts. Of equal keys the last wins.
    const sorted = await cooperativeSort(keyed, { compare: compareKeys, nextTurn: this.#parts.nextTurn })
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
    // Read outside a write transaction: often it is already removed.
    if ((await this.#find(driver, key)) === undefined) return false
    return await writer.change(author, async (change) => {
      const before = await this.#find(change.transaction, key)
      if (before === undefined) return false
      checkRevision(seen, { revision: before.position, what: `the ${kind.kind} ${kind.nameOf(key)}` })
      const sql = `DELETE FROM ${kind.table} WHERE ${this.#keyCondition}`
      await change.transaction.query(sql, this.#keyValues(key))
      await recordRemoval(change, kind.kind, keyOf(kind, this.#parts.canonicalKeys.canonical(key)))
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
    const sql =
      `SELECT ${columns}, body, position, changed_at, changed_by FROM ${kind.table} ${where} ORDER BY ` +
      `${columns} LIMIT ?`
    const rows = await driver.query<EntryRow & Record<string, string>>(sql, [...values, ...(start ?? []), limit + 1])
    return pageOf(rows, limit, {
      itemOf: (row) => storedOf<E>(row),
      cursorOf: (row) => kind.keyParts.map((name) => row[name]!),
    })
  }

  async #conditionsOf({ dimension, entity }: EntryFilter): Promise<{ conditions: string[]; values: SqlValue[] }> {
    const { canonicalKeys } = this.#parts
    if (entity === undefined) {
      if (dimension === undefined) return { conditions: [], values: [] }
      return {
        conditions: ['dimension = ?'],
        values: [encodeKey(canonicalKeys.canonical({ dimension, entity: '' }).dimension)],
      }
    }
    // Rows are sorted by dimension first, of which there are few: list them, and look the entity up in each.
    const dimensions = dimension === undefined ? await this.#dimensions() : [dimension]
    const keys = dimensions.map((each) => canonicalKeys.canonical({ dimension: each, entity }))
    if (keys.length === 0) return { conditions: ['dimension IS NULL'], values: [] }
    return {
      conditions: [`(${keys.map(() => '(dimension = ? AND entity = ?)').join(' OR ')})`],
      values: keys.flatMap((key) => [encodeKey(key.dimension), encodeKey(key.entity)]),
    }
  }

  async #dimensions(): Promise<readonly string[]> {
    const { table } = this.#parts.kind
    const rows = await this.#parts.driver.query<{ dimension: string }>(
      `WITH RECURSIVE found (dimension) AS (
        SELECT min(dimension) FROM ${table}
        UNION ALL
        SELECT (SELECT min(dimension) FROM ${table} WHERE dimension > found.dimension)
        FROM found WHERE dimension IS NOT NULL
      ) SELECT dimension FROM found WHERE dimension IS NOT NULL`,
    )
    return rows.map((row) => decodeText(row.dimension))
  }

  async #find(session: SqlSession, key: Key): Promise<EntryRow | undefined> {
    const { table } = this.#parts.kind
    const sql = `SELECT body, position, changed_at, changed_by FROM ${table} WHERE ${this.#keyCondition}`
    return (await session.query<EntryRow>(sql, this.#keyValues(key)))[0]
  }

  #keyed(entry: E): Keyed<E> {
    const { dimension, entity, resource } = this.#parts.canonicalKeys.canonical<EntryKey>(entry)
    return { dimension, entity, resource, entry }
  }

  /** The values of the primary key. */
  #keyValues(key: Key): readonly string[] {
    return this.#columnsOf(this.#parts.canonicalKeys.canonical(key))
  }

  #columnsOf(canonical: EntityKey & { readonly resource?: string | undefined }): readonly string[] {
    return this.#parts.kind.keyParts.map((name) => encodeKey(canonical[name as keyof EntryKey] as string))
  }

  #rowOf(
    keyed: Keyed<E>,
    body: string,
    { position, at, author }: Pick<ConfigChange, 'position' | 'at' | 'author'>,
  ): SqlValue[] {
    const extras = this.#parts.kind.extras.map(({ read }) => read(keyed.entry))
    return [...this.#columnsOf(keyed), body, position, at, encodeText(author.name), ...extras]
  }

  /** Puts entries of a sorted list from `start` on, as many as fit into one statement. */
  async #putSome(change: ConfigChange, sorted: readonly Keyed<E>[], start: number): Promise<void> {
    const { kind } = this.#parts
    const end = Math.min(sorted.length, start + ROWS_AT_ONCE)
    let position = await change.takePositions(end - start)
    const rows: (readonly SqlValue[])[] = []
    const bodies: string[] = []
    for (let index = start; index < end; index++) {
      const keyed = sorted[index]!
      const body = JSON.stringify(keyed.entry)
      bodies.push(body)
      const next = sorted[index + 1]
      const isReplaced = next !== undefined && compareKeys(keyed, next) === 0
      if (!isReplaced)
        rows.push(this.#rowOf(keyed, body, { position: position++, at: change.at, author: change.author }))
    }
    await change.transaction.putRows(this.#target, rows)
    await change.note(recordsOf(`${kind.kind}.put-all`, bodies))
  }

  /** Rejects invalid entries; resolves with all entries and their canonical keys. */
  async #checkAll(entries: readonly E[]): Promise<readonly Keyed<E>[]> {
    const { kind, nextTurn } = this.#parts
    const keyed: Keyed<E>[] = []
    const problems: RuleSetProblem[] = []
    for (const [index, entry] of entries.entries()) {
      const found = kind.check(entry)
      for (const problem of found) problems.push({ ...problem, path: `/${index}${problem.path}` })
      if (problems.length >= MOST_PROBLEMS) break
      if (found.length === 0) keyed.push(this.#keyed(entry))
      if (index % ROWS_AT_ONCE === ROWS_AT_ONCE - 1) await nextTurn()
    }
    if (problems.length > 0) throw new RuleSetError(problems, `the list of ${kind.table}`)
    return keyed
  }
}

/** Compares by the parts of the keys. */
function compareKeys(one: Keyed<unknown>, other: Keyed<unknown>): number {
  if (one.dimension !== other.dimension) return one.dimension < other.dimension ? -1 : 1
  if (one.entity !== other.entity) return one.entity < other.entity ? -1 : 1
  if (one.resource === other.resource) return 0
  return (one.resource ?? '') < (other.resource ?? '') ? -1 : 1
}

/** Extracts the key from an entry or key. */
function keyOf<E, Key>({ keyParts }: EntryKind<E, Key>, key: Key): Record<string, unknown> {
  return Object.fromEntries(keyParts.map((name) => [name, key[name]]))
}

function storedOf<E>({ body, position, changed_at, changed_by }: EntryRow): Stored<E> {
  return { entry: JSON.parse(body), revision: position, changedAt: changed_at, changedBy: decodeText(changed_by) }
}

function recordsOf(action: string, bodies: readonly string[]): readonly AuditEntry[] {
  const records: AuditEntry[] = []
  for (let start = 0; start < bodies.length; start += ENTRIES_PER_RECORD) {
    const some = bodies.slice(start, start + ENTRIES_PER_RECORD)
    records.push({ action, target: `${some.length} entries`, after: new JsonText(`[${some.join(',')}]`) })
  }
  return records
}
