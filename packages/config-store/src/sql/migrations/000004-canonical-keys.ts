import type { SqlTarget, SqlTransaction, SqlValue } from '../sql-driver.ts'
import {
  BLOCKS,
  type CanonicalKeys,
  type EntryKey,
  type EntryKind,
  MEMBERS,
  OVERRIDES,
  targetOf,
} from '../tables/entry-kinds.ts'
import { encodeKey, encodeText } from '../text-encoding.ts'
import type { Migration, MigrationContext } from './migration.ts'

/**
 * Keys of entries are spelled in one way, so that what is one entry to an engine is one row. Before, they were kept as they were
 * written: of rows that are one, the newest stays.
 */
export const migration000004: Migration = {
  number: 4,
  statements: () => [],
  run: mergeCanonicalKeys,
}

/** Rows that are looked at in one step. */
const READ_AT_ONCE = 5000
/** Rows that are named in one statement. */
const NAMED_AT_ONCE = 500

/** A row of a table of entries: the parts of its key, its body, and so on. */
type Row = Readonly<Record<string, SqlValue>> & { readonly body: string; readonly position: number }

/** A row whose key is to be spelled otherwise. */
interface Moved {
  readonly row: Row
  /** The columns it has. */
  readonly from: readonly string[]
  /** The columns it is to have. */
  readonly to: readonly string[]
}

// biome-ignore lint/suspicious/noExplicitAny: kinds of entries differ in what they hold, which makes no difference here
const KINDS: readonly EntryKind<any, any>[] = [OVERRIDES, MEMBERS, BLOCKS]

/**
 * Spells the keys of all entries in one way. Of rows that become one, that of the newest change stays, and each that goes has an
 * audit record. Nodes that run are told to load everything anew when any key was spelled otherwise, because what they have may
 * differ from node to node.
 */
async function mergeCanonicalKeys(
  transaction: SqlTransaction,
  { canonicalKeys, nowMs }: MigrationContext,
): Promise<void> {
  let isAny = await hasOtherRemovals(transaction, canonicalKeys)
  const gone: MergeRecord[] = []
  for (const kind of KINDS) {
    for await (const moved of nonCanonicalRows(transaction, kind, canonicalKeys)) {
      isAny = true
      gone.push(...(await move(transaction, kind, moved)))
    }
  }
  if (!isAny) return
  await loadAnew(transaction)
  for (let start = 0; start < gone.length; start += READ_AT_ONCE) {
    await note(transaction, gone.slice(start, start + READ_AT_ONCE), nowMs)
  }
}

/** The audit log as it is in this form of the tables: later ones have more columns. */
const AUDIT: SqlTarget = {
  table: 'audit',
  columns: [
    { name: 'at', type: 'bigint' },
    ...(['author', 'note', 'action', 'target', 'before', 'after'] as const).map((name) => ({
      name,
      type: 'text' as const,
    })),
  ],
  key: [],
}

async function note(transaction: SqlTransaction, merged: readonly MergeRecord[], nowMs: number): Promise<void> {
  const why = 'one entry was kept in several spellings; the newest stays'
  await transaction.putRows(
    AUDIT,
    merged.map(({ action, target, before, after }) => [
      nowMs,
      'sluice',
      why,
      action,
      encodeText(target),
      before,
      after,
    ]),
  )
}

/** What is noted of two rows that become one. */
interface MergeRecord {
  readonly action: string
  readonly target: string
  /** JSON. */
  readonly before: string
  readonly after: string
}

/** Rows whose key is spelled otherwise, some at a time, in the order of the table. They may be moved meanwhile. */
async function* nonCanonicalRows(
  transaction: SqlTransaction,
  kind: EntryKind<EntryKey, EntryKey>,
  canonicalKeys: CanonicalKeys,
): AsyncGenerator<readonly Moved[]> {
  const columns = kind.keyParts.join(', ')
  const places = kind.keyParts.map(() => '?').join(', ')
  const sql = `SELECT * FROM ${kind.table} WHERE (${columns}) > (${places}) ORDER BY ${columns} LIMIT ?`
  for (let after = kind.keyParts.map(() => ''); ; ) {
    const rows = await transaction.query<Row>(sql, [...after, READ_AT_ONCE])
    const moved = rows.map((row) => movedOf(row, kind, canonicalKeys)).filter((each) => each !== undefined)
    for (let start = 0; start < moved.length; start += NAMED_AT_ONCE) yield moved.slice(start, start + NAMED_AT_ONCE)
    if (rows.length < READ_AT_ONCE) return
    after = keyColumns(rows.at(-1)!, kind)
  }
}

function movedOf(row: Row, kind: EntryKind<EntryKey, EntryKey>, canonicalKeys: CanonicalKeys): Moved | undefined {
  const from = keyColumns(row, kind)
  const key = canonicalKeys.canonical(JSON.parse(row.body) as EntryKey)
  const to = kind.keyParts.map((name) => encodeKey(key[name] as string))
  return to.every((column, index) => column === from[index]) ? undefined : { row, from, to }
}

/** Gives rows their new keys. Returns what is to be noted of those that give way to a newer one, or take the place of an older. */
async function move(
  transaction: SqlTransaction,
  kind: EntryKind<EntryKey, EntryKey>,
  moved: readonly Moved[],
): Promise<readonly MergeRecord[]> {
  const columns = kind.keyParts.join(', ')
  const named = (keys: readonly (readonly string[])[]): string =>
    `(${columns}) IN (VALUES ${keys.map((key) => `(${key.map(() => '?').join(', ')})`).join(', ')})`
  const [from, to] = [moved.map((each) => each.from), moved.map((each) => each.to)]
  await transaction.query(`DELETE FROM ${kind.table} WHERE ${named(from)}`, from.flat())
  const there = await transaction.query<Row>(`SELECT * FROM ${kind.table} WHERE ${named(to)}`, to.flat())
  const stays = new Map(there.map((row) => [nameOf(keyColumns(row, kind)), { row, isThere: true }]))
  const gone: MergeRecord[] = []
  for (const { row, to: key } of moved) {
    const name = nameOf(key)
    const other = stays.get(name)?.row
    const isNewest = other === undefined || row.position > other.position
    if (other !== undefined) gone.push(mergeRecord(kind, isNewest ? [other, row] : [row, other]))
    if (isNewest) stays.set(name, { row: { ...row, ...columnsNamed(kind, key) }, isThere: false })
  }
  const target = targetOf(kind)
  const rows = [...stays.values()].filter(({ isThere }) => !isThere).map(({ row }) => row)
  await transaction.putRows(
    target,
    rows.map((row) => target.columns.map(({ name }) => row[name] ?? null)),
  )
  return gone
}

function mergeRecord(kind: EntryKind<EntryKey, EntryKey>, [older, newer]: readonly [Row, Row]): MergeRecord {
  return {
    action: `${kind.kind}.merge`,
    target: kind.nameOf(JSON.parse(older.body)),
    before: older.body,
    after: newer.body,
  }
}

/** Whether an entry was removed under another spelling: another entry may have gone with it where nodes were told of that. */
async function hasOtherRemovals(transaction: SqlTransaction, canonicalKeys: CanonicalKeys): Promise<boolean> {
  const sql = 'SELECT kind, body, position FROM removals WHERE position > ? ORDER BY position LIMIT ?'
  for (let after = 0; ; ) {
    const rows = await transaction.query<Row>(sql, [after, READ_AT_ONCE])
    for (const { kind, body } of rows) {
      if (!KINDS.some((each) => each.kind === kind)) continue
      const key = JSON.parse(body) as EntryKey
      if (canonicalKeys.canonical(key) !== key) return true
    }
    if (rows.length < READ_AT_ONCE) return false
    after = rows.at(-1)!.position
  }
}

/** Nobody goes on from a position before this one. What was removed until now is known to who loads everything. */
async function loadAnew(transaction: SqlTransaction): Promise<void> {
  await transaction.query('DELETE FROM removals')
  await transaction.query('UPDATE feed_head SET position = position + 1, floor = position + 1 WHERE id = 1')
  await transaction.notify()
}

function keyColumns(row: Row, { keyParts }: EntryKind<EntryKey, EntryKey>): string[] {
  return keyParts.map((name) => row[name] as string)
}

function columnsNamed({ keyParts }: EntryKind<EntryKey, EntryKey>, key: readonly string[]): Record<string, string> {
  return Object.fromEntries(keyParts.map((name, index) => [name, key[index]!]))
}

function nameOf(key: readonly string[]): string {
  return JSON.stringify(key)
}
