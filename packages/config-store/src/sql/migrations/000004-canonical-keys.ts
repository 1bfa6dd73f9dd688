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
 * Makes the keys of entries canonical, so that entries that are one to an engine are one row. Of rows with the same
 * canonical key, the newest stays.
 */
export const migration000004: Migration = {
  number: 4,
  statements: () => [],
  run: mergeCanonicalKeys,
}

/** Rows per batch. */
const READ_AT_ONCE = 5000
/** Rows per statement. */
const NAMED_AT_ONCE = 500

/** A row of a table of entries. */
type Row = Readonly<Record<string, SqlValue>> & { readonly body: string; readonly position: number }

/** A row whose key changes. */
interface Moved {
  readonly row: Row
  /** Current key columns. */
  readonly from: readonly string[]
  /** New key columns. */
  readonly to: readonly string[]
}

// biome-ignore lint/suspicious/noExplicitAny: kinds of entries differ in what they hold, which makes no difference here
const KINDS: readonly EntryKind<any, any>[] = [OVERRIDES, MEMBERS, BLOCKS]

/**
 * Makes the keys of all entries canonical. Of rows with the same canonical key, the newest stays, and each removed one
 * gets an audit record. If any key changed, running nodes reload everything, because their state may differ from node
 * to node.
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
  await forceReload(transaction)
  for (let start = 0; start < gone.length; start += READ_AT_ONCE) {
    await note(transaction, gone.slice(start, start + READ_AT_ONCE), nowMs)
  }
}

/** The audit log in this schema version: later ones have more columns. */
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

/** The audit record of two merged rows. */
interface MergeRecord {
  readonly action: string
  readonly target: string
  /** JSON. */
  readonly before: string
  readonly after: string
}

/** Rows whose key is not canonical, in batches and in table order. They may be moved meanwhile. */
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

/** Moves rows to their new keys. Returns the audit records of merged rows. */
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

/** Whether an entry was removed under a key that is not canonical: nodes may have removed another entry with it. */
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

/**
 * Makes all nodes reload: no position before this one can be continued from. A full load includes all removals so far.
 */
async function forceReload(transaction: SqlTransaction): Promise<void> {
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
